"""ErasureHead's experiments on the emulator, beside what must come out: ``python papers/erasurehead/reproduce.py``.

Every part prints its table as soon as it is done; numbers outside of their bands of ``expected.json`` are told, and the
exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

if __package__ in (None, ""):  # as a script; its own folder would hide the standard library's modules
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from rich.console import Console

from benchmarks.harness import Figure
from emuml.errors import EmumlError, UserError
from papers.erasurehead import figures, loads, program, sizes, tcp, trace, training
from papers.erasurehead.expected import Check
from papers.erasurehead.parts import Part, Say

PARTS: dict[str, Callable[[Say], Part]] = {
    "trace": trace.run,
    "program": program.run,
    **{config: partial(training.train, config) for config in training.SCHEMES},
    "loads": loads.run,
    "sizes": sizes.run,
}
"""Parts by name, in the order in which they run."""

SMOKE = ("trace", "program", "artificial", "kc-house")
"""Parts that take seconds, and tens of them together with the others."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Reproduce what is asked for; return the exit status.

    It is 0 if all numbers are within their bands, 1 if one is not, 2 for data that cannot be used, 3 for a failed run.
    """
    options = _parser().parse_args(arguments)
    console = Console(highlight=False, stderr=options.json)
    parts = PARTS | ({"tcp": partial(tcp.run, long=options.long)} if options.tcp or options.long else {})
    names = [*(options.only or (SMOKE if options.smoke else PARTS)), *(parts.keys() - PARTS.keys())]
    began, done = time.perf_counter(), list[Part]()
    try:
        for name in names:
            done.append(_shown(parts[name], name, console))
    except EmumlError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 3
    except KeyboardInterrupt:
        return 130
    checks = [check for part in done for check in part.checks()]
    missed = [check for check in checks if not check.holds]
    for check in missed:
        console.print(f"outside of its band: {check}", style="red", markup=False)
    told = f"{len(checks) - len(missed)} of {len(checks)} numbers within their bands"
    console.print(f"{told}, {time.perf_counter() - began:.0f} s", style="bold")
    if options.figures:
        figures.keep({name: value for part in done for name, value in part.numbers.items()})
    if options.json:
        told_of = {check.name: figure_of(check) for check in checks}
        told_of |= {name: figure for part in done for name, figure in part.measured.items()}
        print(json.dumps({name: each.as_dict() for name, each in told_of.items()}, indent=2, allow_nan=False))
    return 1 if missed else 0


def figure_of(check: Check) -> Figure:
    """Return a check in the form of the benchmarks: the distance from what is expected, in tolerances.

    What is no finite number is null, and its distance is a million.
    """
    details = {key: getattr(check, key) for key in ("what", "found", "expected", "tolerance", "reason")}
    known = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in details.items()
    }
    return Figure(check.source, 1.0, "lower", value=round(min(check.distance, 1e6), 6), details=known)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="papers/erasurehead/reproduce.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--only", action="append", choices=tuple(PARTS), metavar="NAME", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--smoke", action="store_true", help=f"only what is quick: {', '.join(SMOKE)}")
    parser.add_argument("--tcp", action="store_true", help="also run AGC for real, 31 processes over TCP: 45 s")
    parser.add_argument("--long", action="store_true", help="also run the uncoded scheme so: 200 s more")
    parser.add_argument("--json", action="store_true", help="print one JSON object; tables go to standard error")
    parser.add_argument("--figures", action="store_true", help="keep the numbers in figures/ and draw them")
    return parser


def _shown(run: Callable[[Say], Part], name: str, console: Console) -> Part:
    """Run a part and print what it leaves."""
    began = time.perf_counter()
    with _progress(name, console) as say:
        part = run(say)
    checks = part.checks()
    console.print(part.table)
    console.print(part.said, markup=False)
    held = sum(check.holds for check in checks)
    console.print(f"{name}: {held} of {len(checks)} as expected, {time.perf_counter() - began:.1f} s\n", style="dim")
    return part


@contextmanager
def _progress(name: str, console: Console) -> Iterator[Say]:
    """Show what a part is about to do, on terminals."""
    if not console.is_terminal:
        console.print(f"{name} ...", style="dim")
        yield lambda words: None
        return
    with console.status(name) as status:
        yield lambda words: status.update(f"{name}: {words}")


if __name__ == "__main__":
    sys.exit(main())

"""Replay of a result or a run directory in the emulator: bit-equal, or an error that names the first difference."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from emuml.blas import single_threaded
from emuml.des.replay import Replayer
from emuml.errors import Diverged, FormatError, RecordEnds, UserError
from emuml.experiment.experiment import Experiment
from emuml.experiment.folders import no_run
from emuml.experiment.observing import Observatory
from emuml.experiment.recorded import encoded_of, provenance_of, summary_of
from emuml.experiment.result import Result, parameters_sha256
from emuml.experiment.run import assemble, emulate
from emuml.journal import Journal, read_journal
from emuml.provenance import provenance, sources_sha256, versions
from emuml.trace import ComparedTrace, kept

if TYPE_CHECKING:
    from emuml.experiment.config import Loaded


def replay(source: Result | str | Path) -> Result:
    """Replay a run in the emulator.

    A run with journals (every TCP run) is replayed event by event; an emulated run without journals is run again, and
    its trace must be equal.

    Parameters
    ----------
    source : Result or path of a run directory

    Returns
    -------
    Result
        With bit-equal parameters.

    Raises
    ------
    Diverged
        At the first difference.
    UserError
        If a file of the run directory is missing or damaged.
    """
    if not isinstance(source, Result):
        return _replay_folder(Path(source))
    if not source.run.journals:
        _refuse_without_journals(source.engine)
        encode = msgspec.msgpack.Encoder(enc_hook=str).encode
        rows = kept(source.trace) if source.tier == "array" else source.trace.rows
        again = _run_again(source.experiment, map(encode, rows), complete=True, tier=source.tier)
        _compare(source.parameters_sha256, again)
        return again
    again = replay_journals(source.experiment, source.run.journals)
    _compare(source.parameters_sha256, again)
    return again


def replay_journals(experiment: Experiment, journals: dict[tuple[str, int], Journal]) -> Result:
    """Replay the journals of one experiment and evaluate its metrics again."""
    began = time.perf_counter()
    problem = experiment.workload.problem(experiment.seed)
    roster = experiment.roster()
    with single_threaded():
        record = Replayer(experiment.protocol.nodes(problem, roster), roster, journals, experiment.fault_plan()).run()
    observatory = Observatory(problem, experiment.stop_condition())
    logs = {(item.time_s, str(item.node), item.metrics.get("round")): item for item in record.logs}
    for published in record.published:
        logged = logs.get((published.time_s, str(published.node), published.version))
        if logged is not None:
            observatory.on_log(logged)
        observatory.on_publish(published)
    result = assemble(experiment, record, observatory.rows, time.perf_counter() - began)
    result.provenance, result.compared = provenance(experiment.seed, "replay", problem), ("journals",)
    return result


def _run_again(experiment: Experiment, recorded: Iterator[bytes], complete: bool, tier: str) -> Result:
    """Emulate an experiment again; each trace record must be the recorded one, to the end of the record.

    Of a run that was served as arrays that is what was logged and published.
    """
    began = time.perf_counter()
    problem = experiment.workload.problem(experiment.seed)
    observatory, trace = Observatory(problem, experiment.stop_condition()), ComparedTrace(recorded, complete)
    record = emulate(experiment, problem, observatory, trace, tier=tier)
    if isinstance(record.error, RecordEnds):
        record.error = None
    result = assemble(experiment, record, observatory.rows, time.perf_counter() - began)
    trace.check_end()
    compared = "records" if tier == "array" else "trace"
    result.provenance, result.compared = provenance(experiment.seed, "des", problem), (compared,)
    return result


def _compare(recorded: str, again: Result) -> None:
    if again.parameters_sha256 != recorded:
        raise Diverged("result", 0, "parameters_sha256", recorded[:16], again.parameters_sha256[:16])
    again.compared += ("parameters",)


def _replay_folder(folder: Path) -> Result:
    from emuml.experiment.config import load

    if not (folder / "config.yaml").is_file():
        raise no_run(folder)
    loaded, made_from = load(folder / "config.yaml"), provenance_of(folder)
    _check_data(folder, loaded.experiment, made_from)
    try:
        return _replay_recorded(folder, loaded)
    except Diverged as error:
        for change in changes(made_from):
            error.add_note(change)
        raise


def _replay_recorded(folder: Path, loaded: Loaded) -> Result:
    is_complete = summary_of(folder) is not None
    journals = _journals(folder)
    if journals:
        again = replay_journals(loaded.experiment, journals)
    else:
        _refuse_without_journals(loaded.engine)
        again = _run_again(loaded.experiment, encoded_of(folder / "trace"), is_complete, _served_by(folder))
    if is_complete:
        _compare(parameters_sha256(_recorded_parameters(folder)), again)
    return again


def _served_by(folder: Path) -> str:
    """Return the tier that served a run; of one that was begun as arrays and ended by events, the latter."""
    served = str((summary_of(folder) or provenance_of(folder)).get("tier", ""))
    first = next(encoded_of(folder / "trace"), None) if served == "array" else None
    return "event" if first is not None and msgspec.msgpack.decode(first)[2] == "start" else served


def _journals(folder: Path) -> dict[tuple[str, int], Journal]:
    found = {}
    for path in sorted(folder.glob("nodes/*/journal")):
        try:
            journal = read_journal(path)
        except OSError as error:
            raise FormatError(f"this journal cannot be read: {error.strerror}", str(path)) from None
        found[journal.header.node, journal.header.incarnation] = journal
    return found


def changes(made_from: dict[str, Any]) -> list[str]:
    """Say what differs between the program that made a run and this one: it may be why a replay diverges.

    Examples
    --------
    >>> changes({"versions": {"numpy": "1.0"}})  # doctest: +ELLIPSIS
    ['the run was made with numpy 1.0, this is numpy ...: that may be the reason']
    """
    recorded, present = made_from.get("versions", {}), versions()
    found = [
        f"the run was made with {name} {recorded[name]}, this is {name} {version}: that may be the reason"
        for name, version in present.items()
        if recorded.get(name, version) != version
    ]
    if not found and made_from.get("sources_sha256", sources_sha256()) != sources_sha256():
        found = ["the run was made by another state of emuml's sources: that may be the reason"]
    return found


def _refuse_without_journals(engine: str) -> None:
    if engine != "des":
        raise UserError("the run kept no journals, so it cannot be replayed", "replay", "runtime.journal=true")


def _recorded_parameters(folder: Path) -> NDArray[Any]:
    try:
        parameters: NDArray[Any] = np.load(folder / "parameters.npy", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise FormatError(f"the parameters of the run cannot be read: {error}", str(folder)) from None
    return parameters


def _check_data(folder: Path, experiment: Experiment, made_from: dict[str, Any]) -> None:
    """Refuse data that are not those of the run: what differs would look like a mistake of the protocol."""
    recorded = made_from.get("inputs_sha256")
    if recorded is not None and recorded != list(experiment.workload.problem(experiment.seed).inputs_sha256):
        raise UserError("the data are not those of the run: their digests differ", str(folder / "config.yaml"))

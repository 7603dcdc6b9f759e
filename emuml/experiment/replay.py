"""Replay of a result or a run directory in the emulator: bit-equal, or an error that names the first difference."""

from __future__ import annotations

import time
from pathlib import Path

from emuml.blas import single_threaded
from emuml.des.replay import Replayer
from emuml.errors import Diverged, UserError
from emuml.experiment.experiment import Experiment
from emuml.experiment.observing import Observatory
from emuml.experiment.result import Result, parameters_sha256
from emuml.experiment.run import assemble, run
from emuml.journal import Journal, read_journal
from emuml.provenance import provenance


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
    """
    if not isinstance(source, Result):
        return _replay_folder(Path(source))
    if not source.run.journals:
        return _run_again(source)
    again = replay_journals(source.experiment, source.run.journals)
    _compare(source.parameters_sha256, again)
    return again


def replay_journals(experiment: Experiment, journals: dict[tuple[str, int], Journal]) -> Result:
    """Replay the journals of one experiment and evaluate its metrics again."""
    began = time.perf_counter()
    problem = experiment.workload.problem(experiment.seed)
    roster = experiment.roster()
    with single_threaded():
        record = Replayer(experiment.protocol.nodes(problem, roster), roster, journals, experiment.faults).run()
    observatory = Observatory(problem, experiment.stop_condition())
    logs = {(item.time_s, str(item.node), item.metrics.get("round")): item for item in record.logs}
    for published in record.published:
        logged = logs.get((published.time_s, str(published.node), published.version))
        if logged is not None:
            observatory.on_log(logged)
        observatory.on_publish(published)
    result = assemble(experiment, record, observatory.rows, time.perf_counter() - began)
    result.provenance = provenance(experiment.seed, "replay", problem)
    return result


def _run_again(source: Result) -> Result:
    again = run(source.experiment, "des")
    if again.trace.rows and source.trace.rows and again.trace.digest() != source.trace.digest():
        raise Diverged("emulator", 0, "trace digest", source.trace.digest()[:16], again.trace.digest()[:16])
    _compare(source.parameters_sha256, again)
    return again


def _compare(recorded: str, again: Result) -> None:
    if again.parameters_sha256 != recorded:
        raise Diverged("result", 0, "parameters_sha256", recorded[:16], again.parameters_sha256[:16])


def _replay_folder(folder: Path) -> Result:
    import numpy as np

    from emuml.experiment.config import load

    if not (folder / "config.yaml").is_file():
        raise UserError("there is no config.yaml", str(folder), "a run directory")
    experiment = load(folder / "config.yaml").experiment
    journals = {}
    for path in sorted(folder.glob("nodes/*/journal")):
        journal = read_journal(path)
        journals[journal.header.node, journal.header.incarnation] = journal
    again = replay_journals(experiment, journals) if journals else run(experiment, "des")
    recorded = folder / "parameters.npy"
    if recorded.is_file():
        _compare(parameters_sha256(np.load(recorded, allow_pickle=False)), again)
    return again

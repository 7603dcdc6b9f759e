"""Replay of a result or a run directory in the emulator: bit-equal, or an error that names the first difference."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from emuml.blas import single_threaded
from emuml.des.replay import Replayer
from emuml.errors import Diverged, FormatError, RecordEnds, UserError
from emuml.experiment.experiment import Experiment
from emuml.experiment.observing import Observatory
from emuml.experiment.result import Result, parameters_sha256
from emuml.experiment.run import assemble, emulate
from emuml.journal import Journal, read_journal
from emuml.provenance import provenance
from emuml.trace import ComparedTrace, read_encoded


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
        _refuse_without_journals(source.engine)
        encode = msgspec.msgpack.Encoder(enc_hook=str).encode
        again = _run_again(source.experiment, map(encode, source.trace.rows), complete=True)
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
        record = Replayer(experiment.protocol.nodes(problem, roster), roster, journals, experiment.faults).run()
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


def _run_again(experiment: Experiment, recorded: Iterator[bytes], complete: bool) -> Result:
    """Emulate an experiment again; each trace record must be the recorded one, to the end of the record."""
    began = time.perf_counter()
    problem = experiment.workload.problem(experiment.seed)
    observatory, trace = Observatory(problem, experiment.stop_condition()), ComparedTrace(recorded, complete)
    record = emulate(experiment, problem, observatory, trace)
    if isinstance(record.error, RecordEnds):
        record.error = None
    result = assemble(experiment, record, observatory.rows, time.perf_counter() - began)
    trace.check_end()
    result.provenance, result.compared = provenance(experiment.seed, "des", problem), ("trace",)
    return result


def _compare(recorded: str, again: Result) -> None:
    if again.parameters_sha256 != recorded:
        raise Diverged("result", 0, "parameters_sha256", recorded[:16], again.parameters_sha256[:16])
    again.compared += ("parameters",)


def _replay_folder(folder: Path) -> Result:
    from emuml.experiment.config import load

    if not (folder / "config.yaml").is_file():
        raise UserError("there is no config.yaml", str(folder), "a run directory")
    loaded, complete = load(folder / "config.yaml"), (folder / "summary.json").is_file()
    experiment = loaded.experiment
    _check_data(folder, experiment)
    journals = {}
    for path in sorted(folder.glob("nodes/*/journal")):
        journal = read_journal(path)
        journals[journal.header.node, journal.header.incarnation] = journal
    if journals:
        again = replay_journals(experiment, journals)
    else:
        _refuse_without_journals(loaded.engine)
        again = _run_again(experiment, read_encoded(folder / "trace"), complete)
    if complete:
        _compare(parameters_sha256(_recorded_parameters(folder)), again)
    return again


def _refuse_without_journals(engine: str) -> None:
    if engine != "des":
        raise UserError("the run kept no journals, so it cannot be replayed", "replay", "runtime.journal=true")


def _recorded_parameters(folder: Path) -> NDArray[Any]:
    try:
        parameters: NDArray[Any] = np.load(folder / "parameters.npy", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise FormatError(f"the parameters of the run cannot be read: {error}", str(folder)) from None
    return parameters


def _check_data(folder: Path, experiment: Experiment) -> None:
    """Refuse data that are not those of the run: what differs would look like a mistake of the protocol."""
    try:
        recorded = json.loads((folder / "provenance.json").read_text()).get("inputs_sha256")
    except (OSError, ValueError) as error:
        raise FormatError(f"the provenance of the run cannot be read: {error}", str(folder)) from None
    if recorded is not None and recorded != list(experiment.workload.problem(experiment.seed).inputs_sha256):
        raise UserError("the data are not those of the run: their digests differ", str(folder / "config.yaml"))

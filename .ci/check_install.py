"""Try an installed emuml away from its sources: kernels, data files, a small emulation with core dependencies only."""

import importlib.metadata
import importlib.resources
import tempfile
from pathlib import Path

import numpy as np

import emuml
from emuml import _kernels
from emuml.cluster import Cluster, ShiftedExponential
from emuml.protocols import GradientCoding
from emuml.protocols.gradient_coding import FractionalRepetition
from emuml.workloads import LinearRegression


def main() -> None:
    """Raise where the installed package does not hold what the sources promise."""
    assert "site-packages" in emuml.__file__, f"not the installed package: {emuml.__file__}"
    assert importlib.metadata.version("emuml") == emuml.__version__
    assert _kernels.IMPLEMENTATION == "compiled", _kernels.IMPLEMENTATION
    assert importlib.resources.files("emuml.topologies").joinpath("laptop-star.yaml").is_file()

    generator = np.random.default_rng(0)
    features = generator.normal(size=(120, 5))
    targets = features @ np.arange(1.0, 6.0)
    experiment = emuml.Experiment(
        workload=LinearRegression(data=(features, targets)),
        protocol=GradientCoding(code=FractionalRepetition(replication=2)),
        cluster=Cluster(workers=4, compute=ShiftedExponential(shift_s=0.05, mean_s=0.5)),
        rounds=20,
        seed=1,
    )
    with tempfile.TemporaryDirectory() as folder:
        first, second = (emuml.run(experiment, out=Path(folder, name)) for name in ("first", "second"))
        assert first.rounds == 20
        assert np.array_equal(first.parameters, second.parameters)
    print(f"emuml {emuml.__version__}: 20 emulated rounds in {first.duration_s:.2f} s of emulated time")


if __name__ == "__main__":
    main()

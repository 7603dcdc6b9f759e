"""Print digests of runs, for two processes to compare: ``python -m tests.mutants.digests ours``, or ``wrong``."""

import sys

import emuml.testing as et
from tests.mutants.async_nodes import ReleasesInOrderOfHashes
from tests.mutants.planted import Swapped
from tests.mutants.registry import IN_STEP, PARTIAL, SSP1

PROTOCOLS = {"ours": (PARTIAL, SSP1, IN_STEP), "wrong": (Swapped(IN_STEP, ReleasesInOrderOfHashes),)}

if __name__ == "__main__":
    for protocol in PROTOCOLS[sys.argv[1]]:
        trial = et.run(lambda protocol=protocol: protocol, et.Scenario(workers=6), et.Description())
        print(trial.digest())

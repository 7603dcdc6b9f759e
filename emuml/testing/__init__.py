"""Testing of protocols and engines: run bare nodes on either engine, with or without faults."""

from emuml.testing.running import run_nodes

__all__ = ["run_nodes"]

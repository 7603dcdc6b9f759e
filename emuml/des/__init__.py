"""The emulator: nodes on a SimPy environment, in virtual time."""

"""Networks described in files, with the units in the names of their fields.

This folder holds data only. It is installed as ``emuml.topologies``, so that the files are found wherever the package
lies: ``importlib.resources.files("emuml.topologies") / "laptop-star.yaml"``.
"""

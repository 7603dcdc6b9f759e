"""Experiments: what to train, how, on which cluster; running one on an engine and keeping its result."""

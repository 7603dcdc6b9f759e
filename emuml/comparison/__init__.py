"""Experiments side by side: the same seeds for all of them, and only what the paired intervals support is claimed.

``contestants`` (who), ``plan`` (what is common, and what is refused), ``race`` (the runs), ``analysis`` (targets and
pairs, by ``statistics``), ``verdict``, and what is left behind: ``tables`` and ``files``.
"""

"""Papers reproduced on emuml: one folder each, with configurations, expected numbers, figures and one command.

``python papers/NAME/reproduce.py`` or ``python -m papers.NAME`` runs one; ``make papers`` runs all.
"""

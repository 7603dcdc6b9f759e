"""Sections of a page, each with its figures; a section is None when a run has nothing to say in it."""

"""Configurations of this folder, and the schemes that are laid over them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import yaml

from emuml.experiment.config import load
from emuml.experiment.experiment import Experiment

FOLDER = Path(__file__).parent
CONFIGS = FOLDER / "configs"


@cache
def schemes() -> dict[str, tuple[str, ...]]:
    """Return the settings of each scheme of ``schemes.yaml``, as a command line has them."""
    given = yaml.safe_load((FOLDER / "schemes.yaml").read_text(encoding="utf-8"))
    return {
        name: tuple(f"{path}={json.dumps(value)}" for path, value in settings.items())
        for name, settings in given.items()
    }


def configured(config: str, scheme: str | None = None, *settings: str) -> Experiment:
    """Return the experiment of a configuration under a scheme, with further settings on top.

    Parameters
    ----------
    config : str
        Name of a file in ``configs/``, without its ending.
    scheme : str, optional
        Name of a scheme; without one the configuration keeps its own.
    settings : str
        Such as ``"protocol.stragglers=wait-all"``.

    Raises
    ------
    KeyError
        If there is no such scheme.
    emuml.errors.UserError
        If a setting does not fit the configuration.
    """
    laid_over = schemes()[scheme] if scheme is not None else ()
    return load(CONFIGS / f"{config}.yaml", [*laid_over, *settings]).experiment

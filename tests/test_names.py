"""Registered names: importable, distinct over all families, found again from the class, and cheap to import."""

import subprocess
import sys

import pytest

from emuml.errors import UserError
from emuml.names import REGISTRY, family_of, kind_of, load, resolve

ALL = [(family, name) for family, known in REGISTRY.items() for name in known]


@pytest.mark.parametrize(("family", "name"), ALL, ids=str)
def test_every_name_leads_to_a_class_and_back(family, name):
    found = resolve(family, name)

    assert isinstance(found, type)
    assert kind_of(found) == name
    assert family_of(name) == family


def test_no_name_means_two_things():
    assert len({name for _, name in ALL}) == len(ALL)
    targets = [target for known in REGISTRY.values() for target in known.values()]
    assert len(set(targets)) == len(targets)


def test_an_unknown_name_lists_what_is_known_and_the_nearest():
    with pytest.raises(UserError) as caught:
        resolve("code", "uncodet", "protocol.code")

    assert caught.value.where == "protocol.code"
    assert caught.value.allowed == ", ".join(sorted(REGISTRY["code"]))
    assert caught.value.hint == "did you mean 'uncoded'?"


def test_a_name_of_another_family_is_unknown():
    with pytest.raises(UserError, match="'uncoded' is unknown"):
        resolve("protocol", "uncoded")


def test_classes_without_a_name_are_called_by_their_place():
    class Local:
        pass

    assert kind_of(Local) == f"{__name__}:test_classes_without_a_name_are_called_by_their_place.<locals>.Local"
    assert load("emuml.names:load") is load
    assert load("collections:OrderedDict.fromkeys") is not None


@pytest.mark.slow
def test_importing_the_names_imports_nothing_that_they_name():
    code = (
        "import sys, emuml.names; print(*sorted(m for m in sys.modules if m.startswith(('emuml', 'numpy', 'simpy'))))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert loaded == ["emuml", "emuml.errors", "emuml.names"]

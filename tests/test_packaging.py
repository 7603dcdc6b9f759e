"""Facts of the installed package: its version, its data files, its command, what it needs at run time."""

import importlib.metadata
import importlib.resources
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import emuml
from emuml import _kernels
from emuml.cluster import Topology

PROJECT = Path(__file__).resolve().parents[1]
TOPOLOGIES = [
    file for file in importlib.resources.files("emuml.topologies").iterdir() if file.name.endswith((".yaml", ".yml"))
]


def declared():
    return tomllib.loads((PROJECT / "pyproject.toml").read_text())


def test_installed_version_is_the_declared_one():
    version = declared()["project"]["version"]
    assert importlib.metadata.version("emuml") == version
    assert emuml.__version__ == version


def test_citation_names_the_declared_version():
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text())
    assert citation["version"] == declared()["project"]["version"]


def test_command_is_installed_and_callable():
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="emuml")
    assert callable(command.load())


def test_type_information_is_shipped():
    assert importlib.resources.files("emuml").joinpath("py.typed").is_file()


def test_topologies_are_shipped():
    assert "laptop-star.yaml" in {file.name for file in TOPOLOGIES}


@pytest.mark.parametrize("file", TOPOLOGIES, ids=lambda file: file.name)
def test_topology_is_whole(file):
    topology = Topology.from_file(file)
    places = {*topology.hosts, *topology.routers}
    assert len(places) == len(topology.hosts) + len(topology.routers)
    assert {place for link in topology.links for place in link.between} == places


def test_kernels_take_their_directives_from_the_build_alone():
    # A directive in the file would win over the checked build, silently.
    for source in (PROJECT / "emuml" / "_kernels").glob("*.pyx"):
        assert not re.search(r"^#\s*cython\s*:", source.read_text(), re.MULTILINE), source.name


def test_every_kernel_is_looked_for_and_has_types_for_its_callers():
    sources = sorted((PROJECT / "emuml" / "_kernels").glob("*.pyx"))
    assert {source.stem for source in sources} == set(_kernels.KERNELS)
    for source in sources:
        assert source.with_suffix(".pyi").is_file(), f"{source.name} has no .pyi beside it"

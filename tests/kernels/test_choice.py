"""Which implementation is chosen, and that a broken build is never passed over in silence."""

import os
import subprocess
import sys

import pytest

import emuml._kernels as kernels

SCRIPT = "import emuml._kernels as k; k.weighted_sum; print(k.IMPLEMENTATION, k.word.__module__)"


def implementation(**environment):
    settings = {name: value for name, value in os.environ.items() if name != "EMUML_REFERENCE"} | environment
    ran = subprocess.run([sys.executable, "-c", SCRIPT], env=settings, capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_the_reference_is_taken_when_asked_for():
    assert implementation(EMUML_REFERENCE="1") == ["reference", "emuml._kernels.reference"]


def test_compiled_kernels_are_taken_when_all_are_there():
    if not all(kernels.built(name) for name in kernels.KERNELS):
        pytest.skip("the kernels are not compiled")
    assert implementation() == ["compiled", "emuml._kernels.draws"]


def test_an_absent_kernel_means_the_reference(monkeypatch):
    monkeypatch.delenv("EMUML_REFERENCE", raising=False)
    monkeypatch.setattr(kernels, "KERNELS", ("draws", "no_such_kernel"))
    assert kernels.choose() == "reference"


@pytest.mark.parametrize("absent_first", [True, False])
def test_a_broken_kernel_says_so(monkeypatch, absent_first):
    def load(module):
        if module.endswith("absent"):
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        raise ImportError("undefined symbol: PyFoo")

    monkeypatch.delenv("EMUML_REFERENCE", raising=False)
    monkeypatch.setattr(kernels, "KERNELS", ("absent", "broken") if absent_first else ("broken", "absent"))
    monkeypatch.setattr(kernels, "import_module", load)
    with pytest.raises(
        ImportError, match=r"_kernels\.broken is there but cannot be loaded .*undefined symbol.*rebuild"
    ):
        kernels.choose()


def test_a_kernel_that_misses_a_module_says_which(monkeypatch):
    def load(module):
        raise ModuleNotFoundError("No module named 'array_tools'", name="array_tools")

    monkeypatch.setattr(kernels, "import_module", load)
    with pytest.raises(ModuleNotFoundError, match="array_tools"):
        kernels.built("draws")

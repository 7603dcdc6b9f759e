# `make demo` and `make test` need Python 3.11 or newer, a C compiler and pip's access to a package index; all else is set
# up in .venv here. A second call sets nothing up: stamps say what the environment was made from.

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
SETUP := pyproject.toml setup.py
KERNELS := $(wildcard emuml/_kernels/*.pyx emuml/_kernels/*.pxd emuml/_kernels/*.h)
TOPOLOGIES := $(wildcard topologies/__init__.py)

# The first Python that is new enough; `make PYTHON=...` names another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

# The engines' tests run a second time with the contract checks on and another order of hashes.
ENGINE_TESTS := $(wildcard tests/conformance tests/des tests/runtime)
KERNEL_TESTS := tests/kernels tests/des/test_environment.py $(wildcard tests/des/test_simpy_*.py)
PYTEST := $(PY) -m pytest -q $(PYTEST_ARGS)

# A kernel that does not compile stops the work here; users who install without a compiler get the reference twins.
export EMUML_REQUIRE_KERNELS := 1

.DEFAULT_GOAL := help
.PHONY: help demo papers test test-default test-checked test-bounds simpy-tests soak lint format types imports build package-check clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# An environment made for development serves the demo too.
demo: $(VENV)/$(if $(wildcard $(VENV)/.made-dev),.made-dev,.made-data) ## emulate gradient coding on real data, show who wins
	$(PY) -m emuml.cli.main demo

papers: $(VENV)/$(if $(wildcard $(VENV)/.made-dev),.made-dev,.made-data) ## reproduce papers on the emulator, compare with what must come out
	$(PY) papers/erasurehead/reproduce.py $(PAPERS_ARGS)

# Both at once, on two cores: neither measures time.
test: $(VENV)/.made-dev ## run every test, and the engines' once more with contract checks on
	+$(MAKE) --no-print-directory -j 2 test-default test-checked

test-default: $(VENV)/.made-dev ## run every test as users run the package
	PYTHONHASHSEED=0 $(PYTEST)

test-checked: $(VENV)/.made-dev ## run the engines' tests with contract checks on, on the pure event core
	PYTHONHASHSEED=1 EMUML_CHECK=1 EMUML_PURE=1 $(PYTEST) $(ENGINE_TESTS)

# In a copy, so that the kernels in use stay as they are.
test-bounds: $(VENV)/.made-dev ## run the kernels' tests on kernels that check bounds
	rm -rf build/bounds && mkdir -p build/bounds
	cp -r emuml tests topologies $(SETUP) README.md LICENSE build/bounds
	cd build/bounds && EMUML_CHECKED=1 $(abspath $(PY)) setup.py --quiet build_ext --inplace --force
	cd build/bounds && EMUML_CHECKED=1 $(abspath $(PY)) -m pytest -q $(PYTEST_ARGS) $(KERNEL_TESTS)

simpy-tests: $(VENV)/.made-dev ## run SimPy's own tests on our environment, compiled and pure
	PYTHON=$(PY) bash .ci/simpy-tests

soak: $(VENV)/.made-dev ## try every property on thousands of fresh examples and schedules (long)
	$(PYTEST) -m "hypothesis or soak" --hypothesis-profile=soak --timeout=0

lint: $(VENV)/.made-dev ## check style and layout
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

format: $(VENV)/.made-dev ## sort imports and lay out
	$(VENV)/bin/ruff check --select I --fix .
	$(VENV)/bin/ruff format .

types: $(VENV)/.made-dev ## check types
	$(VENV)/bin/mypy --strict emuml

imports: $(VENV)/.made-dev ## check that no floor imports a higher one
	$(VENV)/bin/lint-imports --no-logo

build: $(VENV)/.made-dev ## compile the kernels that changed

package-check: $(VENV)/.made-dev ## build the wheel from the sdist, try it in an empty environment
	PYTHON=$(PY) bash .ci/package-check

clean: ## remove what was built or cached; .venv stays
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f emuml/_kernels/*.so emuml/_kernels/*.c $(VENV)/.made-* $(VENV)/.installed-*
	find emuml tests topologies -name __pycache__ -type d -prune -exec rm -rf {} +

$(PY):
	@test -n "$(PYTHON)" || { echo "emuml needs Python 3.11 or newer: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "making an environment in $(VENV): takes minutes, once"
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "no environment: is Python's venv module there? (on Debian: apt install python3-venv)" >&2; exit 1; }

$(VENV)/.made-data: $(SETUP) $(KERNELS) $(TOPOLOGIES) | $(PY)
	$(PIP) install --editable '.[data]'
	@touch $@

$(VENV)/.installed-dev: $(SETUP) $(TOPOLOGIES) | $(PY)
	$(PIP) install --editable '.[dev]'
	@touch $@

# pip compiles the kernels when it installs; later edits of a .pyx need only this.
$(VENV)/.made-dev: $(VENV)/.installed-dev $(KERNELS)
	$(PY) setup.py --quiet build_ext --inplace
	@touch $@

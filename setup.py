"""Compile the kernels of emuml/_kernels and ship topologies/ as emuml.topologies.

Everything that is not computed stands in pyproject.toml. The kernels are plain extensions with Cython among the
build requirements, not ``cythonize``: so the sdist carries their ``.pyx`` and no generated C, and asking for metadata
compiles nothing. Compiler directives stand here only: at the top of a ``.pyx`` they would win over the checked build.

Three switches are read from the environment; ``build_ext --force`` is needed when one of them changes:

EMUML_CHECKED=1
    Keep bounds, wraparound, initialisation and division checks in the kernels.
EMUML_TRACE=1
    Compile with line tracing, for coverage of ``.pyx`` files.
EMUML_REQUIRE_KERNELS=1
    A kernel that does not compile is an error; otherwise its reference twin serves.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, find_packages, setup

KERNELS = Path("emuml", "_kernels")


def switched_on(name):
    """Tell whether the environment variable `name` is set to 1."""
    return os.environ.get(name) == "1"


def compiler_flags():
    """Return flags that keep IEEE results: no contraction into fused multiply-add, never fast-math.

    The optimisation level is named because an environment with ``CFLAGS=""`` loses the interpreter's own; ``-g0`` makes
    the libraries a fifth of their size.
    """
    if sys.platform == "win32":
        return ["/O2", "/fp:precise"]
    return ["-O3", "-g0", "-ffp-contract=off"]


def directives():
    """Return the Cython directives of every kernel."""
    checks = switched_on("EMUML_CHECKED")
    return {
        "language_level": "3",
        "linetrace": switched_on("EMUML_TRACE"),
        "boundscheck": checks,
        "wraparound": checks,
        "initializedcheck": checks,
        "cdivision": not checks,
    }


def kernel(source):
    """Return the extension built from the Cython file `source`."""
    # sys.monitoring has no Cython events yet, so tracing falls back to the older hooks.
    tracing = [("CYTHON_TRACE_NOGIL", "1"), ("CYTHON_USE_SYS_MONITORING", "0")]
    extension = Extension(
        name=".".join(source.with_suffix("").parts),
        sources=[source.as_posix()],
        depends=[header.as_posix() for pattern in ("*.pxd", "*.h") for header in sorted(KERNELS.glob(pattern))],
        define_macros=tracing if switched_on("EMUML_TRACE") else [],
        extra_compile_args=compiler_flags(),
        optional=not switched_on("EMUML_REQUIRE_KERNELS"),
    )
    extension.cython_directives = directives()
    return extension


setup(
    ext_modules=[kernel(source) for source in sorted(KERNELS.glob("*.pyx"))],
    packages=[*find_packages(include=["emuml", "emuml.*"]), "emuml.topologies"],
    package_dir={"emuml.topologies": "topologies"},
    package_data={"": ["py.typed", "*.pyi", "*.pxd", "*.h"], "emuml.topologies": ["*.yaml", "*.json", "*.graphml"]},
    # The compiled library is what a wheel needs; the .pyx travels in the sdist.
    exclude_package_data={"": ["*.pyx", "*.c"]},
)

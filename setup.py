"""Build of the one extension module; everything else about the package is in pyproject.toml.

Two environment variables, each 0 or 1, change the build:

    S2DQ_NO_OPENMP  a serial extension, on purpose: OpenMP is not looked for
    S2DQ_DEBUG      Cython bounds checks, C assertions and debug symbols
"""

import os
import platform
import shlex
import subprocess
import sys
import tempfile
from glob import glob
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError, PlatformError

TRIVIAL_PROGRAM = "int main(void) { return 0; }\n"

# Exits with 0 when a parallel region opens and its reduction adds up.
OPENMP_PROGRAM = """\
#include <omp.h>
#ifndef _OPENMP
#error "the compiler ignores OpenMP"
#endif
int main(void) {
    int counted = 0, team = 0;
    #pragma omp parallel num_threads(2) reduction(+ : counted)
    {
        counted += 1;
        #pragma omp master
        team = omp_get_num_threads();
    }
    return counted == team ? 0 : 1;
}
"""

# (compile flags, link flags), tried in this order. The second unix pair is Apple's clang with libomp.
OPENMP_FLAGS = {
    "msvc": [(["/openmp:llvm"], [])],
    "unix": [(["-fopenmp"], ["-fopenmp"]), (["-Xpreprocessor", "-fopenmp"], ["-lomp"])],
}

NO_COMPILER = """\
no working C compiler was found (the compiler's own message is above).
Install one and the headers of Python:
    Debian, Ubuntu   apt install gcc libc6-dev python3-dev
    Fedora           dnf install gcc python3-devel
    Alpine           apk add gcc musl-dev python3-dev
    macOS            xcode-select --install
    Windows          Visual Studio Build Tools, workload "Desktop development with C++"
"""

NO_OPENMP = """\
the C compiler cannot build an OpenMP program (its own message is above).
Install OpenMP for it:
    Debian, Ubuntu   apt install gcc              (for clang: apt install libomp-dev)
    Fedora           dnf install gcc libgomp      (for clang: dnf install libomp-devel)
    Alpine           apk add gcc libgomp          (for clang: apk add openmp-dev)
    macOS            brew install libomp, then export CPPFLAGS="-I$(brew --prefix libomp)/include"
                     and LDFLAGS="-L$(brew --prefix libomp)/lib"
    Windows          Visual Studio 2019 16.9 or newer
or set S2DQ_NO_OPENMP=1 to build a package that uses one thread.
"""


def switch(name):
    """Return the environment variable `name`, 0 or 1, as a bool; unset is 0."""
    value = os.environ.get(name, "0")
    if value not in ("", "0", "1"):
        raise PlatformError(f"{name} must be 0 or 1, not {value!r}")
    return value == "1"


def host_is_target(compiler):
    """Tell whether what `compiler` makes is known to run on this machine."""
    if "_PYTHON_HOST_PLATFORM" in os.environ:  # set by every way of cross-compiling CPython extensions
        return False
    if compiler.compiler_type == "msvc":
        return os.environ.get("VSCMD_ARG_TGT_ARCH") == os.environ.get("VSCMD_ARG_HOST_ARCH")
    try:
        triplet = subprocess.run(
            [*compiler.compiler, "-dumpmachine"], capture_output=True, text=True, check=True, timeout=60
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    same_name = {"amd64": "x86_64", "arm64": "aarch64"}
    target, host = triplet.partition("-")[0].lower(), platform.machine().lower()
    return same_name.get(target, target) == same_name.get(host, host)


def program_works(compiler, source, compile_flags=(), link_flags=()):
    """Compile and link `source`, run it when host is target, and tell whether all of that succeeded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "probe.c")
        path.write_text(source)
        try:
            objects = compiler.compile([str(path)], output_dir=folder, extra_postargs=list(compile_flags))
            # What the link of an extension takes from the environment, and link_executable does not.
            environment = shlex.split(os.environ.get("LDFLAGS", "")) if compiler.compiler_type == "unix" else []
            link = [*environment, *link_flags]
            compiler.link_executable(objects, "probe", output_dir=folder, extra_postargs=link)
        except (CompileError, LinkError) as error:
            print(error, file=sys.stderr)
            return False
        if not host_is_target(compiler):
            return True
        try:
            program = compiler.executable_filename("probe", output_dir=folder)
            return subprocess.run([program], check=False, timeout=60).returncode == 0
        except (OSError, subprocess.TimeoutExpired) as error:
            print(error, file=sys.stderr)
            return False


def openmp_flags(compiler):
    """Return (compile flags, link flags) that give a working OpenMP, or stop the build."""
    if not program_works(compiler, TRIVIAL_PROGRAM):
        raise PlatformError(NO_COMPILER)
    for flags in OPENMP_FLAGS.get(compiler.compiler_type, OPENMP_FLAGS["unix"]):
        if program_works(compiler, OPENMP_PROGRAM, *flags):
            return flags
    raise PlatformError(NO_OPENMP)


def base_flags(compiler, debug):
    """Return the compile flags that do not depend on OpenMP: portable, the same bytes on every machine."""
    if compiler.compiler_type == "msvc":
        return ["/Od", "/Zi", "/fp:precise"] if debug else ["/O2", "/fp:precise"]
    return [
        # Python's own flags may hold -g: debug information would carry the paths of this machine into the wheel.
        *(["-O1", "-g"] if debug else ["-O3", "-g0"]),
        # gcc contracts a*b + c into a fused multiply-add by default, which rounds once instead of twice.
        "-ffp-contract=off",
        # Kernels move elements of any type as words of their width: memory is read as another type than
        # it was written as.
        "-fno-strict-aliasing",
        # At gcc's own 16 bytes, kernels of ten instructions took up to 1.3 times as long after an edit somewhere else;
        # from the start of a line, a function depends on itself alone.
        "-falign-loops=32", "-falign-functions=64",
    ]


def with_bounds_checks(source, folder):
    """Copy the Cython files around `source` below `folder`, bounds checks on, and return the copy's path."""
    source, folder = Path(source), Path(folder, "debug")
    copy = folder / source
    copy.parent.mkdir(parents=True, exist_ok=True)
    for path in [source.with_name("__init__.py"), *source.parent.glob("*.pxd")]:
        (folder / path).write_text(path.read_text())
    text = source.read_text()
    # A directive at the head of a file wins over one given to the Cython compiler, so the head has to change.
    checked = text.replace("boundscheck=False", "boundscheck=True")
    if checked == text:
        raise PlatformError(f"S2DQ_DEBUG=1: no boundscheck=False in {source}")
    copy.write_text(checked)
    return str(copy)


class BuildKernels(build_ext):
    """Add what depends on the compiler, and keep the generated C out of the source tree, wheel and sdist."""

    def finalize_options(self):
        super().finalize_options()
        self.cython_c_in_temp = True
        # The switches are no part of the time stamps: an older build with other switches must not be reused.
        self.force = True

    def build_extensions(self):
        debug = switch("S2DQ_DEBUG")
        serial = switch("S2DQ_NO_OPENMP")
        compile_flags, link_flags = ([], []) if serial else openmp_flags(self.compiler)
        for extension in self.extensions:
            extension.extra_compile_args = [*base_flags(self.compiler, debug), *compile_flags]
            extension.extra_link_args = list(link_flags)
            if debug:
                extension.define_macros.append(("S2DQ_DEBUG", "1"))
                extension.undef_macros.append("NDEBUG")
                extension.sources = [with_bounds_checks(path, self.build_temp) for path in extension.sources]
        super().build_extensions()


kernels = Extension(
    "s2dq._kernels",
    sources=["s2dq/_kernels.pyx"],
    depends=sorted(glob("s2dq/_micro/*.h") + glob("s2dq/*.pxd")),
    include_dirs=["s2dq", numpy.get_include()],
    define_macros=[
        ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
        # Whichever NumPy it is built with, the extension runs with 2.0.
        ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
    ],
    # pthread_atfork and dladdr: glibc before 2.34 keeps them outside of libc.
    libraries=["pthread", "dl"] if sys.platform.startswith("linux") else [],
)

setup(ext_modules=[kernels], cmdclass={"build_ext": BuildKernels})

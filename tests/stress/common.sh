# What the scripts of this folder share. They leave the checkout alone: everything is copied, built and run in a
# temporary directory, or in S2DQ_STRESS_DIR, which is kept, with its virtual environment, for the next run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

# What the caller's shell has set must not change what is tested.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV LD_PRELOAD OMP_NUM_THREADS OMP_THREAD_LIMIT S2DQ_NO_OPENMP S2DQ_DEBUG S2DQ_NUM_THREADS

# Stop, with the exit status that .ci/run shows as NOT RUN, where a tool is missing.
need() {  # program or library, Debian package
    if ! command -v "$1" > /dev/null && [[ $1 != /* || ! -e $1 ]]; then
        echo "NOT RUN: $1 is missing (apt-get install $2)"
        exit 77
    fi
}

# Go to a fresh copy of the checkout, with a virtual environment first on PATH.
prepare() {  # packages to install...
    if [[ -n ${S2DQ_STRESS_DIR:-} ]]; then
        mkdir -p "$S2DQ_STRESS_DIR"
        work=$(cd "$S2DQ_STRESS_DIR" && pwd)
    else
        work=$(mktemp -d "${TMPDIR:-/tmp}/s2dq-stress.XXXXXX")
        trap 'rm -rf "$work"' EXIT
    fi
    rm -rf "$work/checkout"
    mkdir "$work/checkout"
    local leftovers=(--exclude=./.git --exclude=./build --exclude='*.so' --exclude=__pycache__ --exclude='*.egg-info')
    tar -C "$root" "${leftovers[@]}" -c . | tar -C "$work/checkout" -x
    [[ -e $work/venv ]] || "${PYTHON:-python3}" -m venv "$work/venv"
    export VIRTUAL_ENV=$work/venv PATH=$work/venv/bin:$PATH
    cd "$work/checkout"
    pip install -q "setuptools>=77" wheel "Cython>=3.1" "numpy>=2.0" "$@"
}

# Build and install the copy; what comes before the call is the environment of the build.
install_copy() {
    pip install -q --no-build-isolation --no-deps --force-reinstall .
}

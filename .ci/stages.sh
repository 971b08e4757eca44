# One function per stage of .ci/run, which starts `bash -euo pipefail stages.sh STAGE` in an empty directory.
# SOURCE is a clean copy of the checkout that nobody builds in, WHEELS is where `package` leaves its wheel, ROOT is the
# checkout itself, whose history `counts` reads.

# Make a virtual environment and put it first on PATH.
new_environment() {
    "$PYTHON" -m venv "$PWD/$1"
    export VIRTUAL_ENV=$PWD/$1 PATH=$PWD/$1/bin:$PATH
}

# Copy the source tree to build in, and go there.
fresh_checkout() {
    cp -R "$SOURCE" checkout
    cd checkout
}

# Run the one fenced command of a page that contains all of these words.
documented() {
    local command
    command=$(python "$SOURCE/.ci/documented_command.py" "$@")
    echo "+ $command"
    bash -euo pipefail -c "$command"
}

wheel() {
    ls "$WHEELS"/s2dq-*.whl || { echo "the package stage has left no wheel"; exit 1; }
}

# Build as users do; of stages that compile the same text in the same way, once.
shared_builds() {
    S2DQ_CI_CC=${CC:-$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_config_var("CC"))')}
    export S2DQ_CI_CC CC=$ROOT/.ci/shared_cc
}

# Build in half the time, where nothing looks at the clock; the bytes are the same.
quick_builds() {
    export CC=$ROOT/.ci/quick_cc
}

# The oldest NumPy that pyproject.toml allows, or the first that knows this Python.
floor_numpy() {
    case $(python -c 'import sys; print("%d.%d" % sys.version_info[:2])') in
        3.11 | 3.12) echo "numpy==2.0.*" ;;
        3.13) echo "numpy==2.1.*" ;;
        *) echo "numpy==2.3.*" ;;
    esac
}

# Of a build from the same sources: what it gives is what was recorded.
build_tests() {
    pytest -q tests/test_{digests,dtypes,packaging,recorded_plans,worked_cases}.py
}

# Dask arrays, worker processes, a cluster, and the examples that need them.
dask_tests() {
    pytest -rs tests/test_{dask,workers,doctests,examples}.py | tee ../report
    if grep -E "SKIPPED.*(dask|distributed|zarr)" ../report; then
        echo "a test of Dask was skipped although it is there"
        exit 1
    fi
}

# The hooks of .pre-commit-config.yaml, on all files: they look at what is in the repository.
stage_lint() {
    new_environment venv
    fresh_checkout
    pip install -q $(python .ci/extra.py lint)
    git init -q
    git add --all
    PRE_COMMIT_HOME=$PWD/../hooks pre-commit run --all-files
}

# The sources against their types, and those of the compiled module against what was built.
stage_types() {
    new_environment venv
    fresh_checkout
    pip install -q "$(wheel)[test,dask]" $(python .ci/extra.py types) $(python .ci/extra.py lint)
    mypy
    # Elsewhere: of the package that is installed.
    (cd .. && python -m mypy.stubtest --mypy-config-file checkout/pyproject.toml \
        --allowlist checkout/.ci/stubtest.txt s2dq)
    pytest -rs tests/test_{types,imports}.py | tee ../report
    if grep SKIPPED ../report; then
        echo "a test was skipped although what it needs is there"
        exit 1
    fi
}

stage_readme-tests() {
    new_environment venv
    fresh_checkout
    shared_builds
    documented README.md "pip install" pytest
}

# The build that users get is in `readme-tests`.
stage_readme-job() {
    new_environment venv
    fresh_checkout
    quick_builds
    documented README.md "pip install" "s2dq preprocess"
    ls -l out
    test -s out/scene.npy -a -s out/scene.json -a -s out/scene.preview.png
    cd /
    s2dq info
    python -m s2dq info
}

# Pages with their examples; those that need Dask or the other systems run in `peers`.
stage_docs() {
    new_environment venv
    fresh_checkout
    quick_builds
    documented CONTRIBUTING.md "pip install" sphinx-build
    for page in index tutorial systems operators/space_to_depth compat/pytorch; do
        test -s "docs/_build/html/$page.html"
    done
    pip install -q $(python .ci/extra.py test)  # not ".[test]", which would build the extension again
    documented CONTRIBUTING.md pytest tests/test_doctests.py
}

stage_package() {
    new_environment build
    fresh_checkout
    pip install -q build
    shared_builds
    python -m build --outdir dist .  # the sdist from the checkout, the wheel from the sdist
    python .ci/check_files.py sdist "$SOURCE" dist/*.tar.gz
    python .ci/check_files.py wheel "$SOURCE" dist/*.whl
    mkdir "$WHEELS"
    cp dist/*.whl "$WHEELS"
    cd ..
    new_environment use
    pip install -q "$(wheel)"
    cd /
    python -c '
import numpy as np, s2dq
print(s2dq.__file__)
assert s2dq.space_to_depth(np.arange(4, dtype=np.int8).reshape(1, 2, 2, 1), 2).tolist() == [[[[0, 1, 2, 3]]]]
s2dq.show_config()'
    s2dq info
}

# What the suite in `readme-tests` leaves out.
stage_isas() {
    new_environment venv
    fresh_checkout
    pip install -q "$(wheel)[test]"
    S2DQ_TEST_LONG=1 pytest -rs tests/test_isas.py -k "not short"
}

# The oldest dependencies that pyproject.toml allows. Newer versions of numcodecs warn of what this Zarr brings along.
stage_floor() {
    new_environment venv
    fresh_checkout
    pip install -q "$(wheel)[test,dask,zarr]" "$(floor_numpy)" threadpoolctl==3.1.0 dask==2025.2.0 \
        distributed==2025.2.0 zarr==3.0.8 numcodecs==0.16.1
    pip list
    build_tests
    pytest -q tests/test_{arrays,compat,fork_threads,operators,quantized}.py
    dask_tests
}

# The oldest tools that [build-system] allows.
stage_build-floor() {
    new_environment venv
    fresh_checkout
    quick_builds
    pip install -q setuptools==77.0.1 Cython==3.1.0 "$(floor_numpy)"
    pip install -q --no-build-isolation ".[test]"
    build_tests
    pytest -q tests/test_cython_users.py
}

stage_serial() {
    new_environment venv
    fresh_checkout
    quick_builds
    S2DQ_NO_OPENMP=1 pip wheel -q --no-deps --wheel-dir dist .
    python .ci/check_files.py wheel "$SOURCE" dist/*.whl
    pip install -q "$(echo dist/*.whl)[test]"
    build_tests
    pytest -q tests/test_operators.py
}

# Compile flags that make AVX-512 plain C, in a checkout, where an x86-64 has none: its kernels and tests run all the same.
avx512_in_c() {
    if [[ $(uname -m) == x86_64 ]] && ! grep -q avx512_vbmi /proc/cpuinfo; then
        echo "-mavx2 -mbmi -mbmi2 -Wno-psabi -D_GNU_SOURCE -include $PWD/tests/avx512_in_c.h"
    fi
}

# Plans and programs of an instruction set that all other stages run where the processor has it.
stage_avx512() {
    new_environment venv
    fresh_checkout
    local flags
    flags=$(avx512_in_c)
    if [[ $(uname -m) != x86_64 ]]; then
        echo "NOT RUN: an x86-64 is missing"
        exit 77
    elif [[ -z $flags ]]; then
        echo "the processor has AVX-512, and all stages run it"
        exit
    fi
    quick_builds
    CFLAGS=$flags pip install -q ".[test]"
    S2DQ_ISA=avx512vbmi pytest -q tests/test_{digests,plan,programs}.py
}

# The headers by themselves, without Python.
stage_kernels() {
    fresh_checkout
    local cc boxes=200000
    cc=$(avx512_in_c)
    [[ -z $cc ]] || boxes=50000
    # As in quick_cc: written out for each of their constants they run in the extension, in all other stages.
    cc="cc $cc -Dalways_inline="
    $cc -O1 -I s2dq/_micro tests/boxes.c -o boxes
    $cc -O1 -I s2dq/_micro tests/tiles.c -o tiles
    cc -O1 -I s2dq/_micro -ffp-contract=off tests/numbers.c -o numbers -lm
    cc -O1 -fopenmp -I s2dq/_micro tests/system.c -o system
    ./system
    ./boxes "$boxes"
    ./numbers 100000
    ./tiles 20000 || [[ $? == 2 ]]  # 2: instruction sets of this machine have no such kernels
    ./tiles 20000 1 avx2 || [[ $? == 2 ]]
    cc -O1 -I s2dq/_micro -ffp-contract=off -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all \
        tests/numbers.c -o numbers -lm
    ./numbers 10000 2
    $cc -O1 -I s2dq/_micro -DTRACED tests/boxes.c -o boxes
    $cc -O1 -I s2dq/_micro -DTRACED tests/tiles.c -o tiles
    ./boxes 20000 1 all tests/recorded_boxes.txt
    for isa in avx2 avx512vbmi; do
        ./tiles 8000 1 $isa tests/recorded_tiles.txt || [[ $? == 2 ]]
    done
}

# The real systems, in one environment: as judges, as readers of their own files, and beside our threads and forks.
stage_peers() {
    new_environment venv
    fresh_checkout
    export PIP_COMPILE=0  # Python compiles what is imported, which is a fifth of it
    pip install -q "$(wheel)[test,bench,litert,mutants,onnx,peers,dask,zarr]" numba opencv-python-headless
    pip list
    local whole others
    dask_tests
    whole=$(echo tests/test_{models,mutants,interop,interop_peers,quantized_models,quantized_peers}.py)
    others=$(grep -liE "fork|torch|dataloader" tests/test_*.py | grep -vxF "$(printf '%s\n' tests/test_doctests.py $whole)")
    pytest -rs -k "fork or torch or dataloader" $others | tee -a ../report
    pytest -rs $whole | tee -a ../report
    pytest -rs -k "dask or peer_gives or chart_is or readme_script" tests/test_{bad_input,bench}.py | tee -a ../report
    if grep -E "SKIPPED.*(torch|sklearn|onnx|litert|dask|installed)" ../report; then
        echo "a test was skipped although what it needs is there"
        exit 1
    fi
    # One process for each: some of them do not bear the threads and the forks of others.
    for judge in tests/peers/test_*.py; do
        S2DQ_PEERS=all pytest "$judge"
    done
}

# The wheel of this run, repaired. By hand, .ci/wheels builds those of all Pythons and tests them beside PyTorch.
stage_wheels() {
    fresh_checkout
    .ci/wheels -w "$(wheel)" -t "tests/test_digests.py tests/test_packaging.py tests/test_fork_threads.py" \
        "$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
}

stage_asv() {
    new_environment venv
    fresh_checkout
    git init -q -b main
    git add --all
    git -c user.name=ci -c user.email=ci@localhost commit -q -m "the checkout under test"
    quick_builds  # that every benchmark runs is what is looked at
    export S2DQ_ASV_SECONDS=0.01
    # asv keeps a file in HOME, and pip's settings have to stay where they are.
    export XDG_CONFIG_HOME=${XDG_CONFIG_HOME:-$HOME/.config} XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache}
    export HOME=$PWD/../home
    mkdir "$HOME"
    documented asv_bench/README.md "pip install" "asv run --quick"
    python .ci/check_asv.py asv_bench/results
}

# Against the commit before the package changed for the last time: instructions, which need no quiet machine, and time
# in copies of some layers and frames, alone at the end of a whole run. `.ci/gate.py previous` has all cases.
stage_counts() {
    shared_builds  # where only Python has changed, the base is compiled already
    "$PYTHON" "$ROOT/.ci/gate.py" previous "$(wheel)" --instructions --keep "$WHEELS/base" --bench "tiny|camera|imagenet|pack|layout"
}

stage_gate() {
    local base
    base=$(ls "$WHEELS"/base/s2dq-*.whl) || { echo "NOT RUN: the counts stage has left no wheel"; exit 77; }
    "$PYTHON" "$ROOT/.ci/gate.py" "$base" "$(wheel)" --bench "camera_640|pack|tiny_s2d|imagenet_640|mobilenet_224"
}

# The checks of tests/stress, in minutes: that page has the long ones. What is missing makes them NOT RUN.
stress() {
    local script=$1
    shift
    fresh_checkout
    S2DQ_STRESS_DIR=$PWD/../stress bash "tests/stress/$script" "$@"
}

stage_sanitizers() {
    stress sanitizers -q tests/test_{cases,digests,out}.py
}

stage_threads-sanitizer() {
    stress threads_sanitizer --seconds 20
}

stage_valgrind() {
    stress valgrind --calls 60
}

stage_fuzz() {
    new_environment venv
    fresh_checkout
    pip install -q "$(wheel)[test]"
    if ! pip install -q --only-binary :all: atheris 2>&1 | tee said; then
        grep -q "No matching distribution" said
        echo "NOT RUN: atheris has no wheel for this Python"
        exit 77
    fi
    python tests/stress/fuzz.py --minutes 0.7 || exit 1
}

stage_parallel() {
    new_environment venv
    fresh_checkout
    pip install -q "$(wheel)[test]" pytest-run-parallel
    tests/stress/parallel -q tests/test_{arrays,free_threading,memo,worked_cases}.py
}

# The kernels of processors that are not here; .ci/emulate is the long form, with Python.
stage_emulated() {
    local arch program
    fresh_checkout
    for arch in aarch64 s390x; do
        command -v "qemu-$arch-static" > /dev/null ||
            { echo "NOT RUN: qemu-$arch-static is missing (apt-get install qemu-user-static)"; exit 77; }
        [[ -n $(command -v "$arch-linux-gnu-gcc") && -e /usr/$arch-linux-gnu/include/stdio.h ]] ||
            { echo "NOT RUN: $arch-linux-gnu-gcc is missing (apt-get install gcc-$arch-linux-gnu)"; exit 77; }
        for program in boxes numbers tiles; do
            "$arch-linux-gnu-gcc" -O1 -static -ffp-contract=off -I s2dq/_micro "tests/$program.c" -o "$program-$arch" -lm
        done
        "qemu-$arch-static" "boxes-$arch" 3000
        "qemu-$arch-static" "numbers-$arch" 2000
        "qemu-$arch-static" "tiles-$arch" 1000 || [[ $? == 2 && $arch != aarch64 ]]  # 2: it has no such kernels
    done
}

"stage_$1"

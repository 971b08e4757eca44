"""What `s2dq bench` does: one process after the other, pinned and held to so many threads, and their results as one.

The result is a dict that goes to JSON as it is:

    {"machine": {...}, "settings": {...}, "peers": {name: {distribution: version}},
     "cases": [{"name", "operator", "nbytes", "k", "runs": [{peer: {"copy", "out", "fresh", ...}}]}]}

Times are microseconds. "out" and "fresh" hold the peer's fastest call of that kind: us, copies, quartiles as fractions
of the median, number of samples, how it was called. A second run is there for cases that failed in the first.
"""

import contextlib
import datetime
import fnmatch
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self, TypeAlias

import s2dq

from . import cases, peers
from .budget import budget
from .verdict import Row, Run, fails

SILENCE = 600  # seconds without a sign of life after which a process is ended
SECONDS = {"s2dq": 0.5, "peer": 0.25}  # per case
QUICK_SECONDS = {"s2dq": 0.12, "peer": 0.06}

# One of each kind, small enough that all peers are through within a minute.
QUICK = (
    "tiny_s2d_nhwc", "resnet50_stem_224", "yolov5_focus_640_nchw", "yolov2_passthrough_26_f32",
    "feature_map_14_c512_nchw", "feature_map_56_c64_crd", "bayer_mosaic_1080p_8bit", "label_map_512_int64",
    "full_hd_s2d_nhwc", "camera_640_to_nchw", "feature_map_7_c1024", "espcn_x3_1080p", "mobile_sr_x2_540p_crd",
    "quicksrnet_x4_512", "deeplab_rate6_int8", "video_dilation2", "wavenet_dilation8_undo",
    "feature_map_56_c64_to_int8x4", "rgb_640_to_int8x4", "feature_map_56_c256_from_int8x32",
    "imagenet_640_nhwc",
)  # fmt: skip

THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
)  # fmt: skip


Process: TypeAlias = subprocess.Popen[str]


class WorkerError(Exception):
    """A process that cannot measure anything."""


def run(
    names: list[str], wanted: Iterable[str], *, threads: int = 1, quick: bool = False, confirm: bool = False,
    interpreters: Mapping[str, str] | None = None, progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:  # fmt: skip
    """Measure the cases of these names with s2dq and the peers in `wanted`; returns the result described above."""
    interpreters = interpreters or {}
    seconds = QUICK_SECONDS if quick else SECONDS
    progress("looking for peers")
    found = {peer: versions for peer in wanted if (versions := versions_of(peer, interpreters)) is not None}
    cpus = pinned_cpus(threads)
    machine = describe_machine(threads, cpus)

    def measure(chosen: list[str], peer: str) -> dict[str, Any]:
        chosen = [name for name in chosen if peers.serves(peer, cases.find(name).operator)]
        job = {"peer": peer, "cases": chosen, "threads": threads,
               "seconds": seconds["s2dq" if peer == "s2dq" else "peer"]}
        return run_peer(job, interpreters.get(peer, sys.executable), cpus, progress)

    first = {peer: measure(names, peer) for peer in ("s2dq", *found)}
    rows = [describe_case(name, results_of(name, first), machine["instruction set"]) for name in names]
    again = [row["name"] for row in rows if fails(row)] if confirm else []
    if again:
        second = {peer: measure(again, peer) for peer in first}
        for row in rows:
            if row["name"] in again:
                row["runs"].append(results_of(row["name"], second))
    settings = {"threads": threads, "quick": quick, "confirm": confirm, "seconds per case": seconds}
    return {"machine": machine, "settings": settings, "peers": found, "cases": rows}


def results_of(name: str, results: dict[str, Any]) -> Run:
    """What each peer that has been asked for the case says of it."""
    return {peer: own[name] for peer, own in results.items() if name in own}


def choose_cases(*, quick: bool = False, pattern: str | None = None, random: int = 0, seed: int = 0) -> list[str]:
    """The names of the cases to run: all, the quick ones, those that match, and so many drawn at random."""
    names = list(QUICK) if quick and pattern is None else [case.name for case in cases.NAMED]
    if pattern is not None:
        names = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
    elif random:
        names = []
    return names + [case.name for case in cases.random_cases(seed, random)]


# ---- one process


def run_peer(
    job: dict[str, Any], interpreter: str, cpus: list[int] | None, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Results of one peer by name of the case. A process that dies is followed by one for the remaining cases."""
    results: dict[str, Any] = {}
    remaining = list(job["cases"])
    while remaining:
        done, unfinished, trouble = run_process(job | {"cases": remaining}, interpreter, cpus, progress)
        results |= done
        remaining = [name for name in remaining if name not in results]
        if not trouble:
            break
        if unfinished is None:  # it has not even begun, and never will
            if job["peer"] == "s2dq":
                raise WorkerError(trouble)
            return results | {name: {"cannot": trouble} for name in remaining}
        results[unfinished] = {"cannot": trouble}
        remaining.remove(unfinished)
    return results


def run_process(
    job: dict[str, Any], interpreter: str, cpus: list[int] | None, progress: Callable[[str], None]
) -> tuple[dict[str, Any], str | None, str | None]:
    """(results, the case in which the process ended or None, what went wrong or None)."""
    results: dict[str, Any] = {}
    unfinished = None
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        with start(interpreter, cpus, job["threads"], log) as process, Watchdog(process) as watchdog:
            assert process.stdin and process.stdout, "pipes, both"
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(job))
                process.stdin.close()
            for line in process.stdout:
                watchdog.restart()
                report = json.loads(line)
                if "begin" in report:
                    unfinished = report["begin"]
                    progress(f"{job['peer']}: {len(results) + 1} of {len(job['cases'])}, {unfinished}")
                elif "case" in report:
                    results[report.pop("case")] = compact(report)
                    unfinished = None
        if len(results) == len(job["cases"]):
            return results, None, None
        log.seek(0)
        last = [line.strip() for line in log if line.strip()][-1:]
    reason = f"no sign of life for {SILENCE} s" if watchdog.bit else f"the process ended with {process.returncode}"
    return results, unfinished, ": ".join([reason, *last])


def start(interpreter: str, cpus: list[int] | None, threads: int, log: IO[str]) -> Process:
    """Start a worker on `cpus`, its libraries held to `threads`."""
    environment = dict(os.environ) | dict.fromkeys(THREAD_VARIABLES, str(threads))
    environment |= {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1", "TF_CPP_MIN_LOG_LEVEL": "3",
                    "PYTHONWARNINGS": "ignore"}
    environment.pop("S2DQ_NUM_THREADS", None)
    # The package that runs this one, wherever the other interpreter has its own.
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(s2dq.__file__).parents[1])] + (
        [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []))
    command = [interpreter, "-P", "-m", "s2dq.bench.worker"]
    with affinity(cpus):  # a child inherits it before it imports anything
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                env=environment)


class Watchdog:
    """Ends a process that has been silent for too long, or that is left by an exception."""

    def __init__(self, process: Process) -> None:
        self.process, self.bit = process, False

    def __enter__(self) -> Self:
        self.timer = threading.Timer(SILENCE, self.bite)
        self.timer.daemon = True
        self.timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.timer.cancel()
        if kind is not None:
            self.process.kill()

    def restart(self) -> None:
        self.timer.cancel()
        self.__enter__()

    def bite(self) -> None:
        self.bit = True
        self.process.kill()


def pinned_cpus(threads: int) -> list[int] | None:
    """The last CPUs that this process may use, one per thread; None where there is no affinity."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[-threads:]


@contextlib.contextmanager
def affinity(cpus: list[int] | None) -> Iterator[None]:
    if cpus is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def versions_of(peer: str, interpreters: Mapping[str, str]) -> dict[str, str] | None:
    """`{distribution: version}` of a peer, None if it is not installed."""
    if peer not in interpreters:
        return peers.versions(peer)
    program = "import json, sys; from s2dq.bench import peers; json.dump(peers.versions(sys.argv[1]), sys.stdout)"
    environment = dict(os.environ) | {"PYTHONPATH": str(Path(s2dq.__file__).parents[1])}
    done = subprocess.run([interpreters[peer], "-c", program, peer], capture_output=True, text=True, errors="replace",
                          env=environment)  # fmt: skip
    if done.returncode:
        raise WorkerError(f"{peer}: {interpreters[peer]} cannot run s2dq: {done.stderr.strip().splitlines()[-1:]}")
    try:
        found: dict[str, str] | None = json.loads(done.stdout)
    except ValueError:
        raise WorkerError(f"{peer}: {interpreters[peer]} is no Python that runs s2dq, or one that prints") from None
    return found


# ---- what goes into the result


def describe_case(name: str, results: dict[str, Any], instruction_set: str) -> Row:
    case = cases.find(name)
    nbytes = next((result["nbytes"] for result in results.values() if "nbytes" in result), None)
    k = budget(case, nbytes, instruction_set) if nbytes else None
    for result in results.values():
        result.pop("nbytes", None)
    return {"name": name, "operator": case.operator, "nbytes": nbytes, "k": k, "runs": [results]}


def compact(report: dict[str, Any]) -> dict[str, Any]:
    """A worker's report in microseconds and four digits."""
    result: dict[str, Any] = {key: report[key] for key in ("nbytes", "cannot", "problems") if key in report}
    if "copy" in report:
        result["copy"] = four_digits(report["copy"]["seconds"] * 1e6)
    for kind in ("out", "fresh"):
        if kind in report:
            timing = report[kind]
            figures = map(four_digits, (timing["seconds"] * 1e6, timing["copies"]))
            spread = (round(quartile, 2) for quartile in timing["spread"])
            result[kind] = [*figures, *spread, timing["samples"], timing["how"]]
    return result


def four_digits(number: float) -> float:
    return float(f"{number:.4g}")


def describe_machine(threads: int, cpus: list[int] | None) -> dict[str, Any]:
    """What `show_config` says, the CPU's name and today's date."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        s2dq.show_config()
    config = dict(line.split(": ", 1) for line in text.getvalue().splitlines())
    machine = {key: config[key] for key in ("s2dq", "python", "numpy", "platform", "compiler", "instruction set")}
    machine["instruction set"] = machine["instruction set"].split()[0]
    return {"cpu": cpu_name(), **machine, "threads": threads, "pinned to": cpus,
            "date": datetime.date.today().isoformat()}


def cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def to_json(result: dict[str, Any]) -> str:
    """The result as JSON, one case a line."""
    head = {key: value for key, value in result.items() if key != "cases"}
    lines = [json.dumps(row, separators=(",", ":")) for row in result["cases"]]
    return json.dumps(head, indent=1)[:-2] + ',\n "cases": [\n' + ",\n".join(lines) + "\n]}\n"


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `to_json` made."""
    result = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(result, dict) or not {"machine", "settings", "peers", "cases"} <= set(result):
        raise ValueError(f"{path} is no result of s2dq bench")
    return result

"""`s2dq preprocess --workers`: the same files as one process writes, and no process left behind."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import jobs
from s2dq import _workers, cli
from s2dq.cli import main

Image = pytest.importorskip("PIL.Image")

POSIX = pytest.mark.skipif(os.name != "posix", reason="POSIX only")
PROC = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="no /proc")
NAMES = ["a.png", "b.png", "c.png", "d.png"]


@pytest.fixture
def images(tmp_path, monkeypatch, rng):
    """Four images of as many sizes in the working directory."""
    monkeypatch.chdir(tmp_path)
    for k, name in enumerate(NAMES):
        Image.fromarray(rng.integers(0, 256, (20 + 2 * k, 36, 3), np.uint8)).save(name)
    return tmp_path


def run(capsys, *argv):
    code = main([str(argument) for argument in argv])
    return code, *capsys.readouterr()


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def without_times(table):
    return [line.rsplit(maxsplit=2)[0].replace("serial", "shared") for line in table.splitlines()[1:]]


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_workers_write_what_one_process_writes(images, capsys, workers):
    Path("notes.png").write_text("no image")
    names = [*NAMES[:2], "notes.png", "missing.png", *NAMES[2:]]
    options = ["--size", "48x48", "--block-size", "2", "--preview", "--mean", "0.4,0.5,0.6", "--scale", "0.02"]
    code, out, err = run(capsys, "preprocess", *names, "-o", "serial", *options)
    shared = run(capsys, "preprocess", *names, "-o", "shared", *options, "--workers", workers)
    assert code == shared[0] == 1
    assert err == shared[2] and err.count("error: ") == 2 and "notes.png" in err
    assert without_times(out) == without_times(shared[1]) and len(without_times(out)) == 4
    assert files("serial") == files("shared") and len(files("shared")) == 12


def test_a_terminal_gets_a_progress_bar(images, capsys, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    code, _, err = run(capsys, "preprocess", *NAMES, "-o", "out", "--workers", "2")
    assert code == 0 and "0/4" in err and "image" in err


@pytest.mark.parametrize("option, fragment", [
    (("--workers", "0"), "at least 1"), (("--workers", "2", "--num-threads", "2"), "--num-threads"),
    (("--scheduler", "tcp://127.0.0.1:1", "--num-threads", "2"), "--num-threads"),
    (("--workers", "2", "--scheduler", "tcp://127.0.0.1:1"), "not allowed with"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(images, capsys, option, fragment):
    code, out, err = run(capsys, "preprocess", *NAMES, "-o", "out", *option)
    assert (code, out) == (2, "") and err.startswith("s2dq: error: ") and err.count("\n") == 1 and fragment in err
    assert not Path("out").exists()


def test_a_scheduler_without_dask_is_one_line(images, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = run(capsys, "preprocess", *NAMES, "-o", "out", "--scheduler", "tcp://127.0.0.1:1")
    assert code == 1 and err == 's2dq: error: --scheduler needs Dask: pip install "s2dq[dask]"\n'


@pytest.mark.parametrize("address", ["foo", "", "http://x", "inproc://x", "tls://127.0.0.1:1", "tcp://[::1"])
def test_an_address_that_is_none_is_one_line(images, address):
    """In a process of its own: what a client leaves behind waits, and complains, when that ends."""
    pytest.importorskip("distributed")
    command = [sys.executable, "-m", "s2dq", "preprocess", "a.png", "-o", "out", "--scheduler", address]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"s2dq: error: --scheduler {address}: ") and done.stderr.count("\n") == 1


def test_jobs_are_done_once_each_in_other_processes():
    done = dict(_workers.in_processes(jobs.job_and_process, list("abcdefgh"), 2))
    assert [done[k][0] for k in range(8)] == list("abcdefgh")
    processes = {process for _, process in done.values()}
    assert 1 <= len(processes) <= 2 and os.getpid() not in processes
    assert children() == []


def test_a_worker_that_dies_ends_no_run():
    """It costs the job that it was doing, and no other."""
    done = dict(_workers.in_processes(jobs.end_hard, range(6), 2))
    assert done.pop(1) == "a worker process died, twice; is there enough memory?"
    assert done == {k: f"{k} done" for k in (0, 2, 3, 4, 5)}
    assert children() == []


@pytest.mark.parametrize("workers", [1, 3])
def test_a_job_whose_worker_died_is_tried_once_more_and_alone(tmp_path, workers):
    done = dict(_workers.in_processes(jobs.end_hard_once, [(k, str(tmp_path)) for k in range(6)], workers))
    assert done.pop(1) == 5, "the others that were done before it was tried again"
    assert done == {k: k for k in (0, 2, 3, 4, 5)}


def test_a_worker_that_is_killed_over_and_over_ends_no_run():
    done = list(_workers.in_processes(jobs.die, range(3), 2))
    assert sorted(number for number, _ in done) == [0, 1, 2]
    assert all("died, twice" in text for _, text in done)
    assert children() == []


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="no /proc")
@pytest.mark.thread_unsafe(reason="counts what the process has open")
def test_workers_that_have_died_keep_nothing_open():
    count = []
    with contextlib.closing(_workers._team(jobs.die, range(8), range(8), 2)) as done:
        for _, outcome in done:
            assert outcome is _workers.DIED
            count.append(len(os.listdir("/proc/self/fd")))
    assert len(count) == 8 and max(count) == count[0], "one worker is left, or two: as after the first has died"


def test_what_a_job_raises_is_told():
    assert dict(_workers.in_processes(jobs.raise_oddly, [5], 2)) == {0: "ZeroDivisionError: of job 5"}


@pytest.mark.parametrize("before", [0, 1])
def test_a_job_that_cannot_be_sent_leaves_no_worker(before):
    work = _workers.in_processes(jobs.job_and_process, [*range(before), lambda: None], 1)
    with pytest.raises((AttributeError, pickle.PicklingError)) as raised:  # which keeps alive what its frames hold
        list(work)
    assert children() == [] and raised.tb


def test_a_run_that_is_given_up_stops_its_workers():
    start = time.monotonic()
    work = _workers.in_processes(jobs.sleep_long, range(8), 2)
    assert next(work) == (0, 0)
    work.close()
    assert time.monotonic() - start < 120
    assert children() == []


def children():
    """The live workers among the children of this process."""
    import multiprocessing

    return multiprocessing.active_children()


def processes_of(group):
    """Process ids of a process group that have not ended."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                state, _, number = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            except OSError:  # it has ended meanwhile
                continue
            if int(number) == group and state != "Z":
                found.append(int(folder.name))
    return found


def wait_until(claim, seconds=120):
    end = time.monotonic() + seconds
    while not claim() and time.monotonic() < end:
        time.sleep(0.02)
    return claim()


@POSIX
@PROC
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_worker_costs_no_image(images, number):
    """One of two workers is killed while it reads; its image is read again at the end, and all are written."""
    os.mkfifo("wait.png")
    whole = Path("d.png").read_bytes()
    command = [sys.executable, "-m", "s2dq", "preprocess", "wait.png", "a.png", "b.png", "c.png", "-o", "out",
               "--workers", "2"]  # fmt: skip
    with group_of(command) as process:
        with open("wait.png", "wb"):  # returns when a worker has opened it
            assert wait_until(lambda: Path("out/c.json").exists())
            worker = reader_of("wait.png", process.pid)
            Path("wait.tmp").write_bytes(whole)
            os.replace("wait.tmp", "wait.png")  # for the second try; the first still reads the fifo
            os.kill(worker, number)
        out, err = process.communicate(timeout=180)
        assert wait_until(lambda: processes_of(process.pid) == [])
    assert (process.returncode, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[1:]] == [f"out/{name}.npy" for name in ("wait", "a", "b", "c")]
    assert sorted(os.listdir("out")) == sorted(f"{k}.{s}" for k in ("wait", "a", "b", "c") for s in ("json", "npy"))


def test_a_worker_that_dies_while_it_writes_leaves_no_half_file(images, capsys, monkeypatch):
    """Nor does its second try. Those of other runs stay."""
    Path("out").mkdir()
    Path("out/.s2dq-0123456789abcdef.tmp").touch()
    monkeypatch.setattr(cli, "attempt", jobs.die_writing)
    code, out, err = run(capsys, "preprocess", *NAMES, "-o", "out", "--workers", "2")
    assert (code, out, err.count("died, twice")) == (1, "", 4)
    assert os.listdir("out") == [".s2dq-0123456789abcdef.tmp"]


@contextlib.contextmanager
def group_of(command, **options):
    """A process that leads a group of its own, of which nothing is left afterwards."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, **options)  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None or processes_of(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def reader_of(name, group):
    """The process of a group that has a file open."""
    for number in processes_of(group):
        for link in Path(f"/proc/{number}/fd").iterdir():
            if os.path.realpath(link) == os.path.realpath(name):
                return number
    raise AssertionError(f"nobody reads {name}")


@POSIX
@PROC
@pytest.mark.parametrize("whom, number, code", [
    ("group", signal.SIGINT, 130), ("parent", signal.SIGINT, 130), ("parent", signal.SIGKILL, -signal.SIGKILL),
    ("group", signal.SIGTERM, 143), ("parent", signal.SIGTERM, 143),
])  # fmt: skip
def test_an_interrupt_leaves_no_process_and_no_half_file(images, whom, number, code):
    """Ctrl-C signals the whole group. Two workers wait for pipes that nobody writes; one image is done before."""
    for name in ("wait1.png", "wait2.png"):
        os.mkfifo(name)
    command = [sys.executable, "-m", "s2dq", "preprocess", "a.png", "wait1.png", "wait2.png", "b.png", "c.png",
               "-o", "out", "--workers", "2"]  # fmt: skip
    # Whoever runs the tests in the background may have left the signal ignored, and children inherit that.
    default = {} if number == signal.SIGKILL else {"preexec_fn": lambda: signal.signal(number, signal.SIG_DFL)}
    with group_of(command, **default) as process:
        with open("wait1.png", "wb"), open("wait2.png", "wb"):  # they return when the workers have opened them
            assert wait_until(lambda: Path("out/a.json").exists())
            time.sleep(1)  # for the parent to hear of it
            (os.killpg if whom == "group" else os.kill)(process.pid, number)
            out, err = process.communicate(timeout=180)
            assert wait_until(lambda: processes_of(process.pid) == [])
    assert process.returncode == code
    if number != signal.SIGKILL:
        assert err == ""
        assert "a.npy" in out and "b.npy" not in out
        assert sorted(os.listdir("out")) == ["a.json", "a.npy"]

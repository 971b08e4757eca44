"""Jobs on other processes of this machine, or on those of a Dask cluster.

Both ways are generators of ``(number of the job, what the function returned)``, in the order in which jobs are done;
for a job whose worker failed, the second is a text that says so. One that is closed early, or interrupted, leaves
nothing running behind.

Processes are spawned, not forked: a child of a process with OpenMP threads and locks has copies of locks that nobody
opens. A worker ends when its parent does, however that ends.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

CONNECT_SECONDS = 10


def in_processes(function, jobs, count):
    """``function(job)`` for each job, in `count` processes."""
    context = multiprocessing.get_context("spawn")
    stop, others = context.Event(), set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(min(count, len(jobs)), context, _begin, (stop,))
    left, lost = {}, set(range(len(jobs)))
    try:
        with contextlib.suppress(BrokenProcessPool), _interrupts_held():
            for number, job in enumerate(jobs):
                left[executor.submit(_work, function, job)] = number
        for future in as_completed(list(left)):
            number = left.pop(future)
            try:
                outcome = _outcome(future)
            except BrokenProcessPool:
                continue
            lost.remove(number)
            yield number, outcome
        for number in sorted(lost):
            yield number, "a worker process died; is there enough memory?"
    finally:
        if left:
            stop.set()
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
        with contextlib.suppress(OSError):  # of pipes that a broken pool has closed already
            executor.shutdown(cancel_futures=True)


def _outcome(future):
    """The result of a future, or what it ended with: of an executor or of a client."""
    try:
        return future.result()
    except BrokenProcessPool:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _interrupts_held():
    """Keep Ctrl-C back while processes start: they inherit that, and never see the one that the terminal sends."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_stop = None  # of a worker: the event that says there is nothing more to do


def _begin(stop):
    """Prepare a worker: its parent alone says when to stop, by `stop` and SIGTERM, or by its own end."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)


def _work(function, job):
    """One job, which SIGTERM interrupts as Ctrl-C would: half-written files are cleaned up."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if _stop.is_set():  # set before the signal is sent, so that one of the two is seen
            raise KeyboardInterrupt
        return function(job)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _interrupt(number, frame):
    raise KeyboardInterrupt


def on_cluster(function, jobs, address):
    """``function(job)`` for each job, on the workers of the Dask scheduler at `address`."""
    import distributed

    client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    left = {}
    try:
        # Not pure: files are written, so a job that was done before has to be done again.
        futures = client.map(function, jobs, pure=False)
        left = {future.key: number for number, future in enumerate(futures)}
        with client.as_current():  # as_completed asks for it; the program's own default client stays what it is
            done = distributed.as_completed(futures)
        for future in done:
            number = left.pop(future.key)
            yield number, _outcome(future)
    finally:
        if left:
            client.cancel(futures)
        client.close()

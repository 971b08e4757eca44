"""Jobs on other processes of this machine, or on those of a Dask cluster.

Both ways are generators of ``(number of the job, what the function returned)``, in the order in which jobs are done;
for a job whose worker failed, the second is a text that says so. One that is closed early, or interrupted, leaves
nothing running behind.

Processes are spawned, not forked: a child of a process with OpenMP threads and locks has copies of locks that nobody
opens. Each has a pipe of its own and one job at a time, and shares no queue and no lock with the others: one that is
killed, whatever it was doing, is missed by nobody but the job it had. A worker ends when its parent does, however that
ends.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn, TypeAlias, cast

CONNECT_SECONDS = 10

Pipe: TypeAlias = Any  # a Connection, which has another name on Windows
Outcomes: TypeAlias = Generator[tuple[int, Any], None, None]

DIED = object()  # in place of what a function returned


def in_processes(function: Callable[[Any], Any], jobs: Sequence[Any], count: int) -> Outcomes:
    """``function(job)`` for each job, in `count` processes.

    A job whose worker died is tried once more, when there is no other: it may have been the memory of all together.
    """
    lost = []
    with contextlib.closing(_team(function, jobs, range(len(jobs)), count)) as done:
        for number, outcome in done:
            if outcome is DIED:
                lost.append(number)
            else:
                yield number, outcome
    for number in lost:
        with contextlib.closing(_team(function, jobs, [number], 1)) as done:
            for _, outcome in done:
                yield number, "a worker process died, twice; is there enough memory?" if outcome is DIED else outcome


def _team(function: Callable[[Any], Any], jobs: Sequence[Any], numbers: Iterable[int], count: int) -> Outcomes:
    """The jobs of these numbers, each given to one of `count` workers; one that dies is replaced."""
    left, ended = deque(numbers), []
    team: dict[Pipe, tuple[BaseProcess, int]] = {}
    try:
        while left or team:
            while left and len(team) < count:
                process, connection = _start(function)
                _hand_over(team, process, connection, jobs, left)
            for connection in cast(list[Pipe], wait(list(team))):
                process, number = team[connection]
                try:
                    outcome, alive = connection.recv(), True
                except (EOFError, OSError):  # half a message, too, is none
                    outcome, alive = DIED, False
                if alive and left:
                    _hand_over(team, process, connection, jobs, left)
                else:
                    ended.append(process)
                    del team[connection]
                    connection.close()  # which tells the worker to end
                if not alive:  # each has two descriptors open, and there may be more of them than of workers
                    process.join()
                    ended.remove(process)
                    process.close()
                yield number, outcome
    finally:
        for connection, (process, _) in team.items():
            process.terminate()
            connection.close()
            ended.append(process)
        for process in ended:
            process.join()


def _start(function: Callable[[Any], Any]) -> tuple[BaseProcess, Pipe]:
    """A worker, and the connection to it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, function), daemon=True)
    with theirs, _interrupts_held():  # open in nobody but the worker, it ends with it
        process.start()
    return process, ours


def _hand_over(
    team: dict[Pipe, tuple[BaseProcess, int]], process: BaseProcess, connection: Pipe, jobs: Sequence[Any],
    left: deque[int],
) -> None:  # fmt: skip
    """Give a worker the next job. It is in the team before that, for sending may fail or be interrupted."""
    number = left.popleft()
    team[connection] = process, number
    with contextlib.suppress(OSError):  # it has died since: the next that is heard of it
        connection.send(jobs[number])


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C and SIGTERM back while a process starts, which inherits that.

    It never sees the Ctrl-C that the terminal sends, and SIGTERM when it has something to clean up.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # whose start, else within the first process's, lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Pipe, function: Callable[[Any], Any]) -> None:
    """The life of a worker: jobs, until the connection is closed, or SIGTERM ends it.

    SIGTERM interrupts a job as Ctrl-C would: half-written files are cleaned up. Ctrl-C itself is the parent's affair.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt, EOFError, OSError):
        signal.signal(signal.SIGTERM, _interrupt)
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # see _interrupts_held
        try:
            while True:
                job = connection.recv()
                try:
                    outcome = function(job)
                except Exception as error:
                    outcome = _told(error)
                connection.send(outcome)
        finally:  # a worker that ends has nothing left to interrupt
            signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent, "this runs in workers"
    parent.join()
    os._exit(1)


def _interrupt(number: int, frame: Any) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # once: a group's signal and the parent's may both come
    raise KeyboardInterrupt


def _told(error: BaseException) -> str:
    """What a job ended with, as a text: not every exception survives the way back from a worker."""
    return f"{type(error).__name__}: {error}"


def on_cluster(function: Callable[[Any], Any], jobs: Sequence[Any], address: str) -> Outcomes:
    """``function(job)`` for each job, on the workers of the Dask scheduler at `address`."""
    import distributed

    client = _client(address)
    left = {}
    try:
        # Not pure: files are written, so a job that was done before has to be done again.
        futures = client.map(function, jobs, pure=False)
        left = {future.key: number for number, future in enumerate(futures)}
        with client.as_current():  # as_completed asks for it; the program's own default client stays what it is
            done = distributed.as_completed(futures)
        for future in done:
            number = left.pop(future.key)
            try:
                outcome = future.result()
            except Exception as error:
                outcome = _told(error)
            yield number, outcome
    finally:
        if left:
            client.cancel(futures)
        client.close()


def _client(address: str) -> Any:
    """A client of the scheduler at `address`, which closes where it does not come to one.

    Dask closes it only where nobody answers. What an address that is none leaves behind would wait for itself at exit,
    and complain.
    """
    import distributed

    client = distributed.Client.__new__(distributed.Client)  # held before it connects, to be closed if that fails
    try:
        client.__init__(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except BaseException:
        client.close()
        raise
    return client

"""What tests let other processes do: these import it by name, which they cannot do with a test's own module."""

import os
import time

import numpy as np

import s2dq

FRAME = (1, 2048, 2048, 3)  # 12 MiB of int8


def job_and_process(job):
    return job, os.getpid()


def end_hard(job):
    if job == 1:
        os._exit(9)
    time.sleep(0.01)
    return f"{job} done"


def end_hard_once(job):
    """Job 1 dies when it is done first; then it tells how many others had been done before it began again."""
    number, folder = job
    if number == 1:
        others = len([name for name in os.listdir(folder) if name.startswith("done")])
        try:
            os.mkdir(os.path.join(folder, "tried"))
        except FileExistsError:
            return others
        os._exit(9)
    time.sleep(0.01)
    os.mkdir(os.path.join(folder, f"done{number}"))
    return number


def die(job):
    os._exit(9)


def die_writing(job, mark, **keywords):
    """In place of `s2dq.cli.attempt`: what the kernel does where memory is short."""
    from s2dq.cli import write_atomically

    def write(file):
        file.write(b"half")
        file.flush()
        os._exit(9)

    write_atomically(job[1] + ".npy", write, mark)


def raise_oddly(job):
    raise ZeroDivisionError(f"of job {job}")


def sleep_long(job):
    time.sleep(300 if job else 0)
    return job


def pid_of(block):
    return np.full((1,) * block.ndim, os.getpid())


def frame(block_id):
    """Frame number n: bytes that tell their place."""
    return np.random.default_rng(block_id[0]).integers(-128, 128, FRAME, np.int8)


def is_right(block, block_id):
    """Whether a chunk is the whole of a frame, rearranged."""
    same = np.array_equal(block, s2dq.space_to_depth(frame(block_id), 2, num_threads=1))
    return np.full((1,) * block.ndim, same)

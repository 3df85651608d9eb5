"""Whoever reads what the programs say may stop reading, close it, or interrupt at the first moment."""
import array
import contextlib
import fcntl
import os
import signal
import termios

import pytest

from foreign_client import ForeignStream
from honest_cluster import ENDLESS, HonestCluster
from messages import coordinator, parameter_server
from real_cluster import BIN, Process, children_of, wait_for, write_job


class UnreadPipe:
    """A pipe of one page that nobody reads. `into(fd)` is what to start a program with, so that it writes to it."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path, self.fd = path, os.open(path, os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(self.fd, 1031, 4096)  # F_SETPIPE_SZ

    def into(self, descriptor):
        return ["sh", "-c", f'exec "$@" {descriptor}>"$0"', str(self.path)]

    def full(self):
        """A line more would not fit."""
        waiting = array.array("i", [0])
        fcntl.ioctl(self.fd, termios.FIONREAD, waiting)
        return waiting[0] > 3500

    def close(self):
        os.close(self.fd)


@pytest.fixture
def unread(tmp_path):
    with contextlib.ExitStack() as stack:
        def make(name):
            pipe = UnreadPipe(tmp_path / name)
            stack.callback(pipe.close)
            return pipe
        yield make


def fill(pipe, address, method, nonsense):
    """Has the daemon at `address` log until nobody can, and then some."""
    with contextlib.ExitStack() as streams:
        def provoke():
            streams.enter_context(ForeignStream(address, method)).send(nonsense)
            return pipe.full()
        wait_for(provoke, "a full pipe")
        for _ in range(50):
            provoke()


@pytest.mark.parametrize("task", ["ps", "chief"])
def test_a_log_that_nobody_reads_stops_no_daemon(tmp_path, unread, task):
    pipe = unread("stderr")
    with HonestCluster(tmp_path) as cluster:
        cluster.start_all({task: pipe.into(2)})
        if task == "ps":
            fill(pipe, cluster.spec["ps"][0], "ParameterServer/Exchange", parameter_server.ExchangeRequest())
        else:
            fill(pipe, cluster.chief, "Coordinator/Work", coordinator.WorkerReport())
        cluster.check_serves()
        for process in (cluster.coordinator, *cluster.ps):
            process.signal(signal.SIGTERM)
        for process in (cluster.coordinator, *cluster.ps):
            assert process.wait(60) == 143


def train(tmp_path, *arguments, prefix=(), **job):
    """`shoal train` of a job, into tmp_path/run."""
    path = write_job(tmp_path / "job", **job)
    return Process([BIN / "shoal", "train", path, "--run_dir", tmp_path / "run", *arguments], tmp_path / "train.log",
                   prefix=prefix)


def test_a_console_that_nobody_reads_keeps_no_training_going(tmp_path, unread):
    pipe = unread("stdout")
    process = train(tmp_path, "--verbose", prefix=pipe.into(1), **ENDLESS)
    try:
        wait_for(pipe.full, "a full pipe")
        process.signal(signal.SIGTERM)
        assert process.wait(60) == 143, process.output()[-3000:]
    finally:
        process.kill()


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_console_that_is_closed_is_no_file_of_the_run(tmp_path, closed):
    process = train(tmp_path, prefix=["sh", "-c", f'exec "$@" {closed}', "sh"])
    try:
        # It trains to its end; what could not be printed is a failure, as it is of every command.
        assert process.wait() == (78 if ">&-" in closed.split() else 0), process.output()[-3000:]
    finally:
        process.kill()
    assert (tmp_path / "run/model").exists()
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file() and path.parent.name != "logs":
            assert b"training small" not in path.read_bytes() and b"epoch 1/" not in path.read_bytes(), path
    assert (tmp_path / "run/.lock").read_bytes() == b""


def test_an_interrupt_at_the_first_moment_stops_in_order(tmp_path):
    for attempt in range(3):
        process = train(tmp_path / str(attempt), **ENDLESS)
        try:
            wait_for(lambda p=process: children_of(p.popen.pid), "the first child")
            process.signal(signal.SIGINT)
            assert process.wait(60) == 143, process.output()[-3000:]
            assert "failed" not in process.output() and "SIGTERM" not in process.output(), process.output()
        finally:
            process.kill()

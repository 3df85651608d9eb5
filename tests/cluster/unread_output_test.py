"""Standard output and error that nobody reads, or that are closed: nothing waits, and nothing lands where it should not."""
import fcntl
import os
import signal
import socket
import subprocess

import pytest

from real_cluster import BIN, PATIENCE_SECONDS, Cluster, children_of, finished_steps, wait_for, with_parent, write_job
from tls_mode import with_certificate


@pytest.fixture
def unread():
    """The write end of a pipe that is full to the brim, and that nobody reads."""
    reader, writer = os.pipe()
    flags = fcntl.fcntl(writer, fcntl.F_GETFL)
    fcntl.fcntl(writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    for size in (4096, 1):
        try:
            while True:
                os.write(writer, b"x" * size)
        except BlockingIOError:
            pass
    fcntl.fcntl(writer, fcntl.F_SETFL, flags)
    yield writer
    os.close(reader)
    os.close(writer)


class Unread:
    """Starts programs with a pipe that nobody reads in the place of some of their output; kills them in the end."""

    def __init__(self, writer):
        self.writer, self.processes = writer, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    def start(self, *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **environment):
        clean = {k: v for k, v in os.environ.items() if k not in ("TF_CONFIG", "SHOAL_BIN")}
        arguments, environment = with_certificate(arguments, environment)
        process = subprocess.Popen([*with_parent(), *arguments], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                                   env={**clean, **environment})
        self.processes.append(process)
        return process


def listens(address):
    host, port = address.split(":")
    with socket.socket() as asking:
        return asking.connect_ex((host, int(port))) == 0


def test_a_job_whose_log_nobody_reads_is_trained(tmp_path, unread):
    job = write_job(tmp_path)
    with Cluster(tmp_path) as cluster, Unread(unread) as unread_log:
        def start(task_type, *arguments):
            return unread_log.start(BIN / f"shoal-{'coordinator' if task_type == 'chief' else task_type}", *arguments, stderr=unread,
                                    TF_CONFIG=cluster.tf_config(task_type, 0))
        cluster.spec["worker"] = cluster.spec["worker"][:1]
        server, worker = start("ps"), start("worker", "--threads=1")
        chief = start("chief", f"--job={job}", f"--run_dir={tmp_path / 'run'}")
        for process in (chief, server, worker):
            assert process.wait(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("task_type", ["ps", "chief"])
def test_a_daemon_whose_log_nobody_reads_ends_on_sigterm(tmp_path, unread, task_type):
    job = write_job(tmp_path)
    with Cluster(tmp_path) as cluster, Unread(unread) as unread_log:
        program, arguments = {"ps": ("shoal-ps", []),
                              "chief": ("shoal-coordinator", [f"--job={job}", f"--run_dir={tmp_path / 'run'}"])}[task_type]
        daemon = unread_log.start(BIN / program, *arguments, stderr=unread, TF_CONFIG=cluster.tf_config(task_type, 0))
        address = cluster.chief if task_type == "chief" else cluster.spec["ps"][0]
        wait_for(lambda: listens(address), "it listens")
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(PATIENCE_SECONDS) == 143


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_shoal_train_whose_output_nobody_reads_ends_on_sigterm(tmp_path, unread, stream):
    job = write_job(tmp_path, examples=8000, epochs=100000)
    records = tmp_path / "records"
    records.mkdir()
    with Unread(unread) as unread_output:
        train = unread_output.start(BIN / "shoal", "train", job, "--verbose", "--run_dir", tmp_path / "run", **{stream: unread},
                                    SHOAL_STEP_RECORDS=str(records))
        wait_for(lambda: finished_steps(records) > 100, "it trains")
        daemons = children_of(train.pid)
        train.send_signal(signal.SIGTERM)
        assert train.wait(PATIENCE_SECONDS) == 143
        assert daemons and not any(os.path.exists(f"/proc/{pid}") for pid in daemons)
    assert list((tmp_path / "run/checkpoints").iterdir()), "it stopped with a checkpoint"


def test_output_on_closed_descriptors_lands_in_no_file(tmp_path):
    job, run = write_job(tmp_path), tmp_path / "run"
    with Unread(None) as closed:
        train = closed.start("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", BIN / "shoal", "train", job, "--run_dir", run)
        assert train.wait(PATIENCE_SECONDS) == 78  # what could not be printed; the job is done
    for path in run.iterdir():
        if path.is_file() and path.suffix != ".json":
            assert "training small with" not in path.read_text(), path
    assert (run / "model").exists()

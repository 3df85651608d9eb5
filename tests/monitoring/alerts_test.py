"""Every alert, fired in the real Prometheus by a fault made to real daemons, and silent again once the fault is over."""
import contextlib
import ctypes
import json
import os
import pathlib
import signal
import threading

import pytest

from mounted_disk import UNSHARE, Disk, can_mount
from prometheus_server import Prometheus, available
from real_cluster import wait_for
from watched_cluster import WatchedCluster

pytestmark = pytest.mark.skipif(not available(), reason="needs prometheus and promtool")


@contextlib.contextmanager
def watched(tmp_path, cluster):
    with Prometheus(tmp_path / "prometheus", cluster.targets()) as prometheus:
        prometheus.await_targets(len(cluster.watched))
        # Steps are done, and no alert is pending or firing: from here on it is the fault's.
        wait_for(lambda: prometheus.query("shoal:steps:rate1m > 0") and not prometheus.ask("alerts")["alerts"], "a healthy cluster")
        yield prometheus


def test_alerts_of_processes_that_are_lost(tmp_path):
    with WatchedCluster(tmp_path) as cluster:
        cluster.start_all()
        with watched(tmp_path, cluster) as prometheus:
            cluster.watched["ps-1"].kill()
            prometheus.await_alert("ShoalPsDown")
            prometheus.await_alert("ShoalNoProgress")
            assert "ShoalCoordinatorDown" not in prometheus.firing()
            cluster.start_watched("ps", 1)
            prometheus.await_silence("ShoalPsDown")
            prometheus.await_silence("ShoalNoProgress")

            cluster.watched["chief-0"].kill()
            prometheus.await_alert("ShoalCoordinatorDown")
            cluster.start_watched("chief")
            prometheus.await_silence("ShoalCoordinatorDown")

            for i in range(2):
                cluster.watched[f"worker-{i}"].signal(signal.SIGSTOP)
            prometheus.await_alert("ShoalNoProgress")
            assert "ShoalPsDown" not in prometheus.firing()
            for i in range(2):
                cluster.watched[f"worker-{i}"].signal(signal.SIGCONT)
            prometheus.await_silence("ShoalNoProgress")


@pytest.mark.skipif(not can_mount(), reason="needs mount namespaces")
def test_alerts_of_a_full_disk(tmp_path):
    with WatchedCluster(tmp_path) as cluster:
        cluster.run_dir.mkdir()
        mount = f'mount -t tmpfs -o size=1m tmpfs "{cluster.run_dir}" && exec "$0" "$@"'
        for i in range(2):
            cluster.start_watched("ps", i)
        cluster.start_watched("chief", prefix=[*UNSHARE, "sh", "-c", mount])
        for i in range(2):
            cluster.start_watched("worker", i)
        with watched(tmp_path, cluster) as prometheus:
            disk = Disk(cluster.watched["chief-0"].popen.pid, cluster.run_dir)
            disk.fill()
            prometheus.await_alert("ShoalDiskNearlyFull")
            prometheus.await_alert("ShoalCheckpointTooOld")
            assert "ShoalNoProgress" not in prometheus.firing(), "training goes on"
            disk.clear()
            prometheus.await_silence("ShoalDiskNearlyFull")
            prometheus.await_silence("ShoalCheckpointTooOld")


def replace_model(cluster, layers):
    path = cluster.job.parent / "model.json"
    model = json.loads(path.read_text())
    model["config"]["layers"] = model["config"]["layers"][:1] + layers
    path.write_text(json.dumps(model))


def dense(name, units):
    return {"class_name": "Dense", "config": {"name": name, "units": units, "activation": "relu", "use_bias": True}}


FLATTEN = {"class_name": "Flatten", "config": {"name": "flatten"}}


def test_the_alert_of_a_slow_worker(tmp_path):
    with WatchedCluster(tmp_path, examples=200000, batch_size=2048) as cluster:
        replace_model(cluster, [FLATTEN, dense("a", 256), dense("b", 256), dense("c", 4)])  # steps of some milliseconds
        cluster.start_all()
        with watched(tmp_path, cluster) as prometheus:
            healed = threading.Event()

            def hold_up():
                # Runs for a step or two, then stands still while the other does dozens.
                while not healed.is_set():
                    cluster.watched["worker-1"].signal(signal.SIGSTOP)
                    healed.wait(0.3)
                    cluster.watched["worker-1"].signal(signal.SIGCONT)
                    healed.wait(0.02)

            slow = threading.Thread(target=hold_up)
            slow.start()
            try:
                prometheus.await_alert("ShoalStalenessHigh")
            finally:
                healed.set()
                slow.join()
            prometheus.await_silence("ShoalStalenessHigh")


class SlowInput:
    """Stops the thread that reads a worker's data again and again, as a slow disk would."""

    ATTACH, DETACH, WALL = 16, 17, 0x40000000

    def __init__(self, pid):
        self.libc = ctypes.CDLL(None, use_errno=True)
        tasks = pathlib.Path(f"/proc/{pid}/task")
        self.threads = [int(task.name) for task in tasks.iterdir() if (task / "comm").read_text().strip() == "input"]
        assert self.threads
        self.healed = threading.Event()
        # Whether it may be done at all shows here, not in a thread of whose failure nobody hears.
        try:
            self._stop()
        except PermissionError as error:
            pytest.skip(f"needs the right to trace a process: {error}")
        self._go_on()

    def run(self):
        while not self.healed.is_set():
            self._stop()
            self.healed.wait(0.2)
            self._go_on()
            self.healed.wait(0.01)

    def _stop(self):
        for thread in self.threads:
            if self.libc.ptrace(self.ATTACH, thread, None, None) != 0:
                raise OSError(ctypes.get_errno(), f"thread {thread}: {os.strerror(ctypes.get_errno())}")
            os.waitpid(thread, self.WALL)

    def _go_on(self):
        for thread in self.threads:
            self.libc.ptrace(self.DETACH, thread, None, None)


def test_the_alert_of_a_worker_without_input(tmp_path):
    with WatchedCluster(tmp_path, workers=1, examples=40000, batch_size=2000) as cluster:
        replace_model(cluster, [FLATTEN, dense("a", 4)])
        cluster.start_all()
        with watched(tmp_path, cluster) as prometheus:
            fault = SlowInput(cluster.watched["worker-0"].popen.pid)
            slow = threading.Thread(target=fault.run)
            slow.start()
            try:
                prometheus.await_alert("ShoalWorkerStarved")
            finally:
                fault.healed.set()
                slow.join()
            prometheus.await_silence("ShoalWorkerStarved")

"""Every alert, fired in the real Prometheus by a fault made to real daemons, and silent again once the fault is over."""
import contextlib
import json
import signal
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mounted_disk import UNSHARE, Disk, can_mount
from prometheus_server import Prometheus, available
from real_cluster import BIN, finished_steps, wait_for
from watched_cluster import WatchedCluster

pytestmark = pytest.mark.skipif(not available(), reason="needs prometheus and promtool")


def active(prometheus):
    """The alerts that are pending or firing."""
    return {alert["labels"]["alertname"] for alert in prometheus.ask("alerts")["alerts"]}


@contextlib.contextmanager
def watched(tmp_path, cluster, *alerts):
    """Prometheus beside a cluster that does steps and to which none of these alerts, the fault's, applies yet."""
    with Prometheus(tmp_path / "prometheus", cluster.targets()) as prometheus:
        prometheus.await_targets(len(cluster.watched))
        # Others may: on a busy machine a worker lags by itself.
        wait_for(lambda: prometheus.query("shoal:steps:rate1m > 0") and not active(prometheus).intersection(alerts), "a healthy cluster")
        yield prometheus


def test_alerts_of_processes_that_are_lost(tmp_path):
    with WatchedCluster(tmp_path) as cluster:
        cluster.start_all()
        with watched(tmp_path, cluster, "ShoalPsDown", "ShoalNoProgress", "ShoalCoordinatorDown") as prometheus:
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
        with watched(tmp_path, cluster, "ShoalDiskNearlyFull", "ShoalCheckpointTooOld", "ShoalNoProgress") as prometheus:
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
    # Without a test set: a worker that stands still in an evaluation holds up the others.
    with WatchedCluster(tmp_path, batch_size=32, data={"training": {"images": "train-images.idx", "labels": "train-labels.idx"}}) as cluster:
        replace_model(cluster, [FLATTEN, dense("a", 1024), dense("b", 1024), dense("c", 4)])  # steps of some milliseconds
        records = [tmp_path / "records-0", tmp_path / "records-1"]
        for i in range(2):
            cluster.start_watched("ps", i)
        cluster.start_watched("chief")
        for i, directory in enumerate(records):
            directory.mkdir()
            cluster.start_watched("worker", i, [f"--step_records={directory}"])
        with watched(tmp_path, cluster, "ShoalStalenessHigh") as prometheus:
            healed = threading.Event()

            def await_steps(worker, count):
                # Of a page of figures there is none newer than 200 ms, in which a fast machine does a hundred steps.
                goal = finished_steps(records[worker]) + count
                wait_for(lambda: healed.is_set() or finished_steps(records[worker]) >= goal, f"{count} steps of worker {worker}")

            def hold_up():
                # Finishes the step in its hands, then stands still while the other does twenty.
                while not healed.is_set():
                    cluster.watched["worker-1"].signal(signal.SIGSTOP)
                    await_steps(0, 20)
                    cluster.watched["worker-1"].signal(signal.SIGCONT)
                    await_steps(1, 1)

            with ThreadPoolExecutor(1) as threads:
                slow = threads.submit(hold_up)
                try:
                    prometheus.await_alert("ShoalStalenessHigh")
                finally:
                    healed.set()
                slow.result()
            prometheus.await_silence("ShoalStalenessHigh")


SLOW_READS = BIN.parent / "tests/monitoring/libslow_reads.so"


def replace_training_set(cluster, examples):
    """By one of so many examples that the worker reads them from the file, step by step."""
    directory = cluster.job.parent
    random = np.random.default_rng(5)
    for name, header, shape in (("images", (0x803, examples, 8, 8), (examples, 64)), ("labels", (0x801, examples), examples)):
        values = random.integers(0, 4, shape).astype(np.uint8)
        (directory / f"train-{name}.idx").write_bytes(struct.pack(f">{len(header)}I", *header) + values.tobytes())


@pytest.mark.skipif(not SLOW_READS.exists(), reason=f"needs {SLOW_READS}, which a whole build has")
def test_the_alert_of_a_worker_without_input(tmp_path):
    with WatchedCluster(tmp_path, workers=1, batch_size=128) as cluster:
        replace_model(cluster, [FLATTEN, dense("a", 512), dense("b", 4)])  # its input is read in a fraction of a step
        replace_training_set(cluster, examples=1_100_000)  # 70 MB
        gate = tmp_path / "slow"
        for i in range(2):
            cluster.start_watched("ps", i)
        cluster.start_watched("chief")
        cluster.start_watched("worker", LD_PRELOAD=str(SLOW_READS), SLOW_READS=str(gate))
        with watched(tmp_path, cluster, "ShoalWorkerStarved") as prometheus:
            gate.touch()  # from now on a batch takes a quarter of a second
            prometheus.await_alert("ShoalWorkerStarved")
            gate.unlink()
            prometheus.await_silence("ShoalWorkerStarved")

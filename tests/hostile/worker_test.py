"""Strangers where a worker looks for its coordinator."""
import math
import os
import socketserver
import threading

import pytest

from fake_coordinator import ControlOfPs, FakeCoordinator
from fake_ps import FakePs
from honest_cluster import growth_below, resolved, wide_model
from real_cluster import Cluster, shoal, write_job
from tls_mode import on

TIMELINE = 1 << 32


class Website(socketserver.BaseRequestHandler):
    """Is content with whatever it is sent."""

    def handle(self):
        self.request.recv(1 << 16)
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


@pytest.fixture(name="cluster")
def one_cluster(tmp_path):
    with Cluster(tmp_path / "logs") as cluster:
        yield cluster


@pytest.fixture
def chief():
    with FakeCoordinator() as coordinator:
        yield coordinator


def start_worker(cluster, chief, **more):
    return cluster.start("worker", 0, ["--threads=1", f"--chief={chief.address}"], spec=False, **more)


def drain(orders, process):
    """It still does as it is told."""
    orders.drain("enough")
    assert orders.stream.receive("leaving").reason.endswith("enough")
    orders.stream.end()
    assert process.wait() == 143, process.output()[-3000:]


def test_a_lease_of_no_timeline_is_passed_over(tmp_path, cluster, chief):
    job = resolved(write_job(tmp_path / "job"))
    process = start_worker(cluster, chief)
    orders, _ = chief.worker()
    orders.lease(timeline=0, first=0)
    with FakePs() as server:
        orders.welcome(job, [server.address])
        drain(orders, process)


def test_small_leases_of_many_steps_take_no_memory(tmp_path, cluster, chief):
    job = resolved(write_job(tmp_path / "job", examples=40000, batch_size=1, epochs=2000))
    process = start_worker(cluster, chief)
    orders, _ = chief.worker()
    with FakePs(timeline=TIMELINE) as server:  # it answers no pull, so that no step begins
        orders.welcome(job, [server.address])
        orders.open_timeline(TIMELINE)
        with growth_below(process, 100):
            for i in range(64):
                orders.lease(TIMELINE, first=i << 20, count=1 << 20)
            # What it says of the end of its stream comes after what it did with them.
            orders.stream.end()
            process.wait_for_output("lost the coordinator")
        assert process.popen.poll() is None, process.output()[-3000:]


def test_an_evaluation_without_a_test_set_crashes_no_worker(tmp_path, cluster, chief):
    data = {"training": {"images": "train-images.idx", "labels": "train-labels.idx"}}
    job = resolved(write_job(tmp_path / "job", data=data))
    cluster.start("ps")
    with ControlOfPs(cluster.spec["ps"][0], term=TIMELINE) as control:
        control.claim(training_examples=400)
        control.load_seed(job)
        process = start_worker(cluster, chief)
        orders, _ = chief.worker()
        assert orders.welcome(job, cluster.spec["ps"]).test_examples == 0
        orders.open_timeline(TIMELINE)
        orders.lease(TIMELINE, first=0)
        assert orders.stream.receive("steps_done").steps[0].step == 0
        control.hold_cut(1)
        orders.evaluate(TIMELINE, cut_step=1)
        orders.lease(TIMELINE, first=1)
        report = orders.stream.next()
        assert report is not None, process.output()[-3000:]
        if report.WhichOneof("kind") == "leaving":
            assert "test set" in report.leaving.reason
            orders.stream.end()
            assert process.wait() > 0
        else:
            assert report.steps_done.steps[0].step == 1
            drain(orders, process)


def test_files_outside_of_the_data_roots_are_not_read(tmp_path, cluster, chief):
    job = resolved(write_job(tmp_path / "job"))
    (tmp_path / "other").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "job")
    process = start_worker(cluster, chief, SHOAL_DATA_ROOT=f"{tmp_path}/other")
    orders, _ = chief.worker()
    with FakePs() as server:
        orders.take_on(job, [server.address])
        reason = orders.stream.receive("leaving").reason
        orders.stream.end()
        assert process.wait() == 78, process.output()[-3000:]
        assert f"{tmp_path}/job/train-images.idx" in reason and f"--data_root={tmp_path}/other" in reason, reason

        process = start_worker(cluster, chief, SHOAL_DATA_ROOT=f"{tmp_path}/other:{tmp_path}/alias")
        orders, _ = chief.worker()
        assert orders.welcome(job, [server.address]).training_examples == 400
        drain(orders, process)


def test_a_data_root_is_a_directory(tmp_path, cluster):
    process = cluster.start("worker", 0, ["--chief=127.0.0.1:1", f"--data_root={tmp_path}/none"], spec=False)
    assert process.wait() == 78
    assert f"--data_root: {tmp_path}/none" in process.output(), process.output()


def test_a_model_larger_than_memory_is_rejected_by_name(tmp_path, cluster, chief):
    units = math.isqrt(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))  # four times the memory: units² floats
    model = wide_model(units)
    layers = model["config"]["layers"]
    layers.insert(4, {"class_name": "Dense", "config": {"name": "vast", "units": units, "use_bias": False}})
    job = resolved(write_job(tmp_path / "job", model=model))
    process = start_worker(cluster, chief)
    orders, _ = chief.worker()
    with FakePs() as server:
        orders.take_on(job, [server.address])
        assert process.wait() == 78, process.output()[-3000:]
    assert "terminate" not in process.output() and "GiB" in process.output(), process.output()[-3000:]


def test_a_web_server_is_no_coordinator_and_is_called_so(cluster):
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Website) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_address[1]}"
        status = shoal("status", "--chief", address)
        assert status.returncode == 138 and address in status.stderr, status.stderr
        words = "does not use TLS" if on() else "speak gRPC"
        assert words in status.stderr, status.stderr
        process = cluster.start("worker", 0, [f"--chief={address}", "--coordinator_timeout=1"], spec=False)
        assert process.wait() == 138
        assert words in process.output(), process.output()
        server.shutdown()

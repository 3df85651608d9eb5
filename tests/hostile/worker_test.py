"""Strangers where a worker looks for its coordinator."""
import socketserver
import threading

import pytest

from fake_coordinator import FakeCoordinator
from fake_ps import FakePs
from honest_cluster import resolved, wide_model
from real_cluster import Cluster, shoal, write_job


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


def test_a_model_larger_than_memory_is_refused_by_name(tmp_path, cluster, chief):
    model = wide_model(115000)
    layers = model["config"]["layers"]
    layers.insert(4, {"class_name": "Dense", "config": {"name": "vast", "units": 115000, "use_bias": False}})
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
        assert "does not speak gRPC" in status.stderr, status.stderr
        process = cluster.start("worker", 0, [f"--chief={address}", "--coordinator_timeout=1"], spec=False)
        assert process.wait() == 138
        assert "does not speak gRPC" in process.output(), process.output()
        server.shutdown()

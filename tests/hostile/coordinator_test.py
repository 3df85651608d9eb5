"""Strangers at a coordinator: workers and ps that lie, operators' programs that leave."""
import contextlib

import grpc
import pytest

from fake_worker import FakeWorker
from foreign_client import channel
from honest_cluster import HonestCluster
from messages import cluster, cluster_services
from real_cluster import shoal


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    with HonestCluster(tmp_path_factory.mktemp("honest"), workers=2).start_all() as running:
        yield running
        running.check_serves()


@contextlib.contextmanager
def stub(address):
    with channel(address) as open_channel:
        yield cluster_services.ClusterStub(open_channel)


ESCAPES = "\x1b[2J\x1b]0;owned\x07\r\nE0101 00:00:00 the disk is full\x9b31m"


def test_no_text_of_a_peer_moves_the_cursor(honest):
    with FakeWorker(honest.chief, host=ESCAPES, device=ESCAPES) as worker:
        worker.read("welcome")
        worker.leave(ESCAPES)
        worker.half_close()
        worker.ended()
    with FakeWorker(honest.chief, version=ESCAPES) as worker:
        worker.read("rejected")
    with stub(honest.chief) as service, pytest.raises(grpc.RpcError):
        service.Drain(cluster.DrainRequest(type=ESCAPES, index=1), timeout=60)
    log = honest.coordinator.log.read_bytes()
    status = shoal("status", "--chief", honest.chief).stdout.encode()
    for text in (log, status):
        assert not any(byte in text for byte in b"\x1b\x07\r"), text[-3000:]
        assert b"\nE0101 00:00:00 the disk" not in text, text[-3000:]
        assert "\x9b".encode() not in text, text[-3000:]
    honest.check_serves()

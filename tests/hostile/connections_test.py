"""Strangers at the ports of a daemon: more connections than it has descriptors, streams that say nothing, frames without end,
probes' rivals."""
import os
import re
import urllib.request

import pytest

from fake_coordinator import ControlOfPs
from foreign_client import IdleConnections, RawHttp2, SilentStreams
from honest_cluster import FEW_DESCRIPTORS, HonestCluster, growth_below
from real_cluster import Cluster, wait_for
from tls_mode import client_context, on


def descriptors(process):
    return len(os.listdir(f"/proc/{process.popen.pid}/fd"))


def test_connections_are_taken_again_when_descriptors_are(tmp_path):
    with HonestCluster(tmp_path) as cluster:
        cluster.start_all({"ps": FEW_DESCRIPTORS})
        server, before = cluster.ps[0], descriptors(cluster.ps[0])
        taken = []

        def full():
            taken.append(descriptors(server))
            return taken[-1] >= 256 or (len(taken) > 100 and taken[-100] == taken[-1])  # or as many as it takes
        with IdleConnections(cluster.spec["ps"][0], 400):
            wait_for(full, "connections to be taken")
            cluster.check_serves()
        wait_for(lambda: descriptors(server) <= before + 2, "the descriptors to be given back")
        with ControlOfPs(cluster.spec["ps"][0]) as control:
            assert control.hello.timeline == control.claim().timeline
        check_others_get_in(cluster)


def check_others_get_in(cluster):
    """A worker that is new, and whoever asks for the status."""
    cluster.workers[0].kill()
    cluster.workers[0] = cluster.start_worker(0)
    cluster.check_serves()


# As many as a server takes in all, and as many as its descriptors allow.
@pytest.mark.parametrize("prefix, connections, streams", [((), 1100, 4), (FEW_DESCRIPTORS, 300, 1)],
                         ids=["streams", "connections"])
def test_silent_clients_keep_nobody_out(tmp_path, prefix, connections, streams):
    with HonestCluster(tmp_path) as cluster:
        cluster.start_all({"ps": prefix, "chief": prefix})
        with SilentStreams(cluster.spec["ps"][0], "ParameterServer/Exchange", connections, streams), \
                SilentStreams(cluster.chief, "Coordinator/Work", connections, streams):
            check_others_get_in(cluster)
        check_others_get_in(cluster)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    with HonestCluster(tmp_path_factory.mktemp("honest")).start_all() as running:
        yield running


@pytest.mark.parametrize("task", ["ps", "coordinator"])
def test_headers_without_end_are_not_kept(honest, task):
    process, address, method = {"ps": (honest.ps[0], honest.spec["ps"][0], "/shoal.proto.ParameterServer/Control"),
                                "coordinator": (honest.coordinator, honest.chief, "/shoal.proto.Coordinator/Work")}[task]
    fields = b"\0\1a\0" * 4000  # a field "a" without a value, again and again
    with growth_below(process, 64), RawHttp2(address) as client:
        client.headers_without_end(method)
        try:
            for _ in range(2000):  # 32 MB
                client.frame(client.CONTINUATION, fields)
        except OSError:
            pass  # it was cut off
    honest.check_serves()


def test_a_probe_is_answered_whoever_is_silent_at_its_port(tmp_path):
    with Cluster(tmp_path) as cluster:
        server = cluster.start("ps", 0, ["--http_port=0"])
        server.wait_for_output("serving /metrics")
        address = re.search(r"serving /metrics.* address=(\S+)", server.output())[1]
        with IdleConnections(address, 200):
            scheme, context = ("https", client_context()) if on() else ("http", None)
            for _ in range(6):
                with urllib.request.urlopen(f"{scheme}://{address}/healthz", timeout=10, context=context) as answer:
                    assert answer.status == 200

"""Names of peers that /etc/hosts has, beside a name server that does not answer."""
import os
import socket

import pytest

from mounted_disk import can_mount
from real_cluster import Cluster, wait_for, write_job

SERVER = "127.77.0.53"  # of this test alone
NAME = "chief.shoal.test"


# Root alone listens on the port of a name server.
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not can_mount(), reason="needs root and mount namespaces")


class SilentNameServer:
    """Takes questions, and answers none."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((SERVER, 53))
        self.socket.setblocking(False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def was_asked(self):
        try:
            return bool(self.socket.recv(4096))
        except BlockingIOError:
            return False


@pytest.fixture(name="server")
def _server():
    with SilentNameServer() as server:
        yield server


def beside(tmp_path, hosts):
    """A prefix of programs that see these lines as /etc/hosts, and that name server; and the file with the lines."""
    names, servers = tmp_path / "hosts", tmp_path / "resolv.conf"
    names.write_text(hosts)
    servers.write_text(f"nameserver {SERVER}\n")
    script = f'mount --bind {names} /etc/hosts; mount --bind {servers} "$(readlink -f /etc/resolv.conf)"; exec "$@"'
    return ["unshare", "--mount", "sh", "-ec", script, "sh"], names


def start_named(cluster, tmp_path, hosts):
    """A coordinator and a ps, and a worker that knows the coordinator by its name."""
    cluster.start_chief(write_job(tmp_path / "job", epochs=1), tmp_path / "run")
    cluster.start("ps")
    prefix, names = beside(tmp_path, hosts)
    chief = f"{NAME}:{cluster.chief.split(':')[1]}"
    return cluster.start("worker", 0, ["--threads=1", f"--chief={chief}"], spec=False, prefix=prefix), names


def test_a_name_of_etc_hosts_is_asked_of_no_name_server(tmp_path, server):
    with Cluster(tmp_path / "cluster", ps=1, workers=1) as cluster:
        worker, _ = start_named(cluster, tmp_path, f"127.0.0.1 localhost {NAME}\n")
        assert worker.wait() == 0, worker.output()[-3000:]
        assert not server.was_asked()


def test_a_name_is_taken_up_when_it_is_added_to_etc_hosts(tmp_path, server):
    with Cluster(tmp_path / "cluster", ps=1, workers=1) as cluster:
        worker, names = start_named(cluster, tmp_path, "127.0.0.1 localhost\n")
        worker.wait_for_output("looking up the name")
        wait_for(server.was_asked, "a question to the name server")
        names.write_text(f"127.0.0.1 localhost {NAME}\n")
        assert worker.wait() == 0, worker.output()[-3000:]

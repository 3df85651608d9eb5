"""Strangers, and people who may only look, at the TLS ports of daemons in the midst of a job."""
import concurrent.futures
import os
import signal
import ssl

import pytest

import tls_mode
from endless_job import EPOCHS, Ending
from foreign_client import RawHttp2, SilentStreams
from honest_cluster import FEW_DESCRIPTORS, HonestCluster, growth_below
from real_cluster import wait_for
from tls_peers import ChangingKeys, HalfHandshakes, OwnAuthority, closed, connected, first_flight, shows

TASKS = ["ps", "coordinator"]
STATUS = "Cluster/Status"  # what a viewer may ask


class RecordedCluster(HonestCluster):
    """Its workers write down their steps, so that in the end each can be seen to have been done once."""

    def __init__(self, directory):
        super().__init__(directory, epochs=EPOCHS)
        self.records = directory / "records"
        self.records.mkdir()

    def start_worker(self, index, *arguments, **options):
        return super().start_worker(index, f"--step_records={self.records}", *arguments, **options)

    def check_a_new_worker_gets_in(self):
        """A new worker replaces one that leaves, at the coordinator and the ps, and an operator gets the status."""
        self.workers[0].wait_for_output("working in timeline")
        self.workers[0].signal(signal.SIGTERM)
        assert self.workers[0].wait() == 143, self.workers[0].output()[-3000:]
        self.workers[0] = self.start_worker(0)
        self.check_serves()

    def check_end(self):
        ending = Ending(self.job, self.run, self.records)
        ending.stop(self.coordinator, self.workers)
        ending.finish()
        ending.check_updates()
        ending.check_lineage(self.coordinator.output(), examples=400, killed_workers=0)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    with tls_mode.switched_on(), RecordedCluster(tmp_path_factory.mktemp("honest")).start_all() as running:
        yield running
        running.check_serves()
        running.check_end()


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return OwnAuthority(tmp_path_factory.mktemp("stranger") / "tls")


def target(cluster, task):
    """The process and the address of a task."""
    return {"ps": (cluster.ps[0], cluster.spec["ps"][0]), "coordinator": (cluster.coordinator, cluster.chief)}[task]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("share", [2, 1], ids=["half", "whole"])
def test_unfinished_handshakes_keep_nobody_out_and_end(honest, task, share):
    """The client sends half of a ClientHello, or a whole one and nothing after it."""
    process, address = target(honest, task)
    hello = first_flight()
    # Sends what HTTP/2 asks for and then waits, which is allowed for longer than a handshake may take.
    with growth_below(process, 100), RawHttp2(address, "viewer") as idle, \
            HalfHandshakes(address, 600, hello[:len(hello) // share]) as handshakes:
        honest.check_a_new_worker_gets_in()
        with SilentStreams(address, STATUS, 1, 1, "viewer"):
            wait_for(lambda: handshakes.open() == 0, "the handshakes to be given up")
        idle.socket.settimeout(0)
        with pytest.raises(ssl.SSLWantReadError):  # not closed
            while idle.socket.recv(1 << 16):
                pass
    honest.check_a_new_worker_gets_in()


def test_strangers_who_take_every_descriptor_keep_nobody_out(tmp_path):
    """More handshakes begin, and none ends, than a daemon has descriptors for: the oldest give way before their deadline."""
    with tls_mode.switched_on(), RecordedCluster(tmp_path) as cluster:
        cluster.start_all({"ps": FEW_DESCRIPTORS, "chief": FEW_DESCRIPTORS})
        for address in (cluster.spec["ps"][0], cluster.chief):
            with HalfHandshakes(address, 400, first_flight()):
                cluster.check_a_new_worker_gets_in()
            cluster.check_a_new_worker_gets_in()
        cluster.check_end()


GARBAGE = {
    "random": os.urandom(4096),
    "zeros": bytes(4096),
    "a record without end": b"\x16\x03\x01\xff\xff" + bytes(70000),
    "plain HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0",
    "plain HTTP/1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "an alert": b"\x15\x03\x03\x00\x02\x02\x28",
}


@pytest.mark.parametrize("task", TASKS)
def test_what_is_no_handshake_is_cut_off(honest, task):
    process, address = target(honest, task)
    with growth_below(process, 50):
        for _ in range(50):
            for name, garbage in GARBAGE.items():
                with connected(address) as connection:
                    try:
                        connection.sendall(garbage)
                    except ConnectionError:
                        continue  # the server closed before it had all
                    wait_for(lambda c=connection: closed(c), f"the end of {name}")
        # In the midst of a handshake, too.
        for _ in range(50):
            with connected(address) as connection:
                connection.sendall(first_flight() + os.urandom(1000))
                wait_for(lambda c=connection: closed(c), "the end of a handshake")
    honest.check_serves()


@pytest.mark.parametrize("task", TASKS)
def test_older_versions_are_refused_before_they_renegotiate(honest, task):
    _, address = target(honest, task)
    context = tls_mode.client_context(tls_mode.tls_dir("viewer"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    for _ in range(20):
        with connected(address) as plain, pytest.raises(OSError):
            context.wrap_socket(plain, server_hostname="localhost")
    honest.check_serves()


@pytest.mark.parametrize("task", TASKS)
def test_keys_that_change_without_end_cost_no_memory(honest, task):
    process, address = target(honest, task)
    with growth_below(process, 50), ChangingKeys(address, "viewer") as client:
        changes = sum(client.change() for _ in range(20000))
        honest.check_serves()
    print(f"{changes} changes")
    honest.check_a_new_worker_gets_in()


def test_certificates_of_any_size_are_refused(honest, stranger):
    # OpenSSL takes 100 KB of certificates, and verifies chains of 100.
    shown = [stranger.large(50000), stranger.large(99000), stranger.large(120000), stranger.chain(90), stranger.chain(150), stranger.chain(300)]
    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        for task in TASKS:
            process, address = target(honest, task)
            with growth_below(process, 50):
                refused = {directory: clients.map(shows, [address] * 10, [directory] * 10) for directory in shown}
                honest.check_serves()
                for directory, errors in refused.items():
                    assert all(error is not None for error in errors), directory.name
            assert shows(address, tls_mode.tls_dir("viewer")) is None


@pytest.mark.parametrize("task", TASKS)
def test_viewers_who_say_nothing_keep_nobody_out(honest, task):
    process, address = target(honest, task)
    with growth_below(process, 200), SilentStreams(address, STATUS, 400, 4, "viewer"):
        honest.check_a_new_worker_gets_in()
    honest.check_a_new_worker_gets_in()


@pytest.mark.parametrize("task", TASKS)
def test_viewers_who_say_half_a_preface_are_cut_off(honest, task):
    """The TLS handshake is done, that of HTTP/2 is not."""
    _, address = target(honest, task)
    context = tls_mode.client_context(tls_mode.tls_dir("viewer"))
    clients = []
    try:
        for i in range(200):
            clients.append(context.wrap_socket(connected(address), server_hostname="localhost"))
            clients[-1].sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[:i % 24])
        honest.check_a_new_worker_gets_in()
        for client in clients:
            client.settimeout(600)
            try:
                while client.recv(1 << 16):
                    pass
            except ConnectionError:
                pass
    finally:
        for client in clients:
            client.close()
    honest.check_serves()

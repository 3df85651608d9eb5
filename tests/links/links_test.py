"""The links themselves, and a cluster whose workers are far away."""
import concurrent.futures
import csv
import ctypes
import json
import os
import socket
import time

import pytest

from links import LAN, MOBILE, VPN, Link, Star, StarCluster  # first: it finds the modules of tests/cluster/fixtures
from namespaces import can_make_namespaces
from real_cluster import BIN, PATIENCE_SECONDS, Process, write_job

needs_namespaces = pytest.mark.skipif(not can_make_namespaces() or not os.path.exists("/dev/net/tun"),
                                      reason="network namespaces need root, iproute2 and /dev/net/tun")


def socket_in(namespace, kind):
    """A socket belongs to the namespace in which it is made, whoever uses it."""
    def make():
        with open(f"/run/netns/{namespace}", "rb") as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), f"setns {namespace}")
        return socket.socket(socket.AF_INET, kind)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        made = thread.submit(make).result()
    made.settimeout(PATIENCE_SECONDS)
    return made


def two_sockets(star, kind):
    """One of each host, the second bound; and the second's address."""
    near, far = (socket_in(name, kind) for name in star.names[:2])
    far.bind((star.addresses[1], 0))
    return near, far, far.getsockname()


def carried(star, content):
    """What the second host receives of `content`, which the first sends over TCP."""
    near, far, address = two_sockets(star, socket.SOCK_STREAM)
    far.listen()
    near.connect(address)
    stream, _ = far.accept()
    stream.settimeout(PATIENCE_SECONDS)

    def send():
        with near:
            near.sendall(content)
    got = b""
    with stream, concurrent.futures.ThreadPoolExecutor(1) as thread:
        sending = thread.submit(send)
        while part := stream.recv(65536):
            got += part
        sending.result()
    return got


@needs_namespaces
def test_an_answer_takes_the_delay(tmp_path):
    with Star([VPN, VPN], tmp_path) as star:
        near, far, address = two_sockets(star, socket.SOCK_DGRAM)
        began = time.monotonic()
        near.sendto(b"?", address)
        _, back = far.recvfrom(1)
        far.sendto(b"!", back)
        near.recv(1)
        assert time.monotonic() - began >= 0.040


@needs_namespaces
def test_bytes_take_their_time_and_are_counted(tmp_path):
    size = 200_000
    with Star([VPN, VPN], tmp_path) as star:
        began = time.monotonic()
        assert carried(star, bytes(size)) == bytes(size)
        # The first bytes lie in queues that are empty.
        assert time.monotonic() - began >= (size - 65536) * 8 / 20e6
        star.end()
        up, down = star.counts(0)["up"], star.counts(1)["down"]
        assert size <= down["bytes"] <= up["bytes"]
        assert star.counts(1)["up"]["bytes"] < size // 10


@needs_namespaces
@pytest.mark.parametrize("sender", [VPN, LAN], ids=["vpn", "lan"])
def test_packets_of_a_slow_link_are_small(tmp_path, sender):
    size = 200_000
    with Star([sender, VPN], tmp_path) as star:
        carried(star, bytes(size))
        star.end()
        assert star.counts(1)["down"]["packets"] >= size // 1500


@needs_namespaces
def test_lost_packets_are_lost_and_tcp_sends_them_again(tmp_path):
    with Star([Link(100, 2, loss_percent=20), Link(100, 2, loss_percent=20)], tmp_path) as star:
        sent = os.urandom(300_000)
        assert carried(star, sent) == sent
        star.end()
        assert star.counts(0)["up"]["lost"] > 0
        assert star.counts(1)["down"]["lost"] > 0


def test_a_host_that_is_not_one_is_named():
    process = Process([BIN / "shoal-test-links", "nowhere,10.88.0.1,5"], os.devnull)
    assert process.wait() == 64


# On this link an answer of the ps with all of its weights is on its way for more than a second, and so is a push.
WIDE_BYTES = 4 * (64 * 2911 + 2911 + 2911 * 4 + 4)
WIDE_MODEL = {"class_name": "Sequential", "config": {"name": "wide", "layers": [
    {"class_name": "InputLayer", "config": {"batch_shape": [None, 8, 8, 1], "dtype": "float32", "name": "input"}},
    {"class_name": "Rescaling", "config": {"name": "rescaling", "scale": 1 / 255, "offset": 0.0}},
    {"class_name": "Flatten", "config": {"name": "flatten"}},
    {"class_name": "Dense", "config": {"name": "hidden", "units": 2911, "activation": "relu"}},
    {"class_name": "Dense", "config": {"name": "classes", "units": 4, "activation": "linear"}}]}}


def train_over(star, job, run, logs):
    """Coordinator and ps on the first host, a worker on the second; returns when the job is done, and the links carry nothing more."""
    with StarCluster(star, logs, chief=[0], ps=[0], worker=[1]) as cluster:
        cluster.train(job, run)
    star.end()


@needs_namespaces
def test_a_worker_behind_a_mobile_link_trains(tmp_path):
    """Nobody takes a slow link for a dead machine: no lease runs out, no connection is broken."""
    job = write_job(tmp_path, examples=96, epochs=1)
    (tmp_path / "model.json").write_text(json.dumps(WIDE_MODEL))
    with Star([Link(1000, 0), MOBILE], tmp_path) as star:
        train_over(star, job, tmp_path / "run", tmp_path)
        # Six steps, each with all values down and all gradients up.
        assert star.counts(1)["down"]["bytes"] > 6 * WIDE_BYTES
        assert star.counts(1)["up"]["bytes"] > 6 * WIDE_BYTES
        assert star.counts(1)["up"]["lost"] > 0
    assert (tmp_path / "run/model/model.safetensors").exists()
    chief = (tmp_path / "chief-0.log").read_text()
    assert chief.count("worker 0 has joined") == 1, chief
    assert "leased again" not in chief and "lost ps" not in chief, chief


@needs_namespaces
def test_a_ps_beside_each_worker_moves_what_ring_all_reduce_moves(tmp_path):
    """2 M (n - 1) / n bytes a step over each link and direction, M being those of the variables: all but a machine's own share."""
    hosts, rounds = 3, 40
    job = write_job(tmp_path, examples=16 * hosts * rounds, epochs=1, checkpoint={"every_seconds": 0},
                    strategy={"name": "sync", "gradients_per_update": hosts, "min_shard_bytes": 1024})
    (tmp_path / "model.json").write_text(json.dumps(WIDE_MODEL))
    content = json.loads(job.read_text())
    del content["data"]["test"]
    job.write_text(json.dumps(content))
    every = range(hosts)
    with Star([LAN] * hosts, tmp_path) as star, StarCluster(star, tmp_path, chief=[0], ps=every, worker=every) as cluster:
        cluster.train(job, tmp_path / "run")
        star.end()
        # Whoever is fast does several steps of a round, from the values that it has: over all links together it comes to the same gradients.
        up = sum(star.counts(host)["up"]["bytes"] for host in range(hosts))
    gradients = rounds * hosts * WIDE_BYTES * (hosts - 1) / hosts
    print(up, gradients)
    # The first values, and those after each round, to each worker that computed in it; headers and acknowledgements.
    assert gradients * 1.3 < up < 2 * gradients * 1.05


@needs_namespaces
def test_compression_takes_fewer_bytes_and_trains_as_well(tmp_path):
    """All that the worker's link carries is counted, headers and acknowledgements too, and the loss after five epochs compared."""
    figures = {}
    for name, compression in (("float32", {}), ("bf16", {"push": "bf16", "pull": "bf16"}), ("int8", {"push": "int8", "pull": "int8"}),
                              ("e3m0", {"push": "e3m0", "pull": "int8"})):
        directory = tmp_path / name
        job = write_job(directory, examples=320, epochs=5, compression=compression,
                        optimizer={"class_name": "SGD", "config": {"learning_rate": 0.02}})
        (directory / "model.json").write_text(json.dumps(WIDE_MODEL))
        content = json.loads(job.read_text())
        del content["data"]["test"]  # evaluations are not compressed
        job.write_text(json.dumps(content))
        with Star([Link(1000, 0), LAN], directory) as star:
            train_over(star, job, directory / "run", directory)
            counts = star.counts(1)
        with open(directory / "run/history.csv", newline="") as file:
            losses = [float(row["loss"]) for row in csv.DictReader(file)]
        figures[name] = {"up": counts["up"]["bytes"], "down": counts["down"]["bytes"], "loss": losses[-1]}
        assert losses[-1] < 0.8 * losses[0]
    print(figures)
    plain = figures["float32"]
    assert plain["up"] > 100 * WIDE_BYTES and plain["down"] > 100 * WIDE_BYTES
    assert plain["up"] >= 3.9 * figures["int8"]["up"]
    assert plain["down"] >= 3.9 * figures["int8"]["down"]
    assert plain["up"] >= 7.5 * figures["e3m0"]["up"]
    for name in ("bf16", "int8"):
        assert figures[name]["loss"] == pytest.approx(plain["loss"], rel=0.01), name

"""/metrics, /healthz and /readyz of real daemons."""
import contextlib
import re
import shutil
import signal
import socket
import subprocess

import pytest

from real_cluster import Cluster, allow_open_files, free_ports, wait_for
from watched_cluster import WatchedCluster, catalog, get, parse


# There only while something is waited for.
WAITS = {"shoal_waiting_seconds", "shoal_worker_waiting_seconds"}
# There only where a worker has a GPU.
OF_GPUS = {metric for metric in catalog() if metric.startswith("shoal_gpu_")}


def names_of(text):
    return set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))


def test_every_daemon_shows_what_the_catalog_says(tmp_path):
    with WatchedCluster(tmp_path) as cluster:
        cluster.start_all()
        roles = {"chief-0": "coordinator", "ps-0": "ps", "ps-1": "ps", "worker-0": "worker", "worker-1": "worker"}
        for name, role in roles.items():
            expected = {metric for metric, (daemon, _) in catalog().items() if daemon in ("every", role)} - WAITS - OF_GPUS
            # Some come with the first evaluation.
            wait_for(lambda: expected <= names_of(cluster.text(name)), f"all metrics of {name}: {expected - names_of(cluster.text(name))}")
            text = cluster.text(name)
            assert names_of(text) - WAITS - OF_GPUS == expected
            for metric in expected:
                assert f"# TYPE {metric} {catalog()[metric][1]}\n" in text
            if shutil.which("promtool"):
                checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
                assert checked.returncode == 0 and checked.stdout + checked.stderr == "", checked.stdout + checked.stderr


def test_the_figures_are_those_of_the_training(tmp_path):
    with WatchedCluster(tmp_path, examples=4000, batch_size=16, checkpoint={}) as cluster:
        cluster.start_all()
        cluster.await_value("chief-0", "shoal_steps_done_total", lambda steps: steps > 0)
        for i in range(2):
            cluster.await_value(f"worker-{i}", "shoal_worker_steps_total", lambda steps: steps > 0)
        seen = {name: parse(cluster.text(name)) for name in cluster.watched}
    steps = seen["chief-0"]["shoal_steps_done_total", ()]
    assert steps > 0
    assert seen["chief-0"]["shoal_examples_total", ()] == 16 * steps
    assert seen["chief-0"]["shoal_steps_leased_total", ()] >= steps
    assert seen["chief-0"]["shoal_learning_rate", ()] == 0.003
    assert 0 < seen["chief-0"]["shoal_loss", ()] < 10
    for ps in ("ps-0", "ps-1"):
        figures = seen[ps]
        assert figures["shoal_ps_updates_total", ()] == figures["shoal_ps_staleness_updates_count", ()]
        assert figures["shoal_ps_apply_seconds_sum", ()] > 0
    for worker in ("worker-0", "worker-1"):
        figures = seen[worker]
        assert figures["shoal_worker_steps_total", ()] == figures["shoal_worker_step_seconds_count", ()]
        assert figures["shoal_worker_phase_seconds_total", (("phase", "compute"),)] > 0


def test_bytes_that_a_worker_sends_are_bytes_that_the_ps_get(tmp_path):
    with WatchedCluster(tmp_path, workers=1) as cluster:
        cluster.start_all()
        cluster.await_value("worker-0", "shoal_worker_steps_total", lambda v: v > 20)
        cluster.watched["chief-0"].signal(signal.SIGSTOP)  # no more leases: the traffic ends
        def settled():
            worker = parse(cluster.text("worker-0"))
            for ps in ("0", "1"):
                server = parse(cluster.text(f"ps-{ps}"))
                for here, there in (("sent", "received"), ("received", "sent")):
                    if worker["shoal_worker_payload_bytes_total", (("direction", here), ("ps", ps), ("transport", "tcp"))] != \
                            server["shoal_ps_payload_bytes_total", (("direction", there), ("transport", "tcp"), ("worker", "0"))]:
                        return False
            return True
        wait_for(settled, "the same number of bytes at both ends")
        assert cluster.value("worker-0", "shoal_worker_payload_bytes_total", direction="sent", ps="0", transport="tcp") > 0


def test_a_task_that_is_killed_is_counted(tmp_path):
    # Without a test set: in an evaluation nobody holds steps.
    with WatchedCluster(tmp_path, data={"training": {"images": "train-images.idx", "labels": "train-labels.idx"}}) as cluster:
        cluster.start_all()
        cluster.await_value("chief-0", "shoal_workers_ready", lambda v: v == 2)
        cluster.await_value("chief-0", "shoal_steps_done_total", lambda v: v > 10)
        cluster.watched["worker-1"].kill()
        cluster.await_value("chief-0", "shoal_task_up", lambda v: v == 0, type="worker", index="1")
        cluster.await_value("chief-0", "shoal_steps_leased_again_total", lambda v: v > 0)
        cluster.start_watched("worker", 1)
        cluster.await_value("chief-0", "shoal_task_restarts_total", lambda v: v == 1, type="worker", index="1")
        cluster.await_value("chief-0", "shoal_task_up", lambda v: v == 1, type="worker", index="1")

        cluster.watched["ps-0"].kill()
        cluster.await_value("chief-0", "shoal_task_up", lambda v: v == 0, type="ps", index="0")
        cluster.start_watched("ps", 0)
        cluster.await_value("chief-0", "shoal_task_restarts_total", lambda v: v == 1, type="ps", index="0")
        cluster.await_value("chief-0", "shoal_timelines_opened_total", lambda v: v == 2)


def test_a_waiting_daemon_is_healthy_and_ready(tmp_path):
    with WatchedCluster(tmp_path) as cluster:
        for task in ("worker", "ps", "chief"):
            cluster.start_watched(task)
            assert cluster.page(f"{task}-0", "/healthz") == (200, "ok\n")
            assert cluster.page(f"{task}-0", "/readyz") == (200, "ready\n")
        # They say whom they wait for: ps 1 is not there.
        cluster.await_value("chief-0", "shoal_waits", lambda v: v > 0)
        cluster.await_value("chief-0", "shoal_waiting_seconds", lambda v: v > 1, type="ps", index="1", why="not reachable")
        cluster.await_value("worker-0", "shoal_worker_waiting_seconds", lambda v: v > 1, type="chief", index="0", why="no timeline")
        cluster.watched["chief-0"].kill()
        cluster.await_value("worker-0", "shoal_worker_waiting_seconds", lambda v: v >= 0, type="chief", index="0", why="no connection")


def test_a_daemon_that_hangs_is_not_healthy(tmp_path):
    with WatchedCluster(tmp_path) as cluster:
        cluster.start_watched("worker")
        port = cluster.port("worker-0")
        cluster.watched["worker-0"].signal(signal.SIGSTOP)
        with pytest.raises(OSError):
            get(f"http://127.0.0.1:{port}/healthz", seconds=1)
        cluster.watched["worker-0"].signal(signal.SIGCONT)
        assert cluster.page("worker-0", "/healthz")[0] == 200


def test_hostile_clients_hold_up_neither_training_nor_a_stop(tmp_path):
    with WatchedCluster(tmp_path, ps=1, workers=1, examples=64000) as cluster, contextlib.ExitStack() as clients:
        cluster.start_all()
        cluster.await_value("chief-0", "shoal_steps_done_total", lambda v: v > 10)
        threads = {name: cluster.value(name, "process_threads") for name in cluster.watched}
        for name in cluster.watched:
            for i in range(40):
                client = clients.enter_context(socket.create_connection(("127.0.0.1", cluster.port(name))))
                # Silent, cut off in its request, no HTTP at all, too long, or one that does not read its answer.
                client.send((b"", b"GET /met", b"\x16\x03\x01\x00\xff\r\n\r\n", b"GET /" + b"x" * 20000, b"GET /metrics HTTP/1.1\r\n\r\n")[i % 5])
        before = cluster.value("chief-0", "shoal_steps_done_total")
        cluster.await_value("chief-0", "shoal_steps_done_total", lambda v: v > before + 100)
        for name in cluster.watched:
            assert cluster.page(name, "/healthz") == (200, "ok\n")
            # gRPC starts and ends threads of its own; a thread a client would be forty more.
            assert cluster.value(name, "process_threads") < threads[name] + 20
        for _ in range(40):
            clients.enter_context(socket.create_connection(("127.0.0.1", cluster.port("worker-0"))))
        cluster.watched["worker-0"].signal(signal.SIGTERM)
        assert cluster.watched["worker-0"].wait() == 143


def test_a_ps_that_was_out_of_descriptors_is_reached_again(tmp_path):
    allow_open_files(4096)
    with WatchedCluster(tmp_path, ps=1, workers=1) as cluster:
        ps = cluster.start_watched("ps", prefix=("prlimit", "--nofile=1024:1024"))
        cluster.port("ps-0")
        address = cluster.spec["ps"][0]
        host, port = address.split(":")
        with contextlib.ExitStack() as clients:
            for _ in range(1200):
                clients.enter_context(socket.create_connection((host, int(port))))
            ps.wait_for_output(f"{address} has 896 connections")
        wait_for(lambda: cluster.page("ps-0", "/healthz") == (200, "ok\n"), "a healthy ps")
        cluster.start_watched("chief")
        cluster.start_watched("worker")
        cluster.await_value("chief-0", "shoal_steps_done_total", lambda v: v > 0)


def test_daemons_take_as_many_descriptors_as_they_may_have(tmp_path):
    with WatchedCluster(tmp_path, ps=1, workers=1) as cluster:
        cluster.start_watched("ps", prefix=("prlimit", "--nofile=256:2048"))
        assert cluster.value("ps-0", "process_max_fds") == 2048


def test_probes_are_answered_behind_silent_clients(tmp_path):
    with WatchedCluster(tmp_path, ps=1, workers=1) as cluster, contextlib.ExitStack() as clients:
        cluster.start_watched("ps")
        for _ in range(200):
            clients.enter_context(socket.create_connection(("127.0.0.1", cluster.port("ps-0"))))
        for _ in range(6):
            # As deploy/kubernetes has it ask.
            assert get(f"http://127.0.0.1:{cluster.port('ps-0')}/healthz", seconds=5) == (200, "ok\n")


def test_a_port_in_use_is_named_and_a_flag_goes_on_without(tmp_path):
    with Cluster(tmp_path, ps=1, workers=1) as cluster:
        first = cluster.start("ps", arguments=["--http_port=0"])
        first.wait_for_output("serving /metrics")
        port = re.search(r"serving /metrics.* address=127\.0\.0\.1:(\d+)", first.output())[1]
        cluster.spec["ps"] = [f"127.0.0.1:{free_ports(1)[0]}"]
        second = cluster.start("ps", arguments=[f"--http_port={port}"], name="second")
        assert second.wait() == 78
        assert "--http_port: " in second.output() and f"127.0.0.1:{port}" in second.output(), second.output()
        third = cluster.start("ps", arguments=[f"--http_port={port}", "--http_optional"], name="third")
        third.wait_for_output("without /metrics")
        assert third.popen.poll() is None


def test_metrics_ask_for_the_token_of_the_file(tmp_path):
    token = tmp_path / "token"
    token.write_text("first\n")
    token.chmod(0o600)
    with WatchedCluster(tmp_path, ps=1, workers=1) as cluster:
        cluster.start_watched("ps", arguments=[f"--metrics_token_file={token}"])
        url = f"http://127.0.0.1:{cluster.port('ps-0')}"
        assert get(f"{url}/metrics")[0] == 401
        assert get(f"{url}/metrics", Authorization="Bearer other")[0] == 401
        status, text = get(f"{url}/metrics", Authorization="Bearer first")
        assert status == 200 and "process_threads" in names_of(text)
        assert get(f"{url}/healthz") == (200, "ok\n") and get(f"{url}/readyz")[0] == 200
        token.write_text("next\n")
        assert get(f"{url}/metrics", Authorization="Bearer first")[0] == 401
        assert get(f"{url}/metrics", Authorization="Bearer next")[0] == 200
        token.unlink()
        assert get(f"{url}/metrics", Authorization="Bearer next")[0] == 401
        cluster.watched["ps-0"].wait_for_output(f"--metrics_token_file: cannot open {token}")
        token.write_text("last\n")
        token.chmod(0o644)
        assert get(f"{url}/metrics", Authorization="Bearer last")[0] == 401
        cluster.watched["ps-0"].wait_for_output(f"chmod 600 {token}")
        token.chmod(0o600)
        assert get(f"{url}/metrics", Authorization="Bearer last")[0] == 200


def test_a_client_that_drips_is_cut_off(tmp_path):
    with WatchedCluster(tmp_path, ps=1, workers=1) as cluster:
        cluster.start_watched("ps")
        with socket.create_connection(("127.0.0.1", cluster.port("ps-0")), timeout=0.1) as client:
            def is_cut_off():
                try:
                    client.send(b"G")
                    return client.recv(1) == b""
                except TimeoutError:
                    return False
                except ConnectionError:
                    return True
            wait_for(is_cut_off, "the end of a request of one byte each 0.1 s")


def test_without_the_setting_there_is_no_server(tmp_path):
    with Cluster(tmp_path, ps=1, workers=1) as cluster:
        process = cluster.start("ps")
        process.wait_for_output("listening")
        process.wait_for_output("waiting for the coordinator")
        assert "/metrics" not in process.output()

"""Bad input to real daemons: each gets its message and its exit code, and nobody else is harmed."""
import concurrent.futures
import json
import os
import socket
import struct

import grpc
import numpy as np
import pytest

from endless_job import EPOCHS
from real_cluster import PATIENCE_SECONDS, Cluster, Process, BIN, free_ports, shoal, wait_for, write_job
from tls_mode import add_port, open_channel, role_for


def run_to_end(cluster, task_type, tf_config, *arguments):
    program = {"chief": "coordinator"}.get(task_type, task_type)
    process = Process([BIN / f"shoal-{program}", *arguments], cluster.directory / f"bad-{task_type}.log",
                      {} if tf_config is None else {"TF_CONFIG": tf_config})
    cluster.processes.append(process)
    return process.wait(), process.output()


SPEC = {"chief": ["127.0.0.1:2222"], "ps": ["127.0.0.1:2223"], "worker": ["127.0.0.1:2224"]}


@pytest.mark.parametrize("tf_config, words", [
    (None, ["TF_CONFIG", "--cluster_spec"]),
    ("{not json", ["TF_CONFIG"]),
    (json.dumps({"cluster": {k: v for k, v in SPEC.items() if k != "chief"}, "task": {"type": "ps", "index": 0}}),
     ["chief", "\"cluster\""]),
    (json.dumps({"cluster": SPEC, "task": {"type": "ps", "index": 3}}), ["$.task.index", "3"]),
    (json.dumps({"cluster": {**SPEC, "ps": ["127.0.0.1"]}, "task": {"type": "ps", "index": 0}}),
     ["$.cluster.ps[0]", "127.0.0.1", "port"]),
    # What an operator writes of a manifest without workers.
    (json.dumps({"cluster": {**SPEC, "worker": []}, "task": {"type": "ps", "index": 0}}), ["$.cluster.worker", "at least one worker"]),
    (json.dumps({"cluster": SPEC, "task": {"type": "pss", "index": 0}}), ["$.task.type", "pss", "ps"]),
])
def test_a_wrong_cluster_spec_is_named(tmp_path, tf_config, words):
    with Cluster(tmp_path) as cluster:
        code, output = run_to_end(cluster, "ps", tf_config)
    assert code == 78, output
    for word in words:
        assert word in output


@pytest.mark.parametrize("device, exit_code, words", [
    ("gpu", 64, ["--device", "\"gpu\" is not known", "cuda:N"]),
    ("cuda:0", 78, ["--device", "built without CUDA", "cmake --preset cuda"]),
    ("cpu,reference", 64, ["--device", "cpu,reference"]),
])
def test_a_wrong_device_is_named(tmp_path, device, exit_code, words):
    with Cluster(tmp_path) as cluster:
        code, output = run_to_end(cluster, "worker", None, f"--device={device}", "--chief=127.0.0.1:1")
    assert code == exit_code, output
    for word in words:
        assert word in output


@pytest.mark.parametrize("change, words", [
    ({"epoch": 3}, ["$.epoch", "epochs"]),
    ({"optimizer": {"class_name": "Adam", "config": {"learning_rate": -1}}}, ["learning_rate", "-1"]),
    ({"model": "missing.json"}, ["missing.json"]),
    ({"data": {"training": {"images": "nowhere.idx", "labels": "train-labels.idx"}}}, ["nowhere.idx"]),
])
def test_a_wrong_job_is_named(tmp_path, change, words):
    job = write_job(tmp_path, **change)
    done = shoal("train", job, "--run_dir", tmp_path / "run")
    assert done.returncode == 78, done.stdout + done.stderr
    for word in words:
        assert word in done.stdout + done.stderr


# What a run writes of it is JSON, and its tasks tell each other paths in strings of UTF-8.
@pytest.mark.parametrize("command, job, run", [
    ("validate", b"a\xff", None),
    ("train", b"a\xff", b"run"),
    ("train", b"job", b"a\xff"),
])
def test_a_path_that_is_not_utf8_is_rejected_at_once(tmp_path, command, job, run):
    arguments = [] if run is None else ["--run_dir", tmp_path / os.fsdecode(run)]
    done = shoal(command, write_job(tmp_path / os.fsdecode(job)), *arguments)
    assert done.returncode == 78, done.stdout + done.stderr
    assert "a\\xff" in done.stderr
    assert run is None or not (tmp_path / os.fsdecode(run)).exists()


def test_the_coordinator_hears_of_a_file_whose_name_is_not_utf8(tmp_path):
    job = write_job(tmp_path, data={"training": {"format": "image_folder", "path": "pictures"}})
    for kind in ("bolts", "nuts"):
        (tmp_path / "pictures" / kind).mkdir(parents=True)
        (tmp_path / "pictures" / kind / os.fsdecode(b"a\xff.png")).write_bytes(b"\x89PNG\r\n\x1a\n of no picture")
    done = shoal("train", job, "--run_dir", tmp_path / "run", "--set", "batch_size=2")
    assert done.returncode == 65, done.stdout + done.stderr
    assert "a\\xff.png" in done.stderr
    assert "a\\xff.png" in (tmp_path / "run/logs/chief-0.log").read_text()


def test_all_errors_of_a_job_at_once(tmp_path):
    job = write_job(tmp_path, epoch=3, batch_size=0, seed="x")
    done = shoal("train", job, "--run_dir", tmp_path / "run")
    for word in ("$.epoch", "$.batch_size", "$.seed"):
        assert word in done.stdout + done.stderr


def test_a_wrong_model_is_named(tmp_path):
    job = write_job(tmp_path)
    model = json.loads((tmp_path / "model.json").read_text())
    layers = model["config"]["layers"]
    layers[3]["class_name"] = "Dens"
    (tmp_path / "model.json").write_text(json.dumps(model))
    done = shoal("train", job, "--run_dir", tmp_path / "run")
    assert done.returncode == 78
    assert "$.config.layers[3]" in done.stdout + done.stderr and "Dense" in done.stdout + done.stderr


def test_counts_that_differ(tmp_path):
    job = write_job(tmp_path)
    labels = tmp_path / "train-labels.idx"
    labels.write_bytes(struct.pack(">II", 0x801, 399) + labels.read_bytes()[8:-1])
    done = shoal("train", job, "--run_dir", tmp_path / "run")
    assert done.returncode not in (0, 143), done.stdout
    text = done.stdout + done.stderr
    assert "400" in text and "399" in text and "train-labels.idx" in text, text


@pytest.mark.parametrize("spoilt", ["images", "labels"])
def test_a_value_that_is_not_finite_is_named_by_file_and_example(tmp_path, spoilt):
    loss = {"loss": "mean_squared_error", "metrics": []}
    job = write_job(tmp_path, data={"training": {"images": "images.npy", "labels": "labels.npy"}}, **loss)
    arrays = {"images": np.ones((400, 8, 8), np.float32), "labels": np.ones((400, 4), np.float32)}
    arrays[spoilt][17, 2] = np.nan
    for name, values in arrays.items():
        np.save(tmp_path / f"{name}.npy", values)
    done = shoal("train", job, "--run_dir", tmp_path / "run")
    text = done.stdout + done.stderr
    assert done.returncode == 65, text
    assert f"{tmp_path}/{spoilt}.npy: example 17" in text and "finite number" in text, text
    assert "not finite numbers" not in text, "the variables have taken nothing of it"


def test_a_port_in_use_is_named(tmp_path):
    with Cluster(tmp_path) as cluster, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        cluster.spec["ps"] = [f"127.0.0.1:{port}"]
        code, output = run_to_end(cluster, "ps", cluster.tf_config("ps", 0))
    assert code in (78, 138) and f"127.0.0.1:{port}" in output, output


def test_a_ps_of_another_job_is_rejected(tmp_path):
    long_job = write_job(tmp_path / "one", epochs=100000)
    other_job = write_job(tmp_path / "two", epochs=100000, seed=2)
    with Cluster(tmp_path / "logs", workers=1) as cluster:
        server = cluster.start("ps")
        first = cluster.start_chief(long_job, tmp_path / "run1")
        cluster.start_worker(0)
        first.wait_for_output("training:")
        # By mistake, somewhere else, with the ps of the first.
        cluster.spec["chief"] = [f"127.0.0.1:{free_ports(1)[0]}"]
        second = cluster.start("chief", 0, [f"--job={other_job}", f"--run_dir={tmp_path / 'run2'}"], name="second")
        assert second.wait() == 78, second.output()
        assert "another job" in second.output() and cluster.spec["ps"][0] in second.output()
        done = cluster.status()["steps_done"]
        wait_for(lambda: cluster.status()["steps_done"] > done, "the first goes on")
        assert first.popen.poll() is None and server.popen.poll() is None


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    job = write_job(tmp_path, epochs=2, checkpoint={"every_steps": 10, "keep": 3})
    run = tmp_path / "run"
    assert shoal("train", job, "--run_dir", run).returncode == 0
    newest = sorted((run / "checkpoints").iterdir())[-1]
    damaged = newest / "model-00001-of-00001.safetensors"
    data = bytearray(damaged.read_bytes())
    data[-5] ^= 1
    damaged.write_bytes(data)
    verify = shoal("checkpoint", "verify", newest)
    assert verify.returncode == 65 and "model-00001-of-00001.safetensors" in verify.stdout + verify.stderr
    done = shoal("train", job, "--run_dir", run)
    assert done.returncode == 0, done.stdout + done.stderr
    assert newest.name in (run / "logs/chief-0.log").read_text(), "the damaged checkpoint is named"


def steps_done(cluster):
    return (cluster.status() or {}).get("steps_done", 0)


def test_garbage_and_large_messages_harm_nobody(tmp_path):
    job = write_job(tmp_path, examples=8000, epochs=EPOCHS)
    with Cluster(tmp_path / "logs", workers=1) as cluster:
        chief, server = cluster.start_chief(job, tmp_path / "run"), cluster.start("ps")
        worker = cluster.start_worker(0)
        chief.wait_for_output("training:")
        for address, method in ((cluster.chief, "Coordinator/Work"), (cluster.chief, "Cluster/Status"),
                                (cluster.spec["ps"][0], "ParameterServer/Exchange"), (cluster.spec["ps"][0], "ParameterServer/Control")):
            host, port = address.split(":")
            for garbage in (b"\0" * 4096, os.urandom(4096), b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(999)):
                with socket.create_connection((host, int(port))) as raw:
                    raw.sendall(garbage)
            with open_channel(address, role_for(method), [("grpc.enable_http_proxy", 0)]) as channel:
                call = channel.stream_stream(f"/shoal.proto.{method}")
                for message in (b"\xff" * 100, os.urandom(1000), b"\x7a\xff\xff\xff\xff\x0f", b"\0" * (65 << 20)):
                    try:
                        list(call(iter([message]), timeout=PATIENCE_SECONDS))
                    except grpc.RpcError as error:
                        assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED,
                                                grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INTERNAL,
                                                grpc.StatusCode.UNKNOWN), error
                with pytest.raises(grpc.RpcError) as unknown:
                    list(channel.stream_stream("/shoal.proto.No/Such")(iter([b""]), timeout=PATIENCE_SECONDS))
                assert unknown.value.code() == grpc.StatusCode.UNIMPLEMENTED
        done = steps_done(cluster)
        wait_for(lambda: steps_done(cluster) > done, "the job goes on")
        for process in (chief, server, worker):
            assert process.popen.poll() is None, process.output()[-3000:]


def test_text_of_a_peer_cannot_steer_the_terminal(tmp_path):
    class Rejecting(grpc.GenericRpcHandler):
        def service(self, handler_call_details):
            def reject(request_iterator, context):
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, "\x1b[2J\nall is well\x07" + "x" * 5000)
            return grpc.stream_stream_rpc_method_handler(reject)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1), handlers=[Rejecting()])
    port = add_port(server, "127.0.0.1:0", "coordinator")
    server.start()
    try:
        done = shoal("status", "--chief", f"127.0.0.1:{port}")
    finally:
        server.stop(None).wait()
    assert done.returncode != 0 and r"\x1b[2J\nall is well\x07xxx" in done.stderr, done.stderr[:300]
    assert done.stderr.count("\n") == 1 and len(done.stderr) < 5000, done.stderr[:300]

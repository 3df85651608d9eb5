"""`shoal train` and the daemons as people run them: real processes, sockets, signals and files."""
import collections
import csv
import json
import pathlib
import random
import signal

import numpy as np
import pytest
from safetensors.numpy import load_file

from endless_job import EPOCHS, Ending
from real_cluster import BIN, SOURCE, Cluster, Process, finished_steps, shoal, step_records, wait_for, write_job

EXPECTED_SHAPES = {"dense/kernel": (64, 32), "dense/bias": (32,), "dense_1/kernel": (32, 4), "dense_1/bias": (4,)}


def check_every_example_once(rows, epochs, examples, batch_size):
    """Every step once, every example of every epoch once."""
    per_epoch = -(-examples // batch_size)
    steps = collections.Counter(step for _, step, _ in rows)
    assert sorted(steps) == list(range(epochs * per_epoch))
    assert set(steps.values()) == {1}, [s for s, n in steps.items() if n > 1][:10]
    used = collections.defaultdict(list)
    for _, step, indices in rows:
        used[step // per_epoch] += indices
    for epoch in range(epochs):
        assert sorted(used[epoch]) == list(range(examples)), f"epoch {epoch}"


def test_train_leaves_a_model_and_checkpoints_that_safetensors_opens(tmp_path):
    job = write_job(tmp_path, epochs=4, checkpoint={"every_steps": 20, "keep": 2})
    run = tmp_path / "run"
    done = shoal("train", job, "--run_dir", run, "--ps", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "epoch" in done.stdout

    model = load_file(run / "model/model.safetensors")
    assert {name: value.shape for name, value in model.items()} == EXPECTED_SHAPES
    assert all(np.isfinite(value).all() for value in model.values())
    newest = sorted((run / "checkpoints").iterdir())[-1]
    index = json.loads((newest / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"]) == set(EXPECTED_SHAPES)
    for name, file in index["weight_map"].items():
        assert np.array_equal(load_file(newest / file)[name], model[name])
    slots = load_file(newest / "optimizer-00001-of-00001.safetensors")
    assert slots["adam_m/dense/kernel"].shape == (64, 32)

    with open(run / "history.csv", newline="") as file:
        history = list(csv.DictReader(file))
    assert [row["epoch"] for row in history] == ["1", "2", "3", "4"]
    assert float(history[-1]["loss"]) < float(history[0]["loss"])
    assert float(history[-1]["val_accuracy"]) > 0.8
    for task in ("chief-0", "ps-0", "ps-1", "worker-0", "worker-1"):
        assert (run / f"logs/{task}.log").stat().st_size > 0

    again = shoal("train", job, "--run_dir", run, "--ps", 2)
    assert again.returncode == 0 and "finished" in again.stdout
    changed = json.loads(job.read_text())
    changed["batch_size"] = 32
    job.write_text(json.dumps(changed))
    rejected = shoal("train", job, "--run_dir", run)
    assert rejected.returncode == 78 and "batch_size" in rejected.stdout + rejected.stderr


def test_a_resumed_training_uses_every_example_once(tmp_path):
    seed = random.SystemRandom().randrange(1 << 30)
    print("seed", seed)
    choose = random.Random(seed)
    examples, batch_size = 6005, 16
    job = write_job(tmp_path, examples, batch_size, epochs=EPOCHS, checkpoint={"every_steps": 50, "keep": 2})
    records = tmp_path / "records"
    records.mkdir()
    run = tmp_path / "run"
    for attempt in range(4):
        before = finished_steps(records)
        train = Process([BIN / "shoal", "train", job, "--run_dir", run], tmp_path / f"train-{attempt}.log",
                        {"SHOAL_STEP_RECORDS": str(records)})
        try:
            train.wait_for_output("all workers compute on ")
            goal = before + choose.randrange(1, 2000)
            wait_for(lambda: train.popen.poll() is not None or finished_steps(records) >= goal, f"step {goal}")
            train.signal(signal.SIGINT)
            assert train.wait() == 143, train.output()[-3000:]
        finally:
            train.kill()
    assert "resum" in (tmp_path / "train-1.log").read_text()
    ending = Ending(job, run, records)
    ending.finish()
    check_every_example_once(step_records(records), ending.epochs, examples, batch_size)


def test_started_in_any_order_and_joined_by_an_unlisted_worker(tmp_path):
    job = write_job(tmp_path, epochs=4)
    run = tmp_path / "run"
    with Cluster(tmp_path / "logs", ps=2, workers=2) as cluster:
        worker = cluster.start_worker(1)
        chief = cluster.start_chief(job, run)
        wait_for(lambda: any(cluster.spec["ps"][0] in line for line in (cluster.status() or {}).get("waiting", [])),
                 "ps 0 among those waited for")
        joined = cluster.start("worker", 9, [f"--chief={cluster.chief}", "--threads=1"], spec=False, name="joined")
        # Who comes when the job is over waits in vain.
        worker.wait_for_output("taking part as worker 1")
        joined.wait_for_output("taking part as worker 2")
        servers = [cluster.start("ps", i) for i in (1, 0)]
        for process in (chief, worker, joined, *servers):
            assert process.wait() == 0, process.output()[-3000:]
    assert load_file(run / "model/model.safetensors")["dense/bias"].shape == (32,)


def test_a_worker_without_the_data_leaves_and_the_job_goes_on(tmp_path):
    job = write_job(tmp_path, epochs=EPOCHS)
    records = tmp_path / "records"
    records.mkdir()
    with Cluster(tmp_path / "logs", workers=2) as cluster:
        chief = cluster.start_chief(job, tmp_path / "run")
        cluster.start("ps")
        cluster.start_worker(0, f"--step_records={records}")
        chief.wait_for_output("training:")
        (tmp_path / "train-labels.idx").unlink()
        second = cluster.start_worker(1)
        assert second.wait() in (65, 78)
        assert "train-labels.idx" in second.output()
        chief.wait_for_output("worker 1 leaves")
        chief.wait_for_output("train-labels.idx")
        goal = finished_steps(records) + 100
        wait_for(lambda: finished_steps(records) > goal, "100 more steps")


def test_sigterm_to_the_coordinator_keeps_everything(tmp_path):
    examples, batch_size = 4001, 16
    job = write_job(tmp_path, examples, batch_size, epochs=EPOCHS)
    run = tmp_path / "run"
    records = tmp_path / "records"
    records.mkdir()
    with Cluster(tmp_path / "logs") as cluster:
        cluster.start("ps")
        workers = [cluster.start_worker(i, f"--step_records={records}") for i in range(2)]
        chief = cluster.start_chief(job, run)
        wait_for(lambda: finished_steps(records) > 300, "300 steps")
        ending = Ending(job, run, records)
        ending.stop(chief)
        goal = finished_steps(records) + 300
        chief = cluster.start_chief(job, run)
        wait_for(lambda: finished_steps(records) > goal, "300 more steps")
        ending.stop(chief, workers)
        assert "adopted timeline" in chief.output()
        ending.finish()
    check_every_example_once(step_records(records), ending.epochs, examples, batch_size)


def test_no_process_survives_shoal_train(tmp_path):
    job = write_job(tmp_path, epochs=100000)
    train = Process([BIN / "shoal", "train", job, "--run_dir", tmp_path / "run"], tmp_path / "train.log")
    try:
        marker = str(tmp_path / "run")

        def members():
            # Daemons carry the cluster's addresses in TF_CONFIG; the run directory is in the coordinator's arguments.
            found = []
            for entry in pathlib.Path("/proc").iterdir():
                if entry.name.isdigit():
                    try:
                        if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == train.popen.pid:
                            found.append(int(entry.name))
                    except (OSError, IndexError):
                        continue
            return found
        children = wait_for(lambda: members() if len(members()) == 4 else None, "four children")
        wait_for(lambda: (pathlib.Path(marker) / "logs/worker-1.log").exists(), "logs")
    finally:
        train.kill()
    wait_for(lambda: not any(pathlib.Path(f"/proc/{pid}/exe").exists() for pid in children), "all children to end")


@pytest.mark.skipif(not pathlib.Path("/usr/share/datasets/fashion-mnist").exists(),
                    reason="the package dataset-fashion-mnist is not installed")
def test_fashion_mnist_learns(tmp_path):
    job = json.loads((SOURCE / "examples/fashion_mnist/job.json").read_text())
    job["epochs"] = 1
    job["model"] = str(SOURCE / "examples/fashion_mnist/model.json")
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job))
    done = shoal("train", path, "--run_dir", tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "run/history.csv", newline="") as file:
        assert float(list(csv.DictReader(file))[-1]["val_accuracy"]) > 0.82

"""Promise 9 with real processes: under `sync` the variables are the same to the last bit, whoever computes them and whatever is killed.

    pytest sync_test.py --rounds 20         more rounds of kills, each with a seed that it prints
    pytest sync_test.py --seed 12345        that round again, as far as real time allows
"""
import json
import os
import random
import signal
import zlib

import pytest

from real_cluster import BIN, MODEL, Process, children_of, finished_steps, shoal, wait_for, write_job

STEPS = 26  # an epoch, so that its last round is a short one
KILLS = 6
# Small chunks, so that both ps have several.
JOB = {"examples": 401, "batch_size": 16, "epochs": 150, "checkpoint": {"every_steps": 200, "keep": 2},
       "data": {"training": {"images": "train-images.idx", "labels": "train-labels.idx"}},
       "strategy": {"name": "sync", "gradients_per_update": 5, "min_shard_bytes": 256, "chunk_bytes": 1024, "lease_timeout_seconds": 2}}


def checksum(run):
    return zlib.crc32((run / "model/model.safetensors").read_bytes())


def train(job, run, workers, *arguments):
    done = shoal("train", job, "--run_dir", run, "--workers", workers, "--threads", 1, "--ps", 2, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The job, and the run of one worker to whom nothing happens."""
    directory = tmp_path_factory.mktemp("alone")
    job = write_job(directory, **JOB)
    train(job, directory / "run", 1)
    return job, directory / "run"


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_any_number_of_workers_ends_with_the_same_file(alone, tmp_path, workers):
    job, run = alone
    train(job, tmp_path / "run", workers)
    assert checksum(tmp_path / "run") == checksum(run)
    # So do its curves, but for the time that they took.
    for one, other in zip((run / "history.csv").read_text().splitlines(), (tmp_path / "run/history.csv").read_text().splitlines(), strict=True):
        assert one.split(",")[:2] == other.split(",")[:2]


def test_bfloat16_ends_with_the_same_file_too(tmp_path):
    """A network large enough that a CPU with bfloat16 computes in it; it also ends with another file than in float32."""
    sums = []
    for policy in ("mixed_bfloat16", "float32"):
        job = write_job(tmp_path / policy, **{**JOB, "epochs": 5})
        model = json.loads(json.dumps(MODEL))
        dense = next(layer["config"] for layer in model["config"]["layers"] if layer["config"]["name"] == "dense")
        dense |= {"units": 256, "dtype": policy}
        (tmp_path / policy / "model.json").write_text(json.dumps(model))
        for workers in (1, 3):
            train(job, tmp_path / policy / f"run-{workers}", workers)
            sums.append(checksum(tmp_path / policy / f"run-{workers}"))
    assert sums[0] == sums[1] and sums[2] == sums[3]
    if "bfloat16 (" in shoal("validate", tmp_path / "mixed_bfloat16/job.json").stdout:
        pytest.skip("This CPU has no bfloat16.")
    assert sums[0] != sums[2]


def test_a_ps_beside_each_worker_ends_with_the_same_file(alone, tmp_path):
    job, run = alone
    done = shoal("train", job, "--run_dir", tmp_path / "run", "--workers", 3, "--threads", 1, "--colocate")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in (tmp_path / "run/logs").glob("ps-*.log")) == ["ps-0.log", "ps-1.log", "ps-2.log"]
    assert checksum(tmp_path / "run") == checksum(run)
    assert shoal("train", job, "--run_dir", tmp_path / "other", "--colocate", "--ps", 2).returncode == 64


def test_rounds_of_another_size_end_with_another_file(alone, tmp_path):
    """What is compared does depend on what an update is made of."""
    job, run = alone
    fields = json.loads(job.read_text())
    other = job.with_name("other.json")
    other.write_text(json.dumps({**fields, "strategy": {**fields["strategy"], "gradients_per_update": 4}}))
    train(other, tmp_path / "run", 1)
    assert checksum(tmp_path / "run") != checksum(run)


def test_a_run_with_kills_ends_with_the_same_file(alone, tmp_path, chaos_seed):
    """All kills fall into the first half of the run, and after each one steps are done again: none comes when nothing is left to do."""
    job, run = alone
    choose, records = random.Random(chaos_seed), tmp_path / "records"
    records.mkdir()
    print("seed", chaos_seed)
    most = JOB["epochs"] * STEPS // 2 // KILLS
    process = Process([BIN / "shoal", "train", job, "--run_dir", tmp_path / "run", "--workers", 3, "--threads", 1, "--ps", 2,
                       "--max_restarts", 1000], tmp_path / "train.log", {"SHOAL_STEP_RECORDS": str(records)})
    killed = []

    def await_steps(count):
        goal = finished_steps(records) + count
        wait_for(lambda: process.popen.poll() is not None or finished_steps(records) >= goal, f"{count} more steps")
        assert process.popen.poll() is None, f"it ended after {killed}:\n{process.output()[-4000:]}"

    try:
        for _ in range(KILLS):
            await_steps(choose.randrange(1, most))
            children = wait_for(lambda: children_of(process.popen.pid), "a task that runs")
            pid = choose.choice(sorted(children))
            killed.append(children[pid])
            os.kill(pid, signal.SIGKILL)
        await_steps(1)
        assert process.wait() == 0, process.output()[-4000:]
    finally:
        process.kill()
    assert checksum(tmp_path / "run") == checksum(run), killed


def test_a_run_keeps_its_rounds_and_its_strategy(tmp_path):
    """Rounds of two, as two workers are listed when it begins."""
    strategy = {"name": "sync", "min_shard_bytes": 256, "chunk_bytes": 1024}
    job = write_job(tmp_path, **{**JOB, "epochs": 2, "strategy": strategy})
    train(job, tmp_path / "run", 2)
    resolved = json.loads((tmp_path / "run/job.json").read_text())
    assert resolved["strategy"]["gradients_per_update"] == 2
    train(job, tmp_path / "run", 3, "--epochs", 3)
    train(job, tmp_path / "other", 2, "--epochs", 3)
    assert checksum(tmp_path / "run") == checksum(tmp_path / "other")
    for other, difference in (({**strategy, "gradients_per_update": 4}, "$.strategy.gradients_per_update: 2 there, 4 now"),
                              ("async", '$.strategy.name: "sync" there, "async" now')):
        changed = job.with_name("changed.json")
        changed.write_text(json.dumps({**json.loads(job.read_text()), "strategy": other}))
        done = shoal("train", changed, "--run_dir", tmp_path / "run", "--epochs", 4)
        assert done.returncode == 78 and difference in done.stderr, done.stderr


def test_more_gradients_than_an_epoch_has_are_rejected(tmp_path):
    job = write_job(tmp_path, **{**JOB, "strategy": {"name": "sync", "gradients_per_update": 27}})
    done = shoal("train", job, "--run_dir", tmp_path / "run")
    assert done.returncode == 78, done.stdout + done.stderr
    assert all(part in done.stderr for part in ("$.strategy.gradients_per_update", " 27", " 26 ")), done.stderr

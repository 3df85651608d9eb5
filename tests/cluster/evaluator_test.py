"""An evaluator with real processes: what it finds, that it costs the workers nothing, and that nobody who is killed on the way
changes anything."""
import json
import signal

import pytest

from real_cluster import Cluster, shoal, wait_for, write_job
from run_history import csv_rows, results

UP = "the evaluator is ready"


def evaluated(run):
    return csv_rows(run / "evaluations.csv") if (run / "evaluations.csv").exists() else []


@pytest.fixture
def start(tmp_path):
    """Starts coordinator, ps and evaluator of a job; the worker comes when the evaluator is there."""
    with Cluster(tmp_path / "logs", ps=1, workers=1) as cluster:
        def start(job, run):
            chief = cluster.start_chief(job, run)
            ps = cluster.start("ps")
            evaluator = cluster.start_evaluator()
            chief.wait_for_output(UP)
            return cluster, chief, ps, evaluator
        yield start


def test_each_checkpoint_is_evaluated_and_the_best_is_kept(tmp_path, start):
    run = tmp_path / "run"
    job = write_job(tmp_path, epochs=4, checkpoint={"every_steps": 10, "keep": 2})
    cluster, chief, ps, evaluator = start(job, run)
    worker = cluster.start_worker(0)
    assert [each.wait() for each in (chief, ps, worker, evaluator)] == [0, 0, 0, 0], chief.output()[-3000:]
    lines = evaluated(run)
    assert len({line["checkpoint"] for line in lines}) == len(lines) > 0, lines
    by_epoch = {line["epoch"]: line for line in lines if int(line["step"]) % 25 == 0}
    last = results(run)[-1]
    assert last[0] == "4" and last[1], "the end of the job waits for its last result"
    for epoch, loss, accuracy in results(run):
        if loss:
            assert (by_epoch[epoch]["val_loss"], by_epoch[epoch]["val_accuracy"]) == (loss, accuracy)
    # The same as on one machine.
    best = min(lines, key=lambda line: float(line["val_loss"]))
    found = json.loads(shoal("evaluate", run, "--best", "--json").stdout)
    assert found["checkpoint"].endswith(best["checkpoint"]), (found, lines)
    assert found["loss"] == pytest.approx(float(best["val_loss"]), rel=1e-5)
    assert found["examples"] == int(best["examples"]) == 64
    listed = shoal("checkpoint", "list", run).stdout.splitlines()
    assert [line for line in listed if line.endswith("val_loss")] == [line for line in listed if best["checkpoint"] in line], listed


def test_nobody_who_is_killed_changes_what_is_found_or_decided(tmp_path, start):
    """One worker computes the same bits each time; early stopping is decided by what the evaluator says."""
    callbacks = [{"class_name": "EarlyStopping", "config": {"monitor": "val_accuracy", "patience": 30, "restore_best_weights": True}}]
    job = write_job(tmp_path, epochs=1000, callbacks=callbacks, checkpoint={"keep": 2})
    done = shoal("train", job, "--run_dir", tmp_path / "alone", "--workers", 1, "--threads", 1, "--ps", 1)
    assert done.returncode == 0, done.stdout + done.stderr

    run = tmp_path / "run"
    cluster, chief, ps, evaluator = start(job, run)
    worker = cluster.start_worker(0)
    for epochs in (2, 5, 9):
        wait_for(lambda: chief.popen.poll() is not None or len(evaluated(run)) >= epochs, f"{epochs} epochs")
        evaluator.kill()
        evaluator = cluster.start_evaluator()
        evaluator.wait_for_output("taking part as the evaluator")
    # The coordinator, too; and one that is told to leave.
    chief.kill()
    chief = cluster.start_chief(job, run)
    count = len(evaluated(run))
    wait_for(lambda: chief.popen.poll() is not None or len(evaluated(run)) > count, "another epoch")
    evaluator.signal(signal.SIGTERM)
    assert evaluator.wait() == 143, evaluator.output()[-3000:]
    evaluator = cluster.start_evaluator()
    assert [each.wait() for each in (chief, ps, worker, evaluator)] == [0, 0, 0, 0], chief.output()[-3000:]
    assert results(run) == results(tmp_path / "alone")
    assert (run / "model/model.safetensors").read_bytes() == (tmp_path / "alone/model/model.safetensors").read_bytes()
    names = [line["checkpoint"] for line in evaluated(run)]
    assert len(set(names)) == len(names) > 9, names


def test_the_last_evaluation_outlives_the_coordinator(tmp_path, start):
    run = tmp_path / "run"
    job = write_job(tmp_path, epochs=2)
    cluster, chief, ps, evaluator = start(job, run)
    evaluator.signal(signal.SIGSTOP)
    worker = cluster.start_worker(0)
    assert [worker.wait(), ps.wait()] == [0, 0], "nobody who has trained waits for it"
    wait_for(lambda: "the last checkpoint" in "".join((cluster.status() or {}).get("waiting", [])),
             "the coordinator to wait for the evaluator")
    assert (run / "model/model.safetensors").exists() and not results(run)[-1][1]
    chief.kill()
    chief = cluster.start_chief(job, run)
    evaluator.signal(signal.SIGCONT)
    assert [chief.wait(), evaluator.wait()] == [0, 0], chief.output()[-3000:]
    assert results(run)[-1][1], results(run)


def test_without_checkpoints_it_waits_and_says_so(tmp_path):
    with Cluster(tmp_path / "logs", ps=1, workers=1) as cluster:
        evaluator = cluster.start_evaluator()
        evaluator.wait_for_output("waiting for the coordinator at " + cluster.chief)
        cluster.start_chief(write_job(tmp_path), tmp_path / "run")
        evaluator.wait_for_output("not evaluated yet")
        task, = [task for task in wait_for(cluster.status, "a status")["tasks"] if task["type"] == "evaluator"]
        assert task["state"] == "up" and task["done"] == 0, task
        evaluator.signal(signal.SIGTERM)
        assert evaluator.wait() == 143


def test_a_listed_evaluator_that_never_comes_holds_nothing_up(tmp_path):
    with Cluster(tmp_path / "logs", ps=1, workers=1) as cluster:
        cluster.spec["evaluator"] = ["127.0.0.1:1"]
        chief = cluster.start_chief(write_job(tmp_path), tmp_path / "run")
        others = [cluster.start("ps"), cluster.start_worker(0)]
        assert [each.wait() for each in (chief, *others)] == [0, 0, 0], chief.output()[-3000:]
        assert "evaluator" in chief.output() and "not connected" in chief.output()
        assert all(loss for _, loss, _ in results(tmp_path / "run"))
        assert not evaluated(tmp_path / "run")


def test_a_job_without_a_test_set_has_no_use_for_one(tmp_path):
    path = write_job(tmp_path)
    job = json.loads(path.read_text())
    del job["data"]["test"]
    path.write_text(json.dumps(job))
    with Cluster(tmp_path / "logs", ps=1, workers=1) as cluster:
        cluster.start_chief(path, tmp_path / "run")
        evaluator = cluster.start_evaluator()
        assert evaluator.wait() == 78
        assert "$.data.test" in evaluator.output()

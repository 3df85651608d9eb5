"""Early stopping with real processes: what it decides, and that nobody who is killed on the way changes that."""
import json
import os
import signal

from real_cluster import BIN, Process, children_of, shoal, wait_for, write_job
from run_history import results

PATIENCE = 30
CALLBACKS = [{"class_name": "EarlyStopping",
              "config": {"monitor": "val_accuracy", "patience": PATIENCE, "restore_best_weights": True}}]
ONE_WORKER = ("--workers", 1, "--threads", 1, "--ps", 2)  # computes the same bits each time


def best_epoch(run):
    """The first among the best, from 1."""
    accuracies = [float(accuracy) for _, _, accuracy in results(run)]
    return accuracies.index(max(accuracies)) + 1


def test_a_killed_coordinator_changes_nothing_of_early_stopping(tmp_path):
    job = write_job(tmp_path, epochs=1000, callbacks=CALLBACKS, checkpoint={"keep": 2})
    alone = tmp_path / "alone"
    done = shoal("train", job, "--run_dir", alone, *ONE_WORKER)
    assert done.returncode == 0, done.stdout + done.stderr
    best = best_epoch(alone)
    assert len(results(alone)) == best + PATIENCE
    assert all(part in done.stdout for part in ("early stopping: ", f"after epoch {best + PATIENCE},", "val_accuracy")), done.stdout
    per_epoch = 400 // 16
    directory = f"step-{best * per_epoch:012}-"
    assert f"best val_accuracy: 1, of epoch {best}, in " in done.stdout and directory in done.stdout
    listed = shoal("checkpoint", "list", alone).stdout.splitlines()
    assert [line for line in listed if line.endswith("val_accuracy")] == [line for line in listed if directory in line]
    assert len(listed) == 1 + 3, "two, and the best"

    # What the run has come to, also for who asks no further.
    evaluated = json.loads(shoal("evaluate", alone, "--json").stdout)
    assert directory in evaluated["checkpoint"], evaluated

    again = shoal("train", job, "--run_dir", alone, *ONE_WORKER)
    assert again.returncode == 0 and "finished" in again.stdout, again.stdout + again.stderr

    killed = tmp_path / "killed"
    train = Process([BIN / "shoal", "train", job, "--run_dir", killed, *ONE_WORKER], tmp_path / "train.log")
    kills = 0
    try:
        for epochs in (1, 4, 9):
            wait_for(lambda: train.popen.poll() is not None or ((killed / "history.csv").exists()
                                                                and len(results(killed)) >= epochs), f"{epochs} epochs")
            if train.popen.poll() is not None:
                break
            for pid, task in children_of(train.popen.pid).items():
                if task == "chief 0":
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
        assert train.wait() == 0, train.output()[-3000:]
    finally:
        train.kill()
    assert kills > 0
    assert results(killed) == results(alone)
    assert (killed / "model/model.safetensors").read_bytes() == (alone / "model/model.safetensors").read_bytes()

    # With more patience, a run that has ended goes on.
    fields = json.loads(job.read_text())
    fields["callbacks"][0]["config"]["patience"] = PATIENCE + 5
    job.write_text(json.dumps(fields))
    longer = shoal("train", job, "--run_dir", alone, *ONE_WORKER)
    assert longer.returncode == 0, longer.stdout + longer.stderr
    assert len(results(alone)) == best + PATIENCE + 5

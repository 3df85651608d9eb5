"""Machines that share no directory: the ps see nothing of the coordinator's run directory."""
import os
import re
import subprocess

import pytest
from safetensors.numpy import load_file

from endless_job import EPOCHS, Ending
from real_cluster import Cluster, finished_steps, wait_for, write_job

UNSHARE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]


def hidden(directory):
    """Starts a program on "another machine", where `directory` is empty and cannot be written to."""
    return [*UNSHARE, "sh", "-ec", 'mount -t tmpfs -o ro tmpfs "$0"; exec "$@"', str(directory)]


def can_hide(directory):
    directory.mkdir(parents=True, exist_ok=True)
    return subprocess.run([*hidden(directory), "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("hidden_ps", [[0], [0, 1]])
def test_a_job_is_trained_and_recovers_without_a_shared_directory(tmp_path, hidden_ps):
    run, records = tmp_path / "run", tmp_path / "records"
    records.mkdir()
    if not can_hide(run):
        pytest.skip("needs mount namespaces")
    examples = 1600
    job = write_job(tmp_path, examples=examples, epochs=EPOCHS, checkpoint={"every_steps": 200, "keep": 2})
    ending = Ending(job, run, records, ps=2)
    with Cluster(tmp_path / "logs", ps=2, workers=1) as cluster:
        prefix = {index: hidden(run) if index in hidden_ps else [] for index in range(2)}
        ps = [cluster.start("ps", index, prefix=prefix[index]) for index in range(2)]
        chief = cluster.start_chief(job, run)
        worker = cluster.start_worker(0, f"--step_records={records}")
        wait_for(lambda: (status := cluster.status()) and status.get("last_checkpoint", {}).get("step", 0) > 0,
                 "a checkpoint")
        # A ps that comes back empty gets its rows by the stream, and says so.
        ps[0].kill()
        ps[0] = cluster.start("ps", 0, prefix=prefix[0])
        goal = finished_steps(records) + 200
        wait_for(lambda: finished_steps(records) > goal, "200 more steps")
        ending.stop(chief, [worker])
        ps[0].wait_for_output("does not see the directory")
        assert re.search(r"timeline begins .* parent=(?!seed)", chief.output()), chief.output()[-3000:]
    newest = sorted((run / "checkpoints").iterdir())[-1]
    assert not [each for each in newest.iterdir() if each.name.startswith(".")], "the marker is gone"
    ending.finish()
    ending.check_lineage(chief.output(), examples, killed_workers=0)
    for name, shape in {"dense/kernel": (64, 32), "dense_1/bias": (4,)}.items():
        assert load_file(run / "model" / "model.safetensors")[name].shape == shape

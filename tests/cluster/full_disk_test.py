"""A disk that is full, or read-only, costs checkpoints and nothing else. The disk is a small tmpfs in a mount namespace."""
import json
import re
import signal

import pytest

from mounted_disk import UNSHARE, Disk, can_mount
from real_cluster import BIN, Process, finished_steps, shoal, wait_for, write_job

pytestmark = pytest.mark.skipif(not can_mount(), reason="needs mount namespaces")


def status(run):
    done = shoal("status", "--run_dir", run, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else None


def train_on_a_small_disk(directory):
    """`shoal train`, its run directory and its records; the checkpoints are on a disk of 1 MiB."""
    job = write_job(directory, examples=8000, epochs=100000, checkpoint={"every_steps": 300, "keep": 2})
    run, records = directory / "run", directory / "records"
    checkpoints = run / "checkpoints"
    checkpoints.mkdir(parents=True)
    records.mkdir()
    train = Process([BIN / "shoal", "train", job, "--run_dir", run], directory / "train.log", {"SHOAL_STEP_RECORDS": str(records)},
                    prefix=[*UNSHARE, "sh", "-ec", 'mount -t tmpfs -o size=1m tmpfs "$0"; exec "$@"', checkpoints])
    return train, run, records


@pytest.mark.parametrize("trouble, error", [("full", "No space left on device"), ("read-only", "Read-only file system")])
def test_the_job_goes_on_with_the_last_good_checkpoint(tmp_path, trouble, error):
    train, run, records = train_on_a_small_disk(tmp_path)
    checkpoints = run / "checkpoints"
    try:
        good = wait_for(lambda: (status(run) or {}).get("last_checkpoint", {}).get("directory"), "a checkpoint")
        disk = Disk(train.popen.pid, checkpoints)
        disk.fill() if trouble == "full" else disk.remount("ro")
        train.wait_for_output("no checkpoint: ")
        line = next(line for line in train.output().splitlines() if "no checkpoint: " in line)
        assert error in line and str(checkpoints) in line and "retrying" in line, line

        troubled = wait_for(lambda: (now := status(run)) and now["last_checkpoint"]["last_error"] and now, "a status")
        assert error in troubled["last_checkpoint"]["last_error"]
        assert troubled["phase"] == "training" and troubled["last_checkpoint"]["directory"] >= good
        text = shoal("status", "--run_dir", run).stdout
        assert "checkpoint failed: " in text and "retrying" in text
        goal = finished_steps(records) + 1000
        wait_for(lambda: finished_steps(records) > goal, "steps go on")
        asked = shoal("checkpoint", "now", "--run_dir", run)
        assert asked.returncode == 138 and error in asked.stderr, asked.stderr

        disk.clear() if trouble == "full" else disk.remount("rw")
        train.wait_for_output("checkpoints are written again: ")
        written = shoal("checkpoint", "now", "--run_dir", run)
        assert written.returncode == 0, written.stderr
        train.signal(signal.SIGINT)
        assert train.wait() == 143, train.output()[-3000:]
        said = [line for line in train.output().splitlines() if error in line and "[ps 0]" not in line]
        assert all("no checkpoint: " in line for line in said), said  # once a try
    finally:
        train.kill()


def test_a_stop_with_a_full_disk_says_how_many_steps_are_lost(tmp_path):
    train, run, records = train_on_a_small_disk(tmp_path)
    disk = None
    try:
        wait_for(lambda: (status(run) or {}).get("last_checkpoint", {}).get("directory"), "a checkpoint")
        disk = Disk(train.popen.pid, run / "checkpoints")
        disk.fill()
        train.wait_for_output("no checkpoint: ")
        kept = status(run)["last_checkpoint"]["step"]
        # An epoch has 500 steps; one that was shown is one of which `shoal train` knows.
        train.wait_for_output(f"epoch {kept // 500 + 3}/100000: ")
        train.signal(signal.SIGINT)
        train.wait()
        said = re.search(r"the first (\d+) of \d+ steps; at least (\d+) more steps", train.output())
        assert said, train.output()[-3000:]
        assert int(said[1]) == kept and int(said[2]) >= 1000, said[0]
    finally:
        if disk is not None:
            disk.cleared.set()  # the disk itself goes with the process
        train.kill()

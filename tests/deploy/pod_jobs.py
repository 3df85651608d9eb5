"""A job on pods (pods.py) that has no end, until a test ends it and looks at what it has done."""
import json
import signal

import pytest
from safetensors.numpy import load_file

from pods import Pods, PodNetwork

from endless_job import EPOCHS, STOPPED
from lineage import BEGINS, check_lineage, timeline_number
from real_cluster import finished_steps, step_records, write_job

EXAMPLES, BATCH = 8007, 16
STEPS_PER_EPOCH = -(-EXAMPLES // BATCH)


@pytest.fixture
def pods(tmp_path):
    job = write_job(tmp_path / "job", EXAMPLES, BATCH, epochs=EPOCHS, checkpoint={"every_steps": 300, "keep": 2},
                    strategy={"name": "async", "min_shard_bytes": 256, "chunk_bytes": 1024})
    with PodNetwork(tmp_path) as network, Pods(tmp_path, job, network) as pods:
        yield pods


def add_all(pods, jobs):
    for task in sum(jobs.values(), []):
        pods.add(task)
    await_begin(pods.pods.values())


def await_begin(pods):
    """What has not begun yet dies of a SIGTERM."""
    for pod in pods:
        pod.process.wait_for_output(" at their defaults")


def steps_more(pods, count):
    goal = finished_steps(pods.records) + count
    pods.wait_for(lambda: finished_steps(pods.records) >= goal, f"{count} more steps")


def check_nothing_is_rolled_back(pods):
    """No timeline begins without a step that the one before had finished."""
    chief_log = pods.pods["shoal-coordinator-0.shoal"].output()
    records = step_records(pods.records)
    lines, lost = [], 0
    for name, begins, parent in BEGINS.findall(chief_log):
        again = [] if parent == "seed" else sorted(
            step for timeline, step, _ in records if timeline == timeline_number(parent) and step >= int(begins))
        lost += len(again)
        lines.append(f"timeline {name} begins at step {begins}, after {parent}" + (f", which had finished {len(again)} more, {again[0]} to {again[-1]}" if again else ""))
    # Whole: what explains it is long past.
    assert not lost, "\n".join(["steps were done again:", *lines, "the coordinator's log:", chief_log])


def end(pods, run, killed_workers):
    """Evicts all, gives the job, which has no end, one that is near, and has it finished: every step once, every example once an
    epoch, every chunk with all updates, a model."""
    running = [pod for pod in pods.pods.values() if pod.running()]
    await_begin(running)
    for pod in running:
        pod.process.signal(signal.SIGTERM)
    for pod in running:
        assert pod.await_termination() == 143, pod.output()[-3000:]
    stopped_at = json.loads(max((run / "checkpoints").glob("*/manifest.json")).read_text())["cut_step"]
    epochs = stopped_at // STEPS_PER_EPOCH + 1
    total = epochs * STEPS_PER_EPOCH
    pods.job.write_text(json.dumps(json.loads(pods.job.read_text()) | {"epochs": epochs}))
    pods.wait_for_end()

    chief, = (pod for name, pod in pods.pods.items() if "coordinator" in name)
    check_lineage(step_records(pods.records), chief.output(), epochs, EXAMPLES, BATCH, killed_workers)
    for name, pod in pods.pods.items():
        if "ps" in name:
            assert STOPPED.findall(pod.output())[-1] == (str(total), str(total)), pod.output()[-2000:]
    newest = sorted((run / "checkpoints").iterdir())[-1]
    assert json.loads((newest / "manifest.json").read_text())["cut_step"] == total
    assert load_file(run / "model/model.safetensors")["dense/kernel"].shape == (64, 32)

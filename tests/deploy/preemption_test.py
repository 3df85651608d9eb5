"""Pods are taken away and come back under another address, workers are added and removed; the job ends trained, nothing lost.

The same processes that Kubernetes would start, out of the rendered manifests, in network namespaces (pods.py).
"""
import dataclasses
import random
import re
import signal

import pytest
import yaml

from manifests import KUBERNETES, documents
from pod_jobs import add_all, await_begin, check_nothing_is_rolled_back, end, pods, steps_more  # noqa: F401 (a fixture)
from pods import SOURCE, can_make_pods, tasks_of_compose, tasks_of_jobs, wait_for

pytestmark = pytest.mark.skipif(not can_make_pods(), reason="pods of our own need root, network namespaces and setpriv")


@pytest.mark.parametrize("overlay", ["plain", "spot"])
def test_pods_are_taken_away_and_come_back_elsewhere(pods, tmp_path, chaos_seed, overlay):
    print("seed", chaos_seed)
    choose = random.Random(chaos_seed)
    jobs = tasks_of_jobs(documents(KUBERNETES / f"overlays/{overlay}/rendered.yaml"), tmp_path)
    add_all(pods, jobs)
    coordinator, ps_1 = pods.pods["shoal-coordinator-0.shoal"], pods.pods["shoal-ps-1.shoal"]
    steps_more(pods, 300)

    # Every kind of pod is preempted, in an order of the seed's; each says that it was stopped in order.
    for victim in choose.sample(["shoal-worker-1.shoal", "shoal-ps-1.shoal", "shoal-coordinator-0.shoal"], 3):
        before = pods.network.addresses[victim]
        assert pods.pods[victim].terminate() == 143, pods.pods[victim].output()[-3000:]
        steps_more(pods, choose.randrange(100, 500))
        assert pods.network.addresses[victim] != before
    # The coordinator had time for a checkpoint before the ps left: no step that anybody finished was done again.
    check_nothing_is_rolled_back(pods)
    assert "may leave" in ps_1.output(), ps_1.output()
    assert "ps 1 may leave" in coordinator.output(), coordinator.output()
    # A node is lost without a word.
    lost = choose.choice([name for name in pods.pods if "worker" not in name])
    pods.pods[lost].kill()
    steps_more(pods, 200)

    # parallelism 3 -> 5 -> 1: two that no list has join, four leave in order.
    first = jobs["shoal-worker"][0]
    for index in (3, 4):
        joined = pods.add(dataclasses.replace(
            first, name=f"shoal-worker-{index}.shoal", environment={**first.environment, "JOB_COMPLETION_INDEX": str(index)},
            volumes={place: tmp_path / f"worker-{index}" for place in first.volumes}))
        joined.process.wait_for_output("working in timeline")
        assert [joined.probe("livenessProbe"), joined.probe("readinessProbe")] == [200, 200]
    steps_more(pods, 200)
    for name in sorted(name for name in pods.pods if "worker" in name)[1:]:
        assert pods.remove(name) == 143

    assert coordinator.starts > 1 and ps_1.starts > 1
    end(pods, tmp_path / "run/run", killed_workers=0)


def test_everything_is_evicted_at_once(pods, tmp_path):
    """As when the Jobs are suspended, or a whole pool of nodes goes: a checkpoint is taken, and all go on from there."""
    add_all(pods, tasks_of_jobs(documents(KUBERNETES / "overlays/plain/rendered.yaml"), tmp_path))
    steps_more(pods, 500)
    for pod in pods.pods.values():
        pod.process.signal(signal.SIGTERM)
    for pod in pods.pods.values():
        assert pod.await_termination() == 143, pod.output()[-3000:]
    steps_more(pods, 100)
    check_nothing_is_rolled_back(pods)


def test_names_that_do_not_resolve_yet_are_waited_for(pods, tmp_path):
    """As in the first seconds of a cluster: pods run before anybody can look up their names."""
    jobs = tasks_of_jobs(documents(KUBERNETES / "overlays/plain/rendered.yaml"), tmp_path)
    early = {task.name: pods.add(task, named=False) for task in sum(jobs.values(), [])}
    coordinator, worker = early["shoal-coordinator-0.shoal"], early["shoal-worker-0.shoal"]
    for pod, peer in ((worker, r"the coordinator at shoal-coordinator-0\.shoal:2222"), (coordinator, r"ps 1 at shoal-ps-1\.shoal:2222")):
        wait_for(lambda: re.search(f"waiting for {peer}.* for .*the name cannot be looked up: ", pod.output()), f"{peer} is waited for")
    # They wait for each other, and each is ready for its own part.
    for pod in early.values():
        assert [pod.probe("livenessProbe"), pod.probe("readinessProbe")] == [200, 200], pod.task.name
    pods.network.publish()
    steps_more(pods, 100)
    assert {pod.starts for pod in early.values()} == {1}


def test_a_checkpoint_volume_that_is_read_only_is_named(pods, tmp_path):
    jobs = tasks_of_jobs(documents(KUBERNETES / "overlays/plain/rendered.yaml"), tmp_path)
    task, = jobs["shoal-coordinator"]
    task.read_only = frozenset(task.volumes)
    pod = pods.add(task)
    assert pod.process.wait() == 78, pod.output()
    # The last line, which Kubernetes shows as the reason.
    last = pod.output().splitlines()[-1]
    assert "/var/lib/shoal/run" in last and "Read-only file system" in last, pod.output()


def test_compose_services_are_killed_and_come_back(pods, tmp_path):
    compose = yaml.safe_load((SOURCE / "deploy/compose/compose.yaml").read_text())
    for task in tasks_of_compose(compose, tmp_path):
        pods.add(task)
    for victim in ("worker-1", "ps-0", "coordinator-0"):
        steps_more(pods, 300)
        pods.pods[victim].kill()
    steps_more(pods, 300)
    await_begin([pods.pods["worker-2"]])
    assert pods.pods["worker-2"].terminate() == 143
    end(pods, tmp_path / "run/run", killed_workers=1)

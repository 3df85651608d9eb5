"""shoal-task, the entry of containers: TF_CONFIG of counts and names, then the daemon in its own place."""
import json
import pathlib
import subprocess

import pytest

ENTRY = pathlib.Path(__file__).resolve().parents[2] / "deploy/docker/shoal-task"
CLUSTER = {"CLUSTER_HOSTS": "fish-TASK-INDEX.pond", "CLUSTER_PS": "2", "CLUSTER_WORKERS": "3", "JOB_COMPLETION_INDEX": "1"}


@pytest.fixture
def run(tmp_path):
    """Runs the entry; the daemons are scripts that say who was started with what."""
    for daemon in ("shoal-coordinator", "shoal-ps", "shoal-worker"):
        path = tmp_path / daemon
        path.write_text('#!/bin/sh\nprintf "%s\\n" "${0##*/} $*" "$$" "${TF_CONFIG-none}"\n')
        path.chmod(0o755)

    def run(*arguments, **environment):
        with subprocess.Popen([ENTRY, *arguments], env={"PATH": f"{tmp_path}:/usr/bin:/bin", **environment}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            out, error = process.communicate()
        if process.returncode != 0:
            return process.returncode, error
        command, pid, tf_config = out.splitlines()
        assert int(pid) == process.pid, "signals must reach the daemon itself"
        return command, None if tf_config == "none" else json.loads(tf_config)
    return run


@pytest.mark.parametrize("task, task_type, index", [("coordinator", "chief", 0), ("ps", "ps", 1), ("worker", "worker", 2)])
def test_a_task_knows_all_and_itself(run, task, task_type, index):
    command, tf_config = run(task, "--log_level=error", **{**CLUSTER, "JOB_COMPLETION_INDEX": str(index)})
    assert command == f"shoal-{task} --log_level=error"
    assert tf_config == {
        "cluster": {"chief": ["fish-coordinator-0.pond:2222"], "ps": ["fish-ps-0.pond:2222", "fish-ps-1.pond:2222"],
                    "worker": ["fish-worker-0.pond:2222", "fish-worker-1.pond:2222", "fish-worker-2.pond:2222"]},
        "task": {"type": task_type, "index": index}}


def test_a_worker_beyond_the_list_joins_by_the_coordinator(run):
    command, tf_config = run("worker", "--threads=1", **{**CLUSTER, "JOB_COMPLETION_INDEX": "3"})
    assert command == "shoal-worker --chief=fish-coordinator-0.pond:2222 --threads=1" and tf_config is None


def test_the_evaluator_is_a_worker_that_is_in_no_list(run):
    command, tf_config = run("evaluator", "--threads=1", **{**CLUSTER, "JOB_COMPLETION_INDEX": "0"})
    assert command == "shoal-worker --threads=1"
    assert tf_config["task"] == {"type": "evaluator", "index": 0} and "evaluator" not in tf_config["cluster"]


@pytest.mark.parametrize("arguments, change, words", [
    (["ps"], {"CLUSTER_WORKERS": "0"}, ["CLUSTER_WORKERS is 0", "at least one worker"]),
    (["coordinator"], {"CLUSTER_PS": "0"}, ["CLUSTER_PS is 0", "at least one ps"]),
    (["worker"], {"CLUSTER_WORKERS": "three"}, ["CLUSTER_WORKERS", "three"]),
    (["worker"], {"CLUSTER_WORKERS": ""}, ["CLUSTER_WORKERS is not set"]),
    (["ps"], {"CLUSTER_HOSTS": ""}, ["CLUSTER_HOSTS is not set"]),
    (["ps"], {"JOB_COMPLETION_INDEX": ""}, ["completionMode: Indexed"]),
    (["chief"], {}, ["chief", "coordinator, ps, worker or evaluator"]),
    ([], {}, ["coordinator, ps, worker or evaluator"]),
])
def test_a_wrong_entry_is_named(run, arguments, change, words):
    code, error = run(*arguments, **{**CLUSTER, **change})
    assert code == 78 and len(error.splitlines()) == 1
    for word in ["shoal-task: ", *words]:
        assert word in error

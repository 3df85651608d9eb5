"""What the threads of a cluster's processes did, told from two looks at them."""
import os
import shutil
import subprocess
import sys

import pytest

import thread_times
from real_cluster import wait_for
from thread_times import ThreadTimes, compare


def test_threads_are_told_by_what_they_took_meanwhile():
    before = {("shoal-worker", 7, "compute", 8): (10.0, 1.0), ("shoal-worker", 7, "input", 9): (1.0, 0.0), ("shoal-ps", 5, "loop", 5): (3.0, 0.0)}
    after = {("shoal-worker", 7, "compute", 8): (11.0, 1.5), ("shoal-worker", 7, "input", 9): (1.5, 0.0), ("shoal-ps", 5, "loop", 5): (4.9, 0.0),
             ("shoal-ps", 5, "new", 6): (0.2, 0.0)}
    assert compare(before, after, 2) == {
        "seconds": 2, "processes": {"shoal-ps 5": 1.05, "shoal-worker 7": 0.75},
        "threads": [{"process": "shoal-ps 5", "thread": "loop", "cpu": 0.95, "waits_for_a_core": 0},
                    {"process": "shoal-worker 7", "thread": "compute", "cpu": 0.5, "waits_for_a_core": 0.25},
                    {"process": "shoal-worker 7", "thread": "input", "cpu": 0.25, "waits_for_a_core": 0},
                    {"process": "shoal-ps 5", "thread": "new", "cpu": 0.1, "waits_for_a_core": 0}]}


def test_of_many_threads_the_largest_are_kept():
    after = {("shoal-ps", 1, "many", tid): (tid, 0) for tid in range(100)}
    assert [row["cpu"] for row in compare({}, after, 1)["threads"]] == list(range(99, 83, -1))


@pytest.fixture
def worker(tmp_path):
    """A process called shoal-worker of a process that this one has started, which is busy."""
    program = tmp_path / "shoal-worker"
    shutil.copy(shutil.which("sh"), program)
    code = f"import subprocess; subprocess.run([{str(program)!r}, '-c', 'echo; while :; do :; done'])"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        parent.stdout.readline()
        found = next(pid for pid, name in thread_times.shoals().items() if name == "shoal-worker")
        yield found
        os.kill(found, 9)


def write_epochs(history, count):
    new = history.with_suffix(".new")
    new.write_text("epoch,loss\n" + "1,2\n" * count)
    os.replace(new, history)


def test_a_run_is_watched_between_two_epochs(tmp_path, worker, monkeypatch):
    looks = []
    look = thread_times.read_threads
    monkeypatch.setattr(thread_times, "read_threads", lambda: looks.append(look()) or looks[-1])
    history = tmp_path / "history.csv"

    def used():
        return sum(on_core for on_core, _ in look().values())

    with ThreadTimes(history, 1, 4) as times:
        write_epochs(history, 1)
        wait_for(lambda: looks, "the first look", 60)
        begun = used()
        wait_for(lambda: used() >= begun + 0.1, "it works", 60)
        write_epochs(history, 4)
        wait_for(lambda: len(looks) == 2, "the second look", 60)
    assert list(times.summary["processes"]) == [f"shoal-worker {worker}"]
    assert times.summary["processes"][f"shoal-worker {worker}"] > 0
    assert times.summary["threads"][0]["thread"] == "shoal-worker"


def test_a_run_that_ends_early_or_at_once_has_none(tmp_path):
    with ThreadTimes(tmp_path / "none.csv", 1, 4) as times:
        pass
    assert times.summary is None
    history = tmp_path / "history.csv"
    write_epochs(history, 5)
    with ThreadTimes(history, 1, 4) as times:
        wait_for(lambda: not times._thread.is_alive(), "it sees that", 60)
    assert times.summary is None

"""The CPU time of the threads of Shoal's processes while a local cluster trains."""
import collections
import os
import pathlib
import threading
import time

from descendants import read_processes

MOST_THREADS = 16
# Of the look at the history for whether an epoch has ended.
INTERVAL_SECONDS = 0.02
TICKS = os.sysconf("SC_CLK_TCK")


def shoals():
    """{pid: name} of the processes of Shoal that this one has started, or that have them in turn."""
    processes = read_processes()
    children = collections.defaultdict(list)
    for pid, process in processes.items():
        children[process.parent].append(pid)
    found, new = {}, [os.getpid()]
    while new:
        new = [pid for parent in new for pid in children[parent]]
        for pid in new:
            try:
                found[pid] = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:  # it has ended meanwhile
                pass
    return {pid: name for pid, name in found.items() if name.startswith("shoal")}


def read_threads():
    """{(process, pid, thread, tid): (seconds on a core, seconds without one that it could have used)}"""
    found = {}
    for pid, process in shoals().items():
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
            try:
                name, _, fields = (task / "stat").read_text().partition("(")[2].rpartition(")")
                fields = fields.split()
                found[process, pid, name, int(task.name)] = ((int(fields[11]) + int(fields[12])) / TICKS, read_wait(task))
            except OSError:
                pass
    return found


def read_wait(task):
    try:
        return int((task / "schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):  # not every kernel counts it
        return 0


def compare(before, after, seconds):
    """What the threads took of a second meanwhile: all of each process, and of the threads the largest."""
    rows, processes = [], collections.Counter()
    for key, (on_core, waited) in after.items():
        process, pid, thread, _ = key
        on_core_before, waited_before = before.get(key, (0, 0))
        share, wait_share = (on_core - on_core_before) / seconds, (waited - waited_before) / seconds
        processes[f"{process} {pid}"] += share
        rows.append({"process": f"{process} {pid}", "thread": thread, "cpu": round(share, 3), "waits_for_a_core": round(wait_share, 3)})
    rows.sort(key=lambda row: -row["cpu"])
    return {"seconds": round(seconds, 2), "processes": {name: round(share, 3) for name, share in processes.most_common()},
            "threads": rows[:MOST_THREADS]}


class ThreadTimes:
    """While it is entered, waits for the ends of two epochs of a run; then `summary` is what the threads did between them, None where the run
    did not come so far, or came too fast."""

    def __init__(self, history, first, last):
        self.summary = None
        self._history = history
        self._epochs = (first, last)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _watch(self):
        first, last = self._epochs
        before = None
        while not self._over.wait(INTERVAL_SECONDS):
            epochs = self._epochs_done()
            if before is None and first <= epochs < last:
                before = read_threads(), time.monotonic()
            if epochs >= last:
                # Later there may be none of the processes any more.
                if before is not None and epochs == last:
                    self.summary = compare(before[0], read_threads(), time.monotonic() - before[1])
                return

    def _epochs_done(self):
        try:
            return max(0, self._history.read_bytes().count(b"\n") - 1)
        except OSError:
            return 0

"""What a program has started, and what that has, so that nothing of it runs on: neither in a session of its own, nor where whoever started it
has ended before."""
import collections
import ctypes
import os
import pathlib
import signal
import time
import uuid

# A variable of each program, with a value of its own, which what it starts has, too: `shoal train` gives its daemons none of SHOAL_….
MARK = "GPU_CHECK_PROGRAM"
# What was killed may be in a driver for a while, and holds a GPU's memory until it has come out.
PATIENCE_SECONDS = 5
PR_SET_CHILD_SUBREAPER = 36

# `start` is in ticks, and tells two processes of one pid apart.
Process = collections.namedtuple("Process", "parent state start")


def adopt_orphans(yes=True):
    """What a program leaves behind becomes a child of this process, which then knows when it has ended; where the system has no such thing,
    one of init's."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(yes), 0, 0, 0)
    except (OSError, AttributeError):
        pass


def read_processes():
    """{pid: Process} of all that there are."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name before may have anything in it.
            state, parent, *others = path.read_bytes().rpartition(b")")[2].split()
            found[int(path.parent.name)] = Process(int(parent), state.decode(), int(others[17]))
        except (OSError, ValueError, IndexError):  # it has ended meanwhile
            pass
    return found


class Descendants:
    """Those of one program, which is to be started with `environment` as a part of its own."""

    def __init__(self):
        self.environment = {MARK: uuid.uuid4().hex}
        self._mark = f"{MARK}={self.environment[MARK]}".encode()
        self._known = set()  # (pid, start)

    def look(self, program=None):
        """Takes down which there are now, of `program`, a pid, while it runs: also those that do not have its variables. {pid: Process}"""
        processes = read_processes()
        mine = {pid for pid, process in processes.items() if (pid, process.start) in self._known}
        mine |= {pid for pid in processes if pid not in mine and self._is_marked(pid)}
        children = collections.defaultdict(list)
        for pid, process in processes.items():
            children[process.parent].append(pid)
        new = [*mine, *([program] if program in processes else [])]
        while new:
            new = [pid for parent in new for pid in children[parent] if pid not in mine]
            mine.update(new)
        mine -= {program, os.getpid()}
        self._known |= {(pid, processes[pid].start) for pid in mine}
        return {pid: processes[pid] for pid in mine}

    def end(self):
        """Kills them when the program has ended, and waits for that; those that do not heed it in time: pids."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = self.look()
            left = [pid for pid, process in found.items() if process.state not in "ZX"]
            for pid in left:
                _kill(pid)
            for pid, process in found.items():
                if process.parent == os.getpid():
                    _reap(pid)
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.01)

    def _is_marked(self, pid):
        try:
            return self._mark in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile, or is another user's
            return False


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def _reap(pid):
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass

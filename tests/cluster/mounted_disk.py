"""A small disk of the test's own: a tmpfs in a mount namespace, which is filled, emptied and made read-only."""
import os
import pathlib
import subprocess
import threading

from real_cluster import wait_for

UNSHARE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]


def can_mount():
    try:
        return subprocess.run([*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


class Disk:
    """The tmpfs on `directory`, as the process `pid` sees it."""

    def __init__(self, pid, directory):
        self.pid, self.directory = pid, directory
        self.filler = pathlib.Path(f"/proc/{pid}/root{directory}/filler")

    def fill(self):
        """Whatever room there is, or comes to be when files are removed, is taken until clear()."""
        self.cleared = threading.Event()
        file = open(self.filler, "wb", buffering=0)
        self._take_room(file)
        self.hog = threading.Thread(target=self._keep_full, args=(file,), daemon=True)
        self.hog.start()

    def _keep_full(self, file):
        with file:
            while not self.cleared.wait(0.01):
                self._take_room(file)

    @staticmethod
    def _take_room(file):
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            pass

    def clear(self):
        self.cleared.set()
        self.hog.join()
        self.filler.unlink()

    def remount(self, mode):
        """The kernel makes nothing read-only in which a file is being written: it is asked until it obeys."""
        command = ["nsenter", f"--target={self.pid}", "--mount", *(["--user", "--preserve-credentials"] if os.geteuid() else []),
                   "mount", "-o", f"remount,{mode}", self.directory]

        def obeyed():
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0 or "busy" in done.stderr, done.stderr
            return done.returncode == 0
        wait_for(obeyed, f"{self.directory}, which is busy, becomes {mode}")

"""A small disk of the test's own: a tmpfs in a mount namespace, which is filled, emptied and made read-only."""
import os
import pathlib
import subprocess

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
        with open(self.filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * 4096)
            except OSError:
                pass

    def clear(self):
        self.filler.unlink()

    def remount(self, mode):
        subprocess.run(["nsenter", f"--target={self.pid}", "--mount", *(["--user", "--preserve-credentials"] if os.geteuid() else []),
                        "mount", "-o", f"remount,{mode}", self.directory], check=True, capture_output=True)

"""Network namespaces of a test's own."""
import os
import subprocess


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def can_make_namespaces():
    name = f"shoal-try-{os.getpid()}"
    try:
        ip("netns", "add", name)
        ip("netns", "delete", name)
        return True
    except (OSError, subprocess.CalledProcessError):
        return False


def delete_namespaces(names):
    for name in names:
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)

"""A clean Debian, made once with debootstrap and kept in build/ for the tests that install things on it."""
import os
import pathlib
import shutil
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CLEAN = SOURCE / "build/debian-root"


def reason_against():
    """Why no clean Debian can be made here; None where it can."""
    if os.geteuid() != 0:
        return "a clean Debian can only be made by root"
    return None if shutil.which("debootstrap") else "debootstrap is not installed"


def clean_root():
    """The folder; nobody may change what is in it."""
    if not CLEAN.exists():
        partial = CLEAN.with_name("debian-root.partial")
        shutil.rmtree(partial, ignore_errors=True)
        run("debootstrap", "--variant=minbase", "bookworm", partial)
        partial.rename(CLEAN)
    return CLEAN


def run(*command, **options):
    """Its output; fails with it where the command does."""
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **options)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout[-5000:]}"
    return done.stdout


def in_root(root, script):
    """Runs it by sh in the root, with its own mounts."""
    return run("unshare", "--mount", "sh", "-ec", f"""
        mount -t proc proc {root}/proc
        mount -t tmpfs tmpfs {root}/run
        exec chroot {root} env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -ec "$0"
        """, script)

"""A Docker engine of a test's own, and images that are built with it.

There is no registry here: the base image is a Debian made with debootstrap. The engine that builds uses the machine's network, as packages
are fetched; one that runs can have a network namespace of its own.
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess

import pytest

from debian_root import SOURCE, clean_root, reason_against, run
from real_cluster import wait_for, with_parent

BASE = "debian:bookworm-slim"


class Engine:
    """A Docker engine with its own data; with `isolated`, in a network namespace of its own."""

    def __init__(self, directory, isolated):
        self.directory, self.isolated = directory, isolated
        self.socket = directory / "docker.sock"
        self.environment = {**os.environ, "DOCKER_HOST": f"unix://{self.socket}", "DOCKER_BUILDKIT": "0", "COMPOSE_DOCKER_CLI_BUILD": "0"}

    def __enter__(self):
        namespaces = ["unshare", "--mount", *(["--net"] if self.isolated else [])]
        network = [] if self.isolated else ["--bridge=none", "--iptables=false"]
        script = 'ip link set lo up; exec "$@"' if self.isolated else 'exec "$@"'
        with open(self.directory / "dockerd.log", "ab") as log:
            self.process = subprocess.Popen(
                [*with_parent("TERM"), *namespaces, "sh", "-c", script, "sh", "dockerd", "--data-root", self.directory / "data",
                 "--exec-root", self.directory / "exec", "--pidfile", self.directory / "pid", "--host", f"unix://{self.socket}", *network],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            wait_for(self._answers, "the Docker engine answers")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def missing_right(self):
        """The last words of an engine that ended for want of a right or a cgroup; None where that is not the reason."""
        *_, last = (self.directory / "dockerd.log").read_text(errors="replace").splitlines() or [""]
        return last if re.search("operation not permitted|permission denied|root privileges|cgroup", last, re.IGNORECASE) else None

    def _answers(self):
        assert self.process.poll() is None, (self.directory / "dockerd.log").read_text(errors="replace")[-3000:]
        return subprocess.run(["docker", "info"], env=self.environment, capture_output=True, check=False).returncode == 0

    def docker(self, *arguments, **options):
        return run("docker", *arguments, env=self.environment, **options)

    def shell(self, script):
        return run("bash", "-euc", script, cwd=SOURCE, env=self.environment)


def reason():
    """Why there can be no engine here; None where there can."""
    if reason_against():
        return reason_against()
    missing = [program for program in ("dockerd", "docker", "docker-compose") if shutil.which(program) is None]
    return f"{missing[0]} is not installed: scripts/install-dependencies --containers" if missing else None


@contextlib.contextmanager
def building(directory):
    """An engine that has the base image."""
    engine = Engine(directory, isolated=False)
    try:
        engine.__enter__()
    except AssertionError:
        if engine.missing_right():
            pytest.skip(f"no Docker engine can be started here: {engine.missing_right()}")
        raise
    try:
        with subprocess.Popen(["tar", "--create", "--directory", clean_root(), "."], stdout=subprocess.PIPE) as tar:
            subprocess.run(["docker", "import", "-", BASE], stdin=tar.stdout, env=engine.environment, check=True, capture_output=True)
        yield engine
    finally:
        engine.__exit__()


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """For an engine's data."""
    made = tmp_path_factory.mktemp("docker")
    yield made
    shutil.rmtree(made, ignore_errors=True)  # gigabytes

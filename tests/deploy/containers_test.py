"""The image is built and the cluster of deploy/compose run, by a Docker engine of the test's own. A lane of scripts/check-lanes.

There is no registry here: the base image is a Debian made with debootstrap, Prometheus's has the program of Debian's package.
The engine that builds uses the machine's network, as packages are fetched; the one that runs has a network namespace of its own.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
import yaml

from debian_root import SOURCE, clean_root, reason_against, run
from document_blocks import commands
from real_cluster import wait_for

COMPOSE_FILE = SOURCE / "deploy/compose/compose.yaml"
SERVICES = yaml.safe_load(COMPOSE_FILE.read_text())["services"]
PROMETHEUS = SERVICES["prometheus"]["image"]
PROMETHEUS_IMAGE = """
FROM debian:bookworm-slim
RUN echo 'Acquire::Retries "8";' >/etc/apt/apt.conf.d/retries && apt-get update --quiet --quiet && apt-get install --yes --quiet --quiet --no-install-recommends prometheus
USER 65534:65534
WORKDIR /tmp
ENTRYPOINT ["/usr/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/tmp/prometheus"]
"""


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
                [*namespaces, "sh", "-c", script, "sh", "dockerd", "--data-root", self.directory / "data", "--exec-root", self.directory / "exec",
                 "--pidfile", self.directory / "pid", "--host", f"unix://{self.socket}", *network],
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

    def inspect(self, service, field):
        return self.docker("inspect", "--format", "{{." + field + "}}", container(service)).strip()

    def logs(self, service):
        return self.docker("logs", container(service))


def container(service):
    """What docker-compose calls it, after the folder of its file."""
    return f"compose_{service}_1"


def reason():
    if reason_against():
        return reason_against()
    missing = [program for program in ("dockerd", "docker", "docker-compose") if shutil.which(program) is None]
    return f"{missing[0]} is not installed: scripts/install-dependencies --containers" if missing else None


pytestmark = pytest.mark.skipif(bool(reason()), reason=str(reason()))


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    made = tmp_path_factory.mktemp("docker")
    yield made
    shutil.rmtree(made, ignore_errors=True)  # gigabytes


@pytest.fixture(scope="module")
def images(directory):
    """Builds all images as the Dockerfile says; the engine's data hold them."""
    engine = Engine(directory, isolated=False)
    try:
        engine.__enter__()
    except AssertionError:
        if engine.missing_right():
            pytest.skip(f"no Docker engine can be started here: {engine.missing_right()}")
        raise
    try:
        with subprocess.Popen(["tar", "--create", "--directory", clean_root(), "."], stdout=subprocess.PIPE) as tar:
            subprocess.run(["docker", "import", "-", "debian:bookworm-slim"], stdin=tar.stdout, env=engine.environment, check=True,
                           capture_output=True)
        dockerfile = SOURCE / "deploy/docker/Dockerfile"
        engine.docker("build", "--network=host", "--file", dockerfile, "--target", "shoal", "--tag", "shoal:0.1.0", SOURCE)
        subprocess.run(["bash", "-euc", commands("image").replace("docker build", "docker build --network=host")], cwd=SOURCE,
                       env=engine.environment, check=True, stdout=subprocess.DEVNULL)
        (directory / "prometheus").mkdir()
        (directory / "prometheus/Dockerfile").write_text(PROMETHEUS_IMAGE)
        engine.docker("build", "--network=host", "--tag", PROMETHEUS, directory / "prometheus")
    finally:
        engine.__exit__()


@pytest.fixture
def engine(directory, images):
    with Engine(directory, isolated=True) as engine:
        yield engine


def test_the_image_holds_what_runs_and_no_more(engine):
    shell = ["run", "--rm", "--network=none", "--entrypoint", "sh", "shoal:0.1.0", "-c"]
    assert engine.docker(*shell, "id -u").strip() == "65532"
    assert engine.docker(*shell, "for tool in gcc g++ cc make cmake ninja git ccache; do command -v $tool || true; done").strip() == ""
    assert engine.docker(*shell, "for program in shoal shoal-coordinator shoal-ps shoal-worker; do $program --version; done").count("0.1.0") == 4
    assert "fashion_mnist" in engine.docker(*shell, "ls /usr/share/shoal/examples")


def test_compose_trains_and_brings_back_what_dies(engine):
    start, logs, down = commands("compose").splitlines()
    # Everything is built: nothing is fetched.
    engine.shell(start)
    try:
        wait_for(lambda: "training:" in engine.shell(logs), "steps")
        ours = [name for name, service in SERVICES.items() if service["image"].startswith("shoal") and "profiles" not in service]
        for service in ours:
            wait_for(lambda: engine.inspect(service, "State.Health.Status") == "healthy", f"{service} is healthy")
        watched = ["exec", container("prometheus"), "promtool", "query", "instant", "http://localhost:9090", "sum(up)"]
        wait_for(lambda: f"=> {len(ours)} @" in engine.docker(*watched), "Prometheus sees all of them")

        # Killed, as by the kernel: `docker kill` would say that it is meant.
        os.kill(int(engine.inspect("worker-1", "State.Pid")), signal.SIGKILL)
        wait_for(lambda: engine.inspect("worker-1", "RestartCount") == "1" and engine.inspect("worker-1", "State.Running") == "true",
                 "another worker")
        wait_for(lambda: engine.logs("worker-1").count("working in timeline") == 2, "it takes part again")
        # Process 1 of a container, stopped in order.
        engine.docker("stop", "--time=10", container("worker-2"))
        assert engine.inspect("worker-2", "State.ExitCode") == "143", engine.logs("worker-2")
        engine.docker("start", container("worker-2"))

        for service in ours:
            wait_for(lambda: engine.inspect(service, "State.Status") == "exited", f"{service} ends", 400)
            assert engine.inspect(service, "State.ExitCode") == "0", engine.logs(service)[-3000:]
        assert engine.inspect("prometheus", "State.Running") == "true", engine.logs("prometheus")
        engine.docker("cp", container("coordinator-0") + ":/var/lib/shoal/run/model/model.safetensors", engine.directory / "model.safetensors")
    finally:
        engine.shell(down + " --volumes --timeout=5")

"""The image is built and the cluster of deploy/compose run, by a Docker engine of the test's own. A lane of scripts/check-lanes.

Prometheus's image has the program of Debian's package.
"""
import os
import signal
import subprocess

import pytest
import yaml

from bill_of_materials import read, write_sbom
from debian_root import SOURCE
from docker_engine import Engine, building, directory, reason  # noqa: F401 (a fixture)
from document_blocks import commands
from real_cluster import wait_for
from version import VERSION

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


def container(service):
    """What docker-compose calls it, after the folder of its file."""
    return f"compose_{service}_1"


def inspect(engine, service, field):
    return engine.docker("inspect", "--format", "{{." + field + "}}", container(service)).strip()


def logs_of(engine, service):
    return engine.docker("logs", container(service))


pytestmark = pytest.mark.skipif(bool(reason()), reason=str(reason()))


@pytest.fixture(scope="module")
def images(directory):
    """Builds all images as the Dockerfile says; the engine's data hold them."""
    with building(directory) as engine:
        dockerfile = SOURCE / "deploy/docker/Dockerfile"
        engine.docker("build", "--network=host", "--file", dockerfile, "--target", "shoal", "--tag", f"shoal:{VERSION}", SOURCE)
        subprocess.run(["bash", "-euc", commands("image").replace("docker build", "docker build --network=host")], cwd=SOURCE,
                       env=engine.environment, check=True, stdout=subprocess.DEVNULL)
        (directory / "prometheus").mkdir()
        (directory / "prometheus/Dockerfile").write_text(PROMETHEUS_IMAGE)
        engine.docker("build", "--network=host", "--tag", PROMETHEUS, directory / "prometheus")


@pytest.fixture
def engine(directory, images):
    with Engine(directory, isolated=True) as engine:
        yield engine


def test_the_image_holds_what_runs_and_no_more(engine):
    shell = ["run", "--rm", "--network=none", "--entrypoint", "sh", f"shoal:{VERSION}", "-c"]
    assert engine.docker(*shell, "id -u").strip() == "65532"
    assert engine.docker(*shell, "for tool in gcc g++ cc make cmake ninja git ccache; do command -v $tool || true; done").strip() == ""
    assert engine.docker(*shell, "for program in shoal shoal-coordinator shoal-ps shoal-worker; do $program --version; done").count(VERSION) == 4
    assert "fashion_mnist" in engine.docker(*shell, "ls /usr/share/shoal/examples")


def test_the_list_of_the_image_is_whole(engine, tmp_path):
    """Written to build/sbom, for whoever gets the image."""
    shell = ["run", "--rm", "--network=none", "--entrypoint", "cat", f"shoal:{VERSION}"]
    for name in ("var/lib/dpkg/status", "etc/os-release"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(engine.docker(*shell, f"/{name}"))
    output = SOURCE / "build/sbom/shoal.image.cdx.json"
    written = write_sbom("image", f"shoal:{VERSION}", "--root", tmp_path, "--output", output)
    assert written.returncode == 0, written.stderr
    described, components = read(output)
    assert (described["type"], described["version"], components["shoal"]["version"]) == ("container", VERSION, VERSION)
    installed = engine.docker(*shell[:-2], "dpkg-query", shell[-1], "--show", "--showformat=${Package}\\n").split()
    assert {"libgrpc++1.51", "libopenblas0-openmp", "libc6"} <= set(installed)
    assert set(components) - {"Debian GNU/Linux"} == set(installed)


def test_compose_trains_and_brings_back_what_dies(engine):
    start, logs, down = commands("compose").splitlines()
    # Everything is built: nothing is fetched.
    engine.shell(start)
    try:
        wait_for(lambda: "training:" in engine.shell(logs), "steps")
        ours = [name for name, service in SERVICES.items() if service["image"].startswith("shoal") and "profiles" not in service]
        for service in ours:
            wait_for(lambda: inspect(engine, service, "State.Health.Status") == "healthy", f"{service} is healthy")
        watched = ["exec", container("prometheus"), "promtool", "query", "instant", "http://localhost:9090", "sum(up)"]
        wait_for(lambda: f"=> {len(ours)} @" in engine.docker(*watched), "Prometheus sees all of them")

        # Killed, as by the kernel: `docker kill` would say that it is meant.
        os.kill(int(inspect(engine, "worker-1", "State.Pid")), signal.SIGKILL)
        wait_for(lambda: inspect(engine, "worker-1", "RestartCount") == "1" and inspect(engine, "worker-1", "State.Running") == "true",
                 "another worker")
        wait_for(lambda: logs_of(engine, "worker-1").count("working in timeline") == 2, "it takes part again")
        # Process 1 of a container, stopped in order.
        engine.docker("stop", "--time=10", container("worker-2"))
        assert inspect(engine, "worker-2", "State.ExitCode") == "143", logs_of(engine, "worker-2")
        engine.docker("start", container("worker-2"))

        for service in ours:
            wait_for(lambda: inspect(engine, service, "State.Status") == "exited", f"{service} ends", 400)
            assert inspect(engine, service, "State.ExitCode") == "0", logs_of(engine, service)[-3000:]
        assert inspect(engine, "prometheus", "State.Running") == "true", logs_of(engine, "prometheus")
        engine.docker("cp", container("coordinator-0") + ":/var/lib/shoal/run/model/model.safetensors", engine.directory / "model.safetensors")
    finally:
        engine.shell(down + " --volumes --timeout=5")


def test_compose_with_tls(engine):
    certificates = engine.directory / "certificates"
    place = "$PWD/certificates"
    assert place in commands("compose-certificates")
    # Made by the image; compose gets the variable.
    set_directory, *make = commands("compose-certificates").replace(place, str(certificates)).splitlines(keepends=True)
    engine.shell(set_directory + "".join(make))
    start, status = commands("compose-tls").splitlines()
    down = start.split(" up ")[0] + " down --volumes --timeout=5"
    try:
        engine.shell(set_directory + start)
        ours = [name for name, service in SERVICES.items() if service["image"].startswith("shoal") and "profiles" not in service]
        for service in ours:
            wait_for(lambda: inspect(engine, service, "State.Health.Status") == "healthy", f"{service} is healthy")
            role = service.replace("coordinator-0", "coordinator").replace("-", "/")
            assert f"identity=spiffe://shoal/job/fashion_mnist/{role}" in logs_of(engine, service)
        wait_for(lambda: "training:" in logs_of(engine, "coordinator-0"), "steps")
        assert "worker 2" in engine.shell(set_directory + status)
        # By its certificate, under the names of the targets.
        watched = ["exec", container("prometheus"), "promtool", "query", "instant", "http://localhost:9090", "sum(up)"]
        wait_for(lambda: f"=> {len(ours)} @" in engine.docker(*watched), "Prometheus sees all of them")
    finally:
        engine.shell(set_directory + down)

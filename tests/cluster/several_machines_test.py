"""Runs the commands of docs/running-on-several-machines.md, and those of docs/security.md for a cluster with TLS, as they stand there,
each in its own network namespace."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from namespaces import can_make_namespaces, delete_namespaces, ip
from real_cluster import BIN, SOURCE, Cluster, Process, wait_for, write_job

DOCUMENT = SOURCE / "docs/running-on-several-machines.md"
SECURITY = SOURCE / "docs/security.md"


def blocks(attribute, document=DOCUMENT):
    """{value: shell text} of the fenced blocks that carry `attribute=value`."""
    text = document.read_text()
    return {value: body for value, body in re.findall(r"```sh " + attribute + r"=(\S+)\n(.*?)```", text, re.S)}


pytestmark = pytest.mark.skipif(not can_make_namespaces(), reason="network namespaces need root and iproute2")


class Namespaces:
    """One namespace a host address, all on a bridge that lives in a namespace of its own."""

    def __init__(self, hosts):
        tag = os.getpid()
        self.hub = f"shoal-{tag}-hub"
        self.names = {host: f"shoal-{tag}-{i}" for i, host in enumerate(hosts)}

    def __enter__(self):
        ip("netns", "add", self.hub)
        ip("-n", self.hub, "link", "add", "bridge0", "type", "bridge")
        ip("-n", self.hub, "link", "set", "bridge0", "up")
        for i, (host, name) in enumerate(self.names.items()):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", self.hub, "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", self.hub, "link", "set", f"port{i}", "master", "bridge0", "up")
            ip("-n", name, "address", "add", f"{host}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        return self

    def __exit__(self, *_):
        delete_namespaces((*self.names.values(), self.hub))


def run_blocks(commands, namespace_of, tmp_path):
    """Starts every block in its namespace, workers first; all must end with 0."""
    # The job of the document, cut short, and a directory of the test's for the shared one.
    job = json.loads((SOURCE / "examples/fashion_mnist/job.json").read_text())
    job.update(epochs=1, model=str(SOURCE / "examples/fashion_mnist/model.json"))
    short_job = tmp_path / "job.json"
    short_job.write_text(json.dumps(job))
    processes = []
    try:
        for key in reversed(list(commands)):
            text = commands[key].replace("examples/fashion_mnist/job.json", str(short_job))
            text = text.replace("/srv/shoal/fashion_mnist", str(tmp_path / "run")).replace("runs/by_hand", str(tmp_path / "run"))
            processes.append(Process(["bash", "-euc", text], tmp_path / f"{key}.log", {"PATH": f"{BIN}:{os.environ['PATH']}"},
                                     prefix=["ip", "netns", "exec", namespace_of(key)]))
        for process in processes:
            assert process.wait() == 0, process.output()[-3000:]
    finally:
        for process in processes:
            # The daemon is a child of bash, in the session that the test made.
            try:
                os.killpg(process.popen.pid, 9)
            except ProcessLookupError:
                pass
            process.kill()
    return processes


def test_four_machines(tmp_path):
    commands = blocks("host")
    assert len(commands) == 4
    with Namespaces(commands) as network:
        run_blocks(commands, lambda host: network.names[host], tmp_path)
    assert (tmp_path / "run/model/model.safetensors").exists()
    # As the page says: coordinator and ps serve plain traffic, and warn.
    warned = {path.stem for path in tmp_path.glob("10.*.log") if "insecure: " in path.read_text()}
    assert warned == {"10.77.0.1", "10.77.0.2"}


def test_three_machines_with_tls(tmp_path):
    commands = blocks("host", SECURITY)
    assert len(commands) == 3
    subprocess.run(["bash", "-euc", blocks("run", SECURITY)["certificates"]], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})
    # The copies on the machines.
    section = SECURITY.read_text().split("## Three machines with TLS\n")[1].split("\n## ")[0]
    for directory, host in re.findall(r"scp -rp (tls/\S+) (10\.77\.0\.\d):", section):
        (tmp_path / directory).rename(tmp_path / f"{directory}.1")
        (tmp_path / f"tls-of-{host}").symlink_to(f"{directory}.1")
    commands = {host: text.replace("/etc/shoal/tls", str(tmp_path / f"tls-of-{host}")) for host, text in commands.items()}
    with Namespaces(commands) as network:
        run_blocks(commands, lambda host: network.names[host], tmp_path)
    assert (tmp_path / "run/model/model.safetensors").exists()
    for host in commands:
        log = (tmp_path / f"{host}.log").read_text()
        assert "traffic is encrypted" in log and "insecure: " not in log, log


def test_on_one_machine_gradients_and_values_go_through_no_socket(tmp_path):
    """They lie in memory that worker and ps share (common/rpc/shared/shared_payloads.h)."""
    units, steps = 4096, 50
    job = write_job(tmp_path, examples=16 * steps, epochs=1)
    model = json.loads((tmp_path / "model.json").read_text())
    model["config"]["layers"][3]["config"]["units"] = units
    (tmp_path / "model.json").write_text(json.dumps(model))
    host = "10.77.0.9"
    # One worker: another one might come when the job is over.
    spec = {"chief": [f"{host}:4100"], "ps": [f"{host}:4101", f"{host}:4102"], "worker": [f"{host}:4103"]}
    with Namespaces([host]) as network, Cluster(tmp_path / "cluster", spec=spec) as cluster:
        inside = ["ip", "netns", "exec", network.names[host]]
        cluster.start("chief", 0, [f"--job={job}", f"--run_dir={tmp_path / 'run'}", "--insecure"], prefix=inside)
        for index in range(2):
            cluster.start("ps", index, ["--insecure"], prefix=inside)
        cluster.start("worker", 0, ["--threads=1"], prefix=inside)
        for process in cluster.processes:
            assert process.wait() == 0, process.output()[-3000:]
        devices = subprocess.run([*inside, "cat", "/proc/net/dev"], check=True, capture_output=True, text=True).stdout
    carried = int(re.search(r"lo:\s*(\d+)", devices).group(1))
    pushed = steps * 4 * (64 * units + units * 4)
    assert 0 < carried < pushed / 4, (carried, pushed)


def test_four_terminals(tmp_path):
    commands = blocks("terminal")
    assert len(commands) == 4
    with Namespaces(["10.77.0.9"]) as network:
        run_blocks(commands, lambda _: network.names["10.77.0.9"], tmp_path)
    assert (tmp_path / "run/model/model.safetensors").exists()

"""Runs the commands of docs/monitoring.md and of the runbooks in docs/operations.md, against a live cluster."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from document_blocks import fenced
from prometheus_server import available
from real_cluster import BIN, SOURCE, Process, free_ports
from watched_cluster import WatchedCluster

MONITORING = (SOURCE / "docs/monitoring.md").read_text()
RUNBOOKS = (SOURCE / "docs/operations.md").read_text().split("\n## Runbooks\n")[1].split("\n## ")[0]


def blocks(text):
    return [block.strip().splitlines() for words, block in fenced(text) if words in ("", "sh")]


@pytest.fixture
def shell(tmp_path):
    """Runs a command as if in the checkout, without leaving anything there."""
    for name in ("deploy", "tests"):
        (tmp_path / name).symlink_to(SOURCE / name)
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}

    def run(command):
        return subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    return run


def test_every_command_of_monitoring(tmp_path, shell):
    commands = [command for block in blocks(MONITORING) for command in block]
    assert len(commands) >= 9
    with WatchedCluster(tmp_path, ps=1, workers=1) as cluster:
        cluster.start_all()
        for command in commands:
            program = command.split()[0]
            if program == "shoal-ps":
                assert command.split()[1:] == ["--http_port=9640"]  # what start_all has done, at another port
            elif program == "prometheus":
                if available():
                    address = f"127.0.0.1:{free_ports(1)[0]}"
                    process = Process(["bash", "-c", f"exec {command} --web.listen-address={address}"], tmp_path / "prometheus.log",
                                      prefix=["env", f"--chdir={tmp_path}"])
                    try:
                        process.wait_for_output("Server is ready to receive web requests")
                    finally:
                        process.kill()
            elif program == "docker-compose":
                if shutil.which(program) and (SOURCE / "deploy/compose/compose.yaml").exists():
                    done = shell(command.removesuffix(" up") + " config")
                    assert done.returncode == 0, done.stderr
            elif shutil.which(program) or program == "shoal":
                done = shell(command.replace("127.0.0.1:9640", f"127.0.0.1:{cluster.port('ps-0')}"))
                assert done.returncode == 0 and done.stdout + done.stderr, f"{command}\n{done.stdout}{done.stderr}"


def test_every_command_of_the_runbooks(tmp_path, shell):
    commands = [command for command in [*re.findall(r"`(shoal [^`]*)`", RUNBOOKS), *(line for block in blocks(RUNBOOKS) for line in block)]]
    whole = {command for command in commands if "RUN_DIR" in command}
    assert len(whole) >= 4
    with WatchedCluster(tmp_path, ps=1, workers=2, examples=64000) as cluster:
        cluster.start_all()
        cluster.await_value("chief-0", "shoal_workers_ready", lambda v: v == 2)
        cluster.await_value("chief-0", "shoal_steps_done_total", lambda v: v > 10)
        cluster.await_value("chief-0", "shoal_checkpoints_total", lambda v: v > 0)
        for command in sorted(whole):
            done = shell(command.replace("RUN_DIR", str(cluster.run_dir)).replace("INDEX", "1"))
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        for command in sorted(set(commands) - whole):  # said in short
            assert shell(f"{command} --help").returncode == 0, command
    assert pathlib.Path(cluster.run_dir / "checkpoints").exists()

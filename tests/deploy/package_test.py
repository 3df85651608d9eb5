"""The Debian package on a clean Debian: installed, run by its own systemd as it stands, removed. A lane of scripts/check-lanes.

The machine is a root made with debootstrap, booted by systemd-nspawn with a network of its own.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from debian_root import SOURCE, clean_root, in_root, reason_against, run
from document_blocks import commands
from real_cluster import wait_for, with_parent

BUILD = pathlib.Path(os.environ.get("SHOAL_BUILD", SOURCE / "build/release"))
UNITS = ["shoal-ps", "shoal-worker", "shoal-coordinator"]
# Where package management and a booted system leave traces of any package.
TRACES = re.compile(r"/(proc|sys|dev|run|tmp)/|/var/(log|cache|tmp)/|/var/lib/(dpkg|apt|systemd|private)(/|$)|/etc/ld\.so\.cache|/var/lib/shoal$"
                    r"|/etc/(machine-id|resolv\.conf|passwd-?|group-?|shadow-?|gshadow-?|\.pwd\.lock|hostname)$|/root/|/var/lib/dbus/")

pytestmark = pytest.mark.skipif(bool(reason_against()) or not shutil.which("systemd-nspawn"),
                                reason=reason_against() or "systemd-nspawn is not installed (package systemd-container)")


class Machine:
    """A booted root."""

    def __init__(self, root, log):
        self.root, self.log = root, log

    def __enter__(self):
        self.nspawn = subprocess.Popen(
            [*with_parent("TERM"), "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--console=pipe",
             "--directory", self.root, "--boot"],
            stdin=subprocess.DEVNULL, stdout=open(self.log, "wb"), stderr=subprocess.STDOUT, start_new_session=True)
        try:
            self.leader = wait_for(self._leader, "the machine's first process")
            wait_for(lambda: self.run("systemctl is-system-running --wait || true").strip() in ("running", "degraded"), "the machine is up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.nspawn.send_signal(signal.SIGTERM)  # powers off
        try:
            self.nspawn.wait(60)
        except subprocess.TimeoutExpired:
            self.nspawn.kill()
            self.nspawn.wait()

    def _leader(self):
        assert self.nspawn.poll() is None, self.log.read_text(errors="replace")
        children = pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read_text().split()
        # Others prepare the root and leave.
        return next((child for child in children if name_of(child) == "systemd"), None)

    def run(self, script):
        return run("nsenter", f"--target={self.leader}", "--all", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                   "DEBIAN_FRONTEND=noninteractive", "sh", "-ec", script)

    def show(self, unit, *properties):
        lines = self.run(f"systemctl show {unit} " + " ".join(f"--property={each}" for each in properties)).splitlines()
        shown = dict(line.split("=", 1) for line in lines)
        return [shown[each] for each in properties]

    def journal(self, unit):
        return self.run(f"journalctl --sync; journalctl --no-pager --output=cat --unit={unit}")


def name_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/comm").read_text().strip()
    except FileNotFoundError:
        return None


def files_of(root):
    found = run("find", root, "-xdev", "-not", "-type", "d", "-printf", "/%P\\n").splitlines()
    return {path for path in found if not TRACES.search(path)}


def folders_of(root):
    return {path for path in run("find", root, "-xdev", "-type", "d", "-printf", "/%P\\n").splitlines() if not TRACES.search(path + "/")}


@pytest.fixture(scope="module")
def package():
    packages = sorted(BUILD.glob("shoal_*.deb"))
    assert packages, f"no package in {BUILD}: run `cpack --config {BUILD}/CPackConfig.cmake`"
    return packages[-1]


def test_the_package_is_installed_run_and_removed(tmp_path, package):
    root = tmp_path / "machine"
    run("cp", "-a", clean_root(), root)
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    in_root(root, "apt-get update --quiet; apt-get install --yes --quiet --no-install-recommends systemd dbus dataset-fashion-mnist")
    before, folders_before = files_of(root), folders_of(root)

    shutil.copy(package, root / "root")
    in_root(root, "cd /root\n" + commands("machine-install"))
    content = in_root(root, "dpkg -L shoal").splitlines()
    for path in (*(f"/usr/bin/{each}" for each in ("shoal", *UNITS)), *(f"/lib/systemd/system/{unit}.service" for unit in UNITS),
                 *(f"/etc/shoal/{task}.env" for task in ("coordinator", "ps", "worker")), "/usr/share/man/man1/shoal-train.1",
                 "/usr/share/bash-completion/completions/shoal-worker", "/usr/share/shoal/examples/fashion_mnist/job.json"):
        assert path in content or f"/usr{path}" in content, path
    assert "shoal-simulate" not in " ".join(content)
    # A hang is to be noticed within the test's time.
    for unit in UNITS:
        drop_in = root / f"etc/systemd/system/{unit}.service.d/test.conf"
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text("[Service]\nWatchdogSec=3\n")

    with Machine(root, tmp_path / "boot.log") as machine:
        check_cluster(machine)
        check_stop_of_all(machine)
        check_tls(machine)
        check_bad_configuration(machine)
        machine.run(commands("machine-remove"))
        assert machine.run("systemctl list-unit-files --no-legend 'shoal*' || true").strip() == ""
        assert "model.safetensors" in machine.run("find /var/lib/shoal/ -name model.safetensors"), "runs are the operator's"
    for unit in UNITS:
        shutil.rmtree(root / f"etc/systemd/system/{unit}.service.d")
    assert sorted(files_of(root) - before) == []
    assert sorted(before - files_of(root)) == []
    assert sorted(folders_of(root) - folders_before) == []


def check_cluster(machine):
    """The units as they stand train the example. Whatever hangs or dies meanwhile is started again."""
    # Type=notify: each returns when the daemon has said that it is ready, though none of its peers may be there.
    machine.run(commands("machine-start"))
    for unit in UNITS:
        active, user, process = machine.show(unit, "ActiveState", "DynamicUser", "MainPID")
        assert (active, user) == ("active", "yes")
        assert int(machine.run(f"stat --format=%u /proc/{process}")) >= 61184, "a user of systemd's own"
    wait_for(lambda: "training:" in machine.journal("shoal-coordinator"), "steps")
    assert "active (running)" in machine.run(commands("machine-watch"))
    for port in (9640, 9641, 9642):
        healthy = f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3; head -1 <&3"
        assert " 200 " in machine.run(f'bash -c "{healthy}"'), port

    # A worker is killed, a coordinator hangs: each comes back by itself, and the job goes on.
    machine.run("systemctl kill --signal=KILL shoal-worker")
    wait_for(lambda: machine.show("shoal-worker", "NRestarts", "ActiveState") == ["1", "active"], "another worker")
    machine.run("systemctl kill --signal=STOP shoal-coordinator")
    wait_for(lambda: machine.show("shoal-coordinator", "NRestarts", "ActiveState") == ["1", "active"], "another coordinator")
    assert "Watchdog timeout" in machine.journal("shoal-coordinator")

    # Stopped in order is no failure.
    machine.run("systemctl stop shoal-worker")
    assert "exit_code=143" in machine.journal("shoal-worker") and ended_well(machine, "shoal-worker")
    machine.run("systemctl start shoal-worker")

    wait_for(lambda: status(machine).get("steps_done", 0) > 0, "steps after all this")
    machine.run(commands("machine-backup"))
    machine.run("rm -r /srv/backup; cd /root\n" + commands("machine-upgrade"))
    wait_for(lambda: re.search(r"training: .* from step [1-9]", machine.journal("shoal-coordinator")), "the job goes on where it was")

    for unit in UNITS:
        wait_for(lambda: machine.show(unit, "ActiveState") == ["inactive"], f"{unit} ends", 300)
        assert ended_well(machine, unit), machine.journal(unit)[-3000:]
    assert machine.run("cat /var/lib/shoal/runs/fashion_mnist/history.csv").strip().splitlines()[-1].startswith("5,")


def ended_well(machine, unit):
    """Of a unit that has ended systemd keeps no more than the journal."""
    ends = re.findall(rf"{unit}\.service: (Deactivated successfully|Failed with result .*)\.", machine.journal(unit))
    return ends[-1] == "Deactivated successfully"


def status(machine):
    return json.loads(machine.run("shoal status --chief 127.0.0.1:2220 --json || echo '{}'"))


def check_stop_of_all(machine):
    """As when the machine is shut down: the coordinator stops first, with a checkpoint of what the others hold."""
    machine.run("echo SHOAL_RUN_DIR=/var/lib/shoal/second >> /etc/shoal/coordinator.env; systemctl start " + " ".join(UNITS))
    wait_for(lambda: status(machine).get("steps_done", 0) > 0, "steps")
    machine.run(commands("machine-stop"))
    for unit in UNITS:
        assert ended_well(machine, unit), machine.journal(unit)[-3000:]
    assert machine.run("ls /var/lib/shoal/second/checkpoints/*/manifest.json").strip()


def check_tls(machine):
    """Units with the drop-ins for certificates, as docs/security.md has them: credentials for coordinator and ps, the group for the worker."""
    # A job that does not end meanwhile.
    examples = machine.root / "usr/share/shoal/examples/fashion_mnist"
    job = json.loads((examples / "job.json").read_text()) | {"epochs": 100000, "model": "/usr/share/shoal/examples/fashion_mnist/model.json"}
    (machine.root / "srv/long_job.json").write_text(json.dumps(job))
    machine.run("printf 'SHOAL_JOB=/srv/long_job.json\nSHOAL_RUN_DIR=/var/lib/shoal/third\n' >>/etc/shoal/coordinator.env")
    machine.run("cd /root\n" + commands("machine-certificates"))
    credentials = commands("machine-tls-credentials")
    assert "tls/ps-0/*" in credentials
    # It is restarted, that is, started: all are stopped.
    machine.run("cd /root\n" + credentials)
    machine.run("cd /root\n" + credentials.replace("tls/ps-0", "tls/coordinator").replace("tls/ps", "tls/coordinator").replace("shoal-ps", "shoal-coordinator"))
    machine.run("cd /root\n" + commands("machine-tls-group"))
    for unit, role in (("shoal-ps", "ps/0"), ("shoal-coordinator", "coordinator"), ("shoal-worker", "worker/0")):
        wait_for(lambda: f"identity=spiffe://shoal/job/fashion_mnist/{role}" in machine.journal(unit), f"{unit} uses its certificate")
    for unit in ("shoal-ps", "shoal-coordinator"):
        process, = machine.show(unit, "MainPID")
        listed = machine.run(f"stat --format='%n %a %u' /proc/{process}/root/run/credentials/{unit}.service/tls.key; stat --format=%u /proc/{process}")
        mode, owner, user = re.fullmatch(r"\S+ (\d+) (\d+)\n(\d+)\n", listed).groups()
        # Where systemd finds no file system without swap, the file is root's, with an ACL that shows as the group's mode.
        assert (mode, owner) in (("400", user), ("440", "0")), listed

    def status():
        return json.loads(machine.run("shoal status --chief 127.0.0.1:2220 --json --tls_dir /root/tls/ada || echo '{}'"))
    steps = wait_for(lambda: status().get("steps_done", 0), "the operator sees steps")

    # A list of the group's files counts at once, a copy of systemd's after a restart.
    worker = "spiffe://shoal/job/fashion_mnist/worker/0"
    machine.run(f"echo {worker.replace('worker', 'ps')} >/etc/shoal/tls/worker/revoked")
    wait_for(lambda: "is revoked" in machine.journal("shoal-worker"), "the worker keeps the ps out")
    machine.run("rm /etc/shoal/tls/worker/revoked")
    wait_for(lambda: status().get("steps_done", 0) > steps, "the worker is back")
    machine.run(f"echo {worker} >/etc/shoal/tls/ps/revoked; systemctl restart shoal-ps")
    wait_for(lambda: "is revoked" in machine.journal("shoal-ps"), "the ps keeps the worker out")
    # Without a list nobody is kept out; without a key, nothing runs until it is there.
    machine.run("rm /etc/shoal/tls/ps/revoked; systemctl stop shoal-ps; mv /etc/shoal/tls/ps/tls.key /root; systemctl start shoal-ps || true")
    assert "status=243/CREDENTIALS" in machine.journal("shoal-ps")
    assert "/etc/shoal/tls/ps/tls.key" in machine.run("shoal cert check /etc/shoal/tls/ps 2>&1 || true")
    machine.run("mv /root/tls.key /etc/shoal/tls/ps")
    wait_for(lambda: machine.show("shoal-ps", "ActiveState") == ["active"], "the unit starts when the key is there")
    steps = wait_for(lambda: status().get("steps_done", 0), "the operator sees the job again")
    wait_for(lambda: status().get("steps_done", 0) > steps, "the worker is let in again")

    machine.run(commands("machine-stop"))
    # The operator's own; the package knows nothing of it.
    machine.run("rm -r /srv/long_job.json /etc/shoal/tls /etc/systemd/system/shoal-*.service.d/tls-*.conf; systemctl daemon-reload; groupdel shoal-tls")


def check_bad_configuration(machine):
    """What would end so again is not started again, and says why."""
    machine.run("sed -i 's/^TF_CONFIG=.*/TF_CONFIG={/' /etc/shoal/worker.env")
    machine.run("systemctl start shoal-worker || true")
    wait_for(lambda: machine.show("shoal-worker", "ActiveState") == ["failed"], "the unit fails")
    assert machine.show("shoal-worker", "Result", "ExecMainStatus", "NRestarts") == ["exit-code", "78", "0"]
    assert re.search(r"E worker TF_CONFIG: .* exit_code=78\n", machine.journal("shoal-worker"))

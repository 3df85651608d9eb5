"""Pods without Kubernetes: a network namespace each, names in a hosts file, commands and grace periods from the manifests.

A pod sees what its container would: a read-only root, its volumes, its environment, a user that is not root. What starts
pods, ends them and starts them again, as the Job controller and the kubelet do, is Jobs.
"""
import copy
import dataclasses
import itertools
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/cluster/fixtures"))
from real_cluster import BIN, Process, wait_for, with_parent  # noqa: E402
from tls_mode import on, tls_dir  # noqa: E402

USER = 65532
# Folders of every Debian that no process here needs: what a pod's image, the test's files and certificates are mounted on.
IMAGE, JOB, RECORDS, TLS = "/mnt", "/srv", "/media", "/opt"


def ip(*arguments):
    subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True)


def can_make_pods():
    """Whether this machine lets us: root, namespaces, iproute2."""
    name = f"shoal-try-{os.getpid()}"
    try:
        ip("netns", "add", name)
        ip("netns", "delete", name)
        return shutil.which("setpriv") is not None
    except (OSError, subprocess.CalledProcessError):
        return False


class PodNetwork:
    """A namespace a pod, on a bridge in one of its own; who has which address stands in a hosts file that all pods see."""

    def __init__(self, directory):
        self.tag = f"shoal-{os.getpid()}"
        self.hosts = directory / "hosts"
        self.resolver = directory / "resolv.conf"
        # An address that no pod has a way to: what is not in the hosts file is unknown at once.
        self.resolver.write_text("nameserver 192.0.2.1\n")
        self.free = itertools.count(1)
        self.addresses = {}  # by name
        self.namespaces = {}

    def __enter__(self):
        self.hub = f"{self.tag}-hub"
        ip("netns", "add", self.hub)
        ip("-n", self.hub, "link", "add", "bridge0", "type", "bridge")
        ip("-n", self.hub, "link", "set", "bridge0", "up")
        self.publish()
        return self

    def __exit__(self, *_):
        for name in (*self.namespaces.values(), self.hub):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)

    def namespace(self, name):
        if name not in self.namespaces:
            i = len(self.namespaces)
            self.namespaces[name] = space = f"{self.tag}-{i}"
            ip("netns", "add", space)
            ip("-n", space, "link", "set", "lo", "up")
            ip("-n", self.hub, "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("-n", self.hub, "link", "set", f"port{i}", "master", "bridge0", "up")
            ip("-n", space, "link", "set", "eth0", "up")
        return self.namespaces[name]

    def give_address(self, name, named=True):
        """Another one each time; with `named`, everybody can look it up."""
        space = self.namespace(name)
        ip("-n", space, "address", "flush", "dev", "eth0")
        self.addresses[name] = f"10.78.0.{next(self.free)}"
        ip("-n", space, "address", "add", f"{self.addresses[name]}/24", "dev", "eth0")
        if named:
            self.publish()

    def take_address(self, name):
        del self.addresses[name]
        ip("-n", self.namespace(name), "address", "flush", "dev", "eth0")
        self.publish()

    def publish(self):
        # In place: the pods have this very file mounted.
        self.hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in self.addresses.items()))


@dataclasses.dataclass
class Task:
    """One pod of a Job, or one service of a compose file."""
    name: str  # by which others find it
    command: list
    environment: dict
    grace_seconds: int
    volumes: dict  # where it is mounted: directory
    final_codes: tuple = ()  # exit codes after which nothing is started again
    probes: dict = dataclasses.field(default_factory=dict)  # name: (scheme, port, path)
    read_only: frozenset = frozenset()  # of the volumes' places


class Pod:
    """Runs a task, once at a time, each time under a new address."""

    def __init__(self, task, network, directory, extra_mounts):
        self.task, self.network = task, network
        self.log = directory / f"{task.name}.log"
        mounts = {**extra_mounts, "/etc/hosts": network.hosts, "/etc/resolv.conf": network.resolver, **task.volumes}
        # /tmp last: what is mounted elsewhere comes from there.
        self.mounts = dict(sorted(mounts.items(), key=lambda mount: mount[0] == "/tmp"))
        self.process = None
        self.starts = 0

    def start(self, named=True):
        self.network.give_address(self.task.name, named)
        script = "set -e\nmount --make-rprivate /\n" + self._make_places()
        for place, source in self.mounts.items():
            script += f"mount --bind {source} {place}\n"
            if place in self.task.read_only:
                script += f"mount -o remount,bind,ro {place}\n"
        script += "mount -o remount,bind,ro /\nexec \"$@\"\n"
        prefix = ["ip", "netns", "exec", self.network.namespace(self.task.name), "sh", "-c", script, "sh",
                  # Another user loses the mark of Process, so it is set again.
                  *with_parent(), f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--bounding-set=-all",
                  "env", "-i", f"PATH={IMAGE}:/usr/bin:/bin"]
        variables = [f"{name}={value}" for name, value in self.task.environment.items()]
        self.process = Process([*variables, *self.task.command], self.log, prefix=prefix)
        self.starts += 1

    def _make_places(self):
        """A script that makes what the manifest mounts on and this machine lacks, on a layer of the pod's own."""
        missing = [pathlib.Path(place) for place in self.mounts if not pathlib.Path(place).exists()]
        script = ""
        for number, base in enumerate(sorted({next(each for each in place.parents if each.exists()) for place in missing})):
            layer = f"{IMAGE}/{number}"
            script += (f"mount -t tmpfs tmpfs {IMAGE}\nmkdir -p {layer}/upper {layer}/work\n"
                       f"mount -t overlay overlay -o lowerdir={base},upperdir={layer}/upper,workdir={layer}/work {base}\n")
        for place in missing:
            is_file = pathlib.Path(self.mounts[str(place)]).is_file()
            script += f"mkdir -p {place.parent}\ntouch {place}\n" if is_file else f"mkdir -p {place}\n"
        return script

    def running(self):
        return self.process is not None and self.process.popen.poll() is None

    def probe(self, name):
        """The HTTP status, as the kubelet asks for it: it takes any certificate."""
        scheme, port, path = self.task.probes[name]
        address, request = self.network.addresses[self.task.name], f"printf 'GET {path} HTTP/1.0\\r\\n\\r\\n'"
        if scheme == "HTTPS" or on():
            script = f"{request} | openssl s_client -quiet -connect {address}:{port} 2>/dev/null | (read -r _ code _; echo $code)"
        else:
            script = f"exec 3<>/dev/tcp/{address}/{port}; {request} >&3; read -r _ code _ <&3; echo $code"
        done = subprocess.run(["ip", "netns", "exec", self.network.namespace(self.task.name), "timeout", "10", "bash", "-c", script],
                              capture_output=True, text=True, check=False)
        return int(done.stdout or 0)

    def certificate(self):
        """What the HTTP port shows, as PEM; empty where it shows none."""
        address = f"{self.network.addresses[self.task.name]}:9640"
        done = subprocess.run(["ip", "netns", "exec", self.network.namespace(self.task.name), "timeout", "10", "openssl", "s_client",
                               "-connect", address], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return "".join(re.findall("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", done.stdout, re.S))

    def execute(self, *command):
        """As `kubectl exec` does."""
        return subprocess.run(["nsenter", f"--target={self.process.popen.pid}", "--mount", "--net", "setpriv", f"--reuid={USER}", f"--regid={USER}",
                               "--clear-groups", "env", "-i", f"PATH={IMAGE}:/usr/bin:/bin", *command],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def output(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def terminate(self):
        """As the kubelet ends a container: SIGTERM, and SIGKILL when the grace period is over. Returns the exit code."""
        self.process.signal(signal.SIGTERM)
        return self.await_termination()

    def await_termination(self):
        try:
            self.process.popen.wait(self.task.grace_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return self._gone()

    def kill(self):
        """As when the node is lost."""
        self.process.kill()
        return self._gone()

    def _gone(self):
        self.network.take_address(self.task.name)
        return self.process.popen.returncode


class Pods:
    """Keeps tasks running until each has ended with 0, as Jobs with restartPolicy Never do by new pods."""

    def __init__(self, directory, job, network):
        self.network, self.directory = network, directory
        self.records = directory / "records"
        self.image = directory / "image"
        self.logs = directory / "logs"
        for each in (self.records, self.image, self.logs):
            each.mkdir()
        self.records.chmod(0o777)
        for program in ("shoal", "shoal-coordinator", "shoal-ps", "shoal-worker"):
            shutil.copy(BIN / program, self.image)
        shutil.copy(SOURCE / "deploy/docker/shoal-task", self.image)
        self.job = job
        self.pods = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pod in self.pods.values():
            if pod.process is not None:
                pod.process.kill()

    def add(self, task, start=True, named=True):
        """The test's own: a small job instead of the example, a log that it reads, a record of every step."""
        task.environment.update({"SHOAL_LOG_FORMAT": "text"})
        if "SHOAL_JOB" in task.environment:
            task.environment["SHOAL_JOB"] = f"{JOB}/{self.job.name}"
        if "worker" in task.name:
            task.environment.update({"SHOAL_STEP_RECORDS": RECORDS})
        for directory in task.volumes.values():
            if not directory.exists():
                directory.mkdir()
                directory.chmod(0o777)
        mounts = {IMAGE: self.image, JOB: self.job.parent, RECORDS: self.records}
        # Not a task that has a certificate of its own, but a copy of one that has got it here.
        if on() and "SHOAL_INSECURE" in task.environment or task.environment.get("SHOAL_TLS_DIR") == TLS:
            task.environment.pop("SHOAL_INSECURE", None)
            task.environment["SHOAL_TLS_DIR"] = TLS
            mounts[TLS] = self.certificate(task)
        pod = self.pods[task.name] = Pod(task, self.network, self.logs, mounts)
        if start:
            pod.start(named)
        return pod

    def certificate(self, task):
        """A TLS directory of the task, which its user may read. A worker that no list has may take any free index."""
        kind, index = task.command[1], int(task.environment["JOB_COMPLETION_INDEX"])
        listed = kind != "worker" or index < int(task.environment["CLUSTER_WORKERS"])
        role = kind if kind == "coordinator" or not listed else f"{kind}/{index}"
        directory = self.directory / "tls" / task.name
        shutil.copytree(tls_dir(role), directory, dirs_exist_ok=True)
        for path in (directory, *directory.iterdir()):
            os.chown(path, USER, USER)
        return directory

    def remove(self, name):
        """Scaled away. Returns the exit code."""
        return self.pods.pop(name).terminate()

    def start_again(self):
        """Starts what has failed and not for good."""
        for pod in self.pods.values():
            if pod.running():
                continue
            code = pod.process.popen.returncode if pod.process else None
            assert code is None or code not in pod.task.final_codes, pod.output()[-3000:]
            if code != 0:
                if pod.task.name in self.network.addresses:
                    self.network.take_address(pod.task.name)
                pod.start()

    def wait_for(self, condition, what, seconds=120):
        def look():
            self.start_again()
            return condition()
        return wait_for(look, what, seconds)

    def wait_for_end(self, seconds=240):
        """A worker that comes when the job is over waits for another coordinator; it is taken away."""
        workers = [pod for name, pod in self.pods.items() if "worker" in name]
        others = [pod for name, pod in self.pods.items() if "worker" not in name]
        self.wait_for(lambda: all(not pod.running() and pod.process.popen.returncode == 0 for pod in others), "the end of the job", seconds)
        for pod in workers:
            wait_for(lambda: not pod.running() or "waiting for the coordinator" in pod.process.own_output(), f"{pod.task.name} hears of the end")
            code = pod.terminate() if pod.running() else pod.process.popen.returncode
            assert code in (0, 143), pod.output()[-3000:]


def write_secrets(directory, files, mode):
    """Writes a volume as the kubelet does, for a pod with an fsGroup: {path: text}. Written again, it changes as a whole."""
    directory.mkdir(exist_ok=True)
    former = [each for each in directory.iterdir() if each.name.startswith("..") and not each.is_symlink()]
    generation = directory / f"..{len(former)}.{time.monotonic_ns()}"
    for path, text in files.items():
        file = generation / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.chown(file, 0, USER)
        file.chmod(mode)
    link = directory / "..data_tmp"
    link.symlink_to(generation.name)
    os.replace(link, directory / "..data")
    for name in {path.split("/")[0] for path in files}:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    for each in former:
        shutil.rmtree(each)


def secret_files(volume, contents):
    """({path: text}, mode) of a volume of Secrets; None for one of another kind. `contents` is {name of a Secret or ConfigMap: {key: text}}."""
    if "secret" in volume:
        mode, sources = volume["secret"]["defaultMode"], [{"secret": {"name": volume["secret"]["secretName"]}}]
    elif "projected" in volume:
        mode, sources = volume["projected"]["defaultMode"], volume["projected"]["sources"]
    else:
        return None
    files = {}
    for reference in (each for source in sources for each in source.values()):
        content = contents.get(reference["name"])
        assert content is not None or reference.get("optional"), f"the pod waits for {reference['name']}"
        for item in reference.get("items", [{"key": key, "path": key} for key in content or {}]) if content else []:
            files[item["path"]] = content[item["key"]]
    return files, mode


def update_secrets(resources, directory, contents):
    """Writes the volumes of Secrets of all pods, as the kubelets do some time after `contents` has changed."""
    for job in (each for each in resources if each["kind"] == "Job"):
        for index in range(job["spec"]["completions"]):
            for volume in job["spec"]["template"]["spec"].get("volumes", []):
                if found := secret_files(volume, contents):
                    write_secrets(directory / f"{job['metadata']['name']}-{index}-{volume['name']}", *found)


def tasks_of_jobs(resources, directory):
    """The tasks of a rendered overlay: {Job: [Task, ...]}. update_secrets() writes their Secrets."""
    config = {each["metadata"]["name"]: each["data"] for each in resources if each["kind"] == "ConfigMap"}
    jobs = {}
    for job in (each for each in resources if each["kind"] == "Job"):
        spec = job["spec"]["template"]["spec"]
        jobs[job["metadata"]["name"]] = [task_of_pod(job, spec, index, config, directory) for index in range(job["spec"]["completions"])]
    return jobs


def task_of_pod(job, spec, index, config, directory):
    container, = spec["containers"]
    environment = {"JOB_COMPLETION_INDEX": str(index)}
    for source in container.get("envFrom", []):
        environment.update(config[source["configMapRef"]["name"]])
    for variable in container.get("env", []):
        if "value" in variable:
            environment[variable["name"]] = variable["value"]
        else:
            kind, name = variable["valueFrom"]["resourceFieldRef"]["resource"].split(".")
            environment[variable["name"]] = str(math.ceil(float(container["resources"][kind][name])))
    host = f"{job['metadata']['name']}-{index}"
    # A claim outlives its pods, and is the same for all; an emptyDir is each pod's own.
    volumes = {volume["name"]: directory / (volume["name"] if "persistentVolumeClaim" in volume else f"{host}-{volume['name']}")
               for volume in spec.get("volumes", [])}
    final = [code for rule in job["spec"]["podFailurePolicy"]["rules"] if rule["action"] == "FailJob"
             for code in rule["onExitCodes"]["values"]]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    probes = {}
    for name in ("livenessProbe", "readinessProbe"):
        get = container[name]["httpGet"]
        probes[name] = (get.get("scheme", "HTTP"), ports[get["port"]], get["path"])
    command = [re.sub(r"\$\((\w+)\)", lambda match: environment[match[1]], word) for word in container["command"] + container.get("args", [])]
    return Task(name=f"{host}.{spec['subdomain']}", command=command, environment=environment,
                grace_seconds=spec["terminationGracePeriodSeconds"],
                volumes={mount["mountPath"]: volumes[mount["name"]] for mount in container.get("volumeMounts", [])},
                final_codes=tuple(final), probes=probes)


def compose_files(*names, **variables):
    """The files of deploy/compose, as `docker-compose -f FIRST -f SECOND` takes them: variables, then one file over the other."""
    compose = {}
    for name in names:
        text = (SOURCE / "deploy/compose" / name).read_text()
        merge(compose, yaml.safe_load(re.sub(r"\$\{(\w+)[^}]*\}", lambda match: str(variables[match[1]]), text)))
    return compose


def merge(compose, other):
    """What compose does with the parts that are used here: maps are merged, and lists joined, but for commands."""
    for key, value in other.items():
        if isinstance(value, dict) and key in compose:
            merge(compose[key], value)
        elif isinstance(value, list) and key in compose and key != "command":
            compose[key] = compose[key] + value
        else:
            # Parts of YAML that several services share stay as they are.
            compose[key] = copy.deepcopy(value)


def secrets_of_service(compose, service):
    """{where it is mounted: file}."""
    entries = [{"source": each} if isinstance(each, str) else each for each in service.get("secrets", [])]
    return {f"/run/secrets/{each.get('target', each['source'])}": pathlib.Path(compose["secrets"][each["source"]]["file"]) for each in entries}


def tasks_of_compose(compose, directory):
    """The tasks of a compose file: those of its services that are Shoal's and start unasked."""
    tasks = []
    for name, service in compose["services"].items():
        if not service["image"].startswith("shoal") or "profiles" in service:
            continue
        grace = {"s": 1, "m": 60}[service["stop_grace_period"][-1]] * int(service["stop_grace_period"][:-1])
        environment = {key: str(value) for key, value in service["environment"].items()}
        volumes = {place: directory / volume for volume, place in (entry.split(":")[:2] for entry in service.get("volumes", []))}
        volumes.update(secrets_of_service(compose, service))
        tasks.append(Task(name, service["command"], environment, grace, volumes))
    return tasks

"""Real daemons on loopback ports, for the tests beside this file.

Every wait has a deadline and a condition; every process is ended by its pid, whatever the test does.
"""
import json
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import numpy as np

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SHOAL_BIN", SOURCE / "build/release/bin"))
PATIENCE_SECONDS = 900  # only what fails waits so long

# Where pytest runs under nohup or in the background of a script, these are ignored; not so by what it starts: a handler ends with exec.
for _number in (signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)

MODEL = {
    "class_name": "Sequential",
    "config": {"name": "small", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [None, 8, 8, 1], "dtype": "float32", "name": "input"}},
        {"class_name": "Rescaling", "config": {"name": "rescaling", "scale": 1 / 255, "offset": 0.0}},
        {"class_name": "Flatten", "config": {"name": "flatten"}},
        {"class_name": "Dense", "config": {"name": "dense", "units": 32, "activation": "relu", "use_bias": True}},
        {"class_name": "Dense", "config": {"name": "dense_1", "units": 4, "activation": "linear", "use_bias": True}},
    ]},
}


def wait_for(condition, what, seconds=PATIENCE_SECONDS):
    """Returns condition()'s first true value; fails when there is none in time."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        pause.wait(0.01)
    raise AssertionError(f"not within {seconds} s: {what}")


_held_ports = []


def free_ports(count):
    """Ports that are the test's own until pytest ends: a socket that does not listen stays bound to each, so that the system gives
    it to nobody, neither to other tests nor to a connection that a daemon makes, and a daemon can listen there, again and again."""
    sockets = [socket.socket() for _ in range(count)]
    _held_ports.extend(sockets)
    for each in sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        each.bind(("127.0.0.1", 0))
    return [each.getsockname()[1] for each in sockets]


def allow_open_files(count):
    """For this process, as many a shell allows 1024; a daemon asks for what it may have itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))


def write_job(directory, examples=400, batch_size=16, **fields):
    """A job that trains in a moment, with all its files in `directory`; returns the path of job.json."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(5)
    for name, count in (("train", examples), ("test", 64)):
        labels = random.integers(0, 4, count).astype(np.uint8)
        images = random.integers(0, 90, (count, 8, 8)).astype(np.uint8)
        for i, label in enumerate(labels):
            y, x = 4 * (label // 2), 4 * (label % 2)
            images[i, y:y + 4, x:x + 4] += 120
        (directory / f"{name}-images.idx").write_bytes(struct.pack(">IIII", 0x803, count, 8, 8) + images.tobytes())
        (directory / f"{name}-labels.idx").write_bytes(struct.pack(">II", 0x801, count) + labels.tobytes())
    (directory / "model.json").write_text(json.dumps(MODEL))
    job = {
        "name": "small", "model": "model.json",
        "data": {"training": {"images": "train-images.idx", "labels": "train-labels.idx"},
                 "test": {"images": "test-images.idx", "labels": "test-labels.idx"}},
        "loss": {"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": True}},
        "metrics": ["accuracy"], "optimizer": {"class_name": "Adam", "config": {"learning_rate": 0.003}},
        "batch_size": batch_size, "epochs": 2, "seed": 1, **fields}
    path = directory / "job.json"
    path.write_text(json.dumps(job))
    return path


class Process:
    """One daemon or command; its stderr goes to a file."""

    started = []  # in the test that runs now: for its last words (process_logs.py)

    def __init__(self, arguments, log, environment=None, prefix=()):
        self.log = pathlib.Path(log)
        self.killed = False  # by us, who were done with it
        clean = {k: v for k, v in os.environ.items() if k not in ("TF_CONFIG", "SHOAL_BIN")}
        with open(self.log, "ab") as out:
            self.begin = out.tell()  # others of its name may have written before
            self.popen = subprocess.Popen([*prefix, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                          env={**clean, **(environment or {})}, start_new_session=True)
        self.started.append(self)

    def fate(self):
        """How it has ended, for people."""
        code = self.popen.poll()
        if code is None:
            return "still running"
        if self.killed:
            return "ran until the test killed it"
        return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"

    def output(self):
        return self.log.read_text(errors="replace")

    def own_output(self):
        """Without that of others of its name."""
        return self.log.read_bytes()[self.begin:].decode(errors="replace")

    def wait(self, seconds=PATIENCE_SECONDS):
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.popen.args} does not end:\n{self.output()[-4000:]}") from None

    def wait_for_output(self, text, seconds=PATIENCE_SECONDS):
        def seen():
            if text in self.own_output():
                return True
            assert self.popen.poll() is None, f"ended with {self.popen.returncode} without {text!r}:\n{self.output()[-4000:]}"
            return False
        return wait_for(seen, f"{text!r} in {self.log}", seconds)

    def signal(self, number):
        if self.popen.poll() is None:
            self.popen.send_signal(number)

    def kill(self):
        self.killed = self.killed or self.popen.poll() is None
        self.signal(signal.SIGKILL)
        self.popen.wait()


class Cluster:
    """Daemons of one cluster spec, started one by one in any order; all killed at the end. Without a spec, on loopback."""

    def __init__(self, directory, ps=1, workers=2, spec=None):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        if spec is None:
            addresses = [f"127.0.0.1:{port}" for port in free_ports(1 + ps + workers)]
            spec = {"chief": addresses[:1], "ps": addresses[1:1 + ps], "worker": addresses[1 + ps:]}
        self.spec = spec
        self.chief = spec["chief"][0]
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()

    def tf_config(self, task_type, index):
        return json.dumps({"cluster": self.spec, "task": {"type": task_type, "index": index}})

    def start(self, task_type, index=0, arguments=(), spec=True, name=None, prefix=(), **environment):
        program = {"chief": "coordinator", "evaluator": "worker"}.get(task_type, task_type)
        if spec:
            environment["TF_CONFIG"] = self.tf_config(task_type, index)
        process = Process([BIN / f"shoal-{program}", *arguments], self.directory / f"{name or task_type}-{index}.log",
                          environment, prefix)
        self.processes.append(process)
        return process

    def start_chief(self, job, run_dir, **environment):
        return self.start("chief", 0, [f"--job={job}", f"--run_dir={run_dir}"], **environment)

    def start_worker(self, index, *arguments, **environment):
        return self.start("worker", index, ["--threads=1", *arguments], **environment)

    def start_evaluator(self, *arguments, **environment):
        return self.start("evaluator", 0, ["--threads=1", *arguments], **environment)

    def status(self):
        """What `shoal status --json` says; None while the coordinator does not answer."""
        done = subprocess.run([BIN / "shoal", "status", "--chief", self.chief, "--json"], capture_output=True, text=True,
                              check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None


def children_of(pid):
    """{pid: "worker 1"} of the daemons that a `shoal train` runs now."""
    children = {}
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            variables = pathlib.Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        for variable in variables:
            if variable.startswith(b"TF_CONFIG="):
                task = json.loads(variable[len(b"TF_CONFIG="):])["task"]
                children[int(child)] = f"{task['type']} {task['index']}"
    return children


def step_records(directory):
    """[(timeline, step, [example, ...])] of all workers' records."""
    rows = []
    for path in pathlib.Path(directory).glob("steps-worker-*.csv"):
        for line in path.read_text().splitlines():
            timeline, step, examples = line.split(",")
            rows.append((int(timeline), int(step), [int(e) for e in examples.split()]))
    return rows


def finished_steps(directory):
    """The number of lines of all workers' records, without reading what they say."""
    return sum(path.read_bytes().count(b"\n") for path in pathlib.Path(directory).glob("steps-worker-*.csv"))


def shoal(*arguments, **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("TF_CONFIG", "SHOAL_BIN")}
    return subprocess.run([str(BIN / "shoal"), *map(str, arguments)], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, env={**clean, **environment}, timeout=PATIENCE_SECONDS)

"""Trains models of 1, 2.5 and 6 GiB with real processes, and prints the table of docs/operations.md.

    large_models.py [--rows 1x1x1,2.5x2x4] [--directory DIR]

A row is GiB x ps x workers. Each trains some steps, has a checkpoint written, loses a ps to kill -9 and goes on from the
checkpoint, and is stopped by Ctrl-C; the table has the peak memory of each task beside what `shoal validate` says. A
row whose tasks do not fit on this machine together is said and left out. Needs room for three checkpoints in DIR.
"""
import argparse
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fixtures"))
from real_cluster import BIN, Process, children_of, shoal, wait_for  # noqa: E402

UNITS = 8192  # a layer of them on as many inputs: 256 MiB
STEPS = 3  # trained before the checkpoint, and after the restore
SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "B": 1}
ROWS = ",".join(f"{gib}x{ps}x{workers}" for gib in ("1", "2.5", "6") for ps in (1, 2) for workers in (1, 4))
PAUSE = threading.Event()
STEP_SECONDS = 120  # for each of them, at the most


def write_job(directory, gib):
    random = np.random.default_rng(1)
    for name in ("x", "y"):
        np.save(directory / f"{name}.npy", random.standard_normal((8, UNITS), np.float32))
    # Drawing values at random would take longer than training.
    dense = {"units": UNITS, "use_bias": False,
             "kernel_initializer": {"class_name": "Constant", "config": {"value": 1 / UNITS}}}
    model = {"class_name": "Sequential", "config": {"name": "large", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [None, UNITS], "dtype": "float32", "name": "input"}},
        *({"class_name": "Dense", "config": {"name": f"dense_{i}", **dense}} for i in range(round(gib * 4)))]}}
    job = {"name": "large", "model": model, "loss": "mse", "optimizer": "sgd", "batch_size": 1, "steps": 1000000,
           "data": {"training": {"images": "x.npy", "labels": "y.npy"}}, "checkpoint": {"keep": 1},
           # A slow machine is not to be taken for a lost worker.
           "strategy": {"name": "async", "lease_timeout_seconds": 600}}
    path = directory / "job.json"
    path.write_text(json.dumps(job))
    return path


def sizes_of(job, ps, workers):
    """What `shoal validate` says: {"ps 0": (held, at most)}, in bytes."""
    cluster = {"chief": ["a:1"], "ps": [f"p{i}:1" for i in range(ps)], "worker": [f"w{i}:1" for i in range(workers)]}
    found = shoal("validate", "--job", job, TF_CONFIG=json.dumps({"cluster": cluster}))
    assert found.returncode == 0, found.stdout + found.stderr
    needs = {}
    for task, held, rest in re.findall(r"^  (coordinator|ps \d+|worker): ([\d.]+ \w+) \(.*?\)(.*)$", found.stdout, re.M):
        most = re.match(r", at most ([\d.]+ \w+)", rest)
        needs[task] = tuple(float(text.split()[0]) * SIZES[text.split()[1]] for text in (held, most[1] if most else held))
    return needs


def machine_bytes():
    return int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) * 1024


def memory_of(pid, task):
    """A ps' without what it shares with workers, as most of that is their gradients, which it only reads."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    kinds = ["RssAnon", "RssFile"] + ([] if task.startswith("ps") else ["RssShmem"])
    return sum(int(kib) for kib in re.findall(rf"(?:{'|'.join(kinds)}):\s+(\d+)", text)) * 1024


class Peaks:
    """The peak memory of each task that a `shoal train` has had, asked for ten times a second."""

    def __init__(self, pid):
        self.pid = pid
        self.bytes = {}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.ended.wait(0.1):
            try:
                children = children_of(self.pid)
            except (FileNotFoundError, ProcessLookupError):
                return
            for child, task in children.items():
                self.bytes[task] = max(self.bytes.get(task, 0), memory_of(child, task))

    def of(self, task_type):
        return max((size for task, size in self.bytes.items() if task.startswith(task_type)), default=0)

    def stop(self):
        self.ended.set()
        self.thread.join()


def run_row(directory, gib, ps, workers):
    """Returns the cells of the row."""
    job = write_job(directory, gib)
    needs = sizes_of(job, ps, workers)
    held = sum(size for task, (size, _) in needs.items() if task != "worker") + workers * needs["worker"][0]
    if held > machine_bytes():
        return [f"not run: {held / 2**30:.1f} GiB together, this machine has {machine_bytes() / 2**30:.1f}"]
    run = directory / "run"
    train = Process([BIN / "shoal", "train", job, "--run_dir", run, "--ps", ps, "--workers", workers, "--threads", 1],
                    directory / "train.log")
    peaks = Peaks(train.popen.pid)
    try:
        def status():
            PAUSE.wait(0.3)  # asking costs a core that the cluster needs
            assert train.popen.poll() is None, f"ended:\n{train.output()[-3000:]}"
            done = subprocess.run([BIN / "shoal", "status", "--run_dir", run, "--json"], capture_output=True, text=True, check=False)
            return json.loads(done.stdout) if done.returncode == 0 else {}

        def wait_for_steps(count):
            wait_for(lambda: status().get("steps_done", 0) >= count, f"{count} steps", STEP_SECONDS * STEPS)

        begun = time.monotonic()
        wait_for_steps(1)
        first = time.monotonic()
        wait_for_steps(1 + STEPS)
        a_step = (time.monotonic() - first) / STEPS
        asked = time.monotonic()
        written = subprocess.run([BIN / "shoal", "checkpoint", "now", "--run_dir", run], capture_output=True, text=True, check=False)
        assert written.returncode == 0, written.stdout + written.stderr
        checkpoint = time.monotonic() - asked
        victim = next(pid for pid, task in children_of(train.popen.pid).items() if task == "ps 0")
        subprocess.run(["kill", "-KILL", str(victim)], check=True)
        killed = time.monotonic()
        # The first timeline begins with step 0.
        wait_for(lambda: status().get("base_step", 0) >= 1 + STEPS, "a timeline that begins with the checkpoint", 300)
        restore = time.monotonic() - killed
        wait_for_steps(status()["base_step"] + STEPS)
        train.signal(signal.SIGINT)
        told = time.monotonic()
        code = train.wait()
        stop = time.monotonic() - told
        assert code == 143, f"exit code {code}:\n{train.output()[-3000:]}"
        verified = subprocess.run([BIN / "shoal", "checkpoint", "verify", run], capture_output=True, text=True, check=False)
        assert verified.returncode == 0, verified.stdout + verified.stderr
    finally:
        peaks.stop()
        train.signal(signal.SIGTERM)
        try:
            train.wait(60)
        finally:
            train.kill()
    cells = [f"{first - begun:.0f} s", f"{a_step:.1f} s", f"{checkpoint:.0f} s", f"{restore:.0f} s", f"{stop:.0f} s"]
    for task, name in (("ps", "ps 0"), ("worker", "worker"), ("chief", "coordinator")):
        most = needs[name][1]
        cells.append(f"{peaks.of(task) / 2**30:.2f} of {most / 2**30:.2f}")
        assert peaks.of(task) <= most, f"the {task} needed {peaks.of(task)} bytes, more than {most:.0f}"
    return cells


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default=ROWS)
    parser.add_argument("--directory", default=None)
    options = parser.parse_args()
    print("| model | ps | workers | first step after | a step | checkpoint | restored after | stopped after |"
          " peak of a ps, GiB | of a worker | of the coordinator |", flush=True)
    print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    failed = False
    for row in options.rows.split(","):
        gib, ps, workers = row.split("x")
        with tempfile.TemporaryDirectory(prefix="shoal_large_", dir=options.directory) as directory:
            try:
                cells = run_row(pathlib.Path(directory), float(gib), int(ps), int(workers))
            except (AssertionError, StopIteration) as error:
                failed = True
                cells = [f"FAILED: {error}"]
            shutil.rmtree(pathlib.Path(directory) / "run", ignore_errors=True)
        print("|", " | ".join([f"{gib} GiB", ps, workers, *cells]), "|", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

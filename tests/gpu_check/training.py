"""Local clusters that train: to what accuracy, and for how much of a step the device waits."""
import csv
import json
import math
import os
import pathlib
import re
import struct
import tempfile

import machine
from programs import first_warnings
from sentences import LEAST_ACCURACY, MOST_IDLE
from session import HERE, origin
from thread_times import ThreadTimes
from timing import bench_model, model_of
from turned_pictures import SUFFIX, turn

# With fewer the accuracy is not judged.
LEAST_EPOCHS = 5
CLUSTER_CAP_SECONDS = 120
# Each applies gradients on a core of its own, one chunk after the other.
IDLE_PS = 4
IDLE_CAP_SECONDS = 120
IDLE_EPOCHS = 5
# In which memory is touched for the first time, and all that is made once is made.
PREPARING_EPOCHS = 2
# What a worker's log says at its end.
STEPS_WENT = re.compile(r"where the time of its steps went((?: \w+=[\d.]+)+)")


def worker_steps(log):
    """What a worker says of its mean step, {"steps": how many, "step_ms": …, "compute_ms": …, …}; None where it says nothing."""
    found = STEPS_WENT.findall(log)
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", found[-1])} if found else None


def train(session, folder, workers, cap, ps=1):
    """Trains `folder`'s job.json: (how the program ended, its entry, the epochs of its history)"""
    ended = session.shoal("train", folder / "job.json", "--run_dir", folder / "run", "--workers", workers, "--ps", ps, "--device",
                          session.arguments.device, cap=cap if session.on_gpu else 3600)
    epochs = []
    if (folder / "run/history.csv").exists():
        with open(folder / "run/history.csv", newline="") as file:
            epochs = list(csv.DictReader(file))
    logs = "\n".join(log.read_text(errors="replace") for log in sorted(folder.glob("run/logs/*.log")))
    # "the worker computes on …", "all workers compute on …" or "computing on …: worker 0; …"
    computes = re.findall(r".*comput(?:es?|ing) on .*", ended.output)
    entry = {"workers": workers, "ps": ps, "computes": computes, "warnings": first_warnings(f"{ended.output}\n{logs}"), "epochs": epochs,
             "worker_steps": [worker_steps(log.read_text(errors="replace")) for log in sorted(folder.glob("run/logs/worker-*.log"))]}
    return ended, entry | ended.entry(), epochs


def data_file(name, folder):
    """Where a file of the bundle's data is; pictures are put into `folder` as they were."""
    turned = HERE / f"data/{name}{SUFFIX}"
    if not turned.exists():
        return HERE / "data" / name
    (folder / name).write_bytes(turn(turned.read_bytes()))
    return folder / name


def train_fashion_mnist(session, workers):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        job = json.loads((HERE / "job.json").read_text())
        job["model"] = str(HERE / "models/fashion_mnist.json")
        for source in job["data"].values():
            for what, path in source.items():
                source[what] = str(data_file(pathlib.Path(path).stem, folder))
        job["epochs"] = session.arguments.epochs
        (folder / "job.json").write_text(json.dumps(job))
        ended, entry, epochs = train(session, folder, workers, CLUSTER_CAP_SECONDS)
    if ended.why in ("budget", "timeout"):
        return {"ok": None} | entry
    accuracy = float(epochs[-1].get("val_accuracy") or "nan") if epochs else math.nan
    entry["val_accuracy"] = accuracy if math.isfinite(accuracy) else None
    there = not session.on_gpu or any(session.arguments.device in line for line in entry["computes"])
    accurate = accuracy >= LEAST_ACCURACY or (bool(epochs) and session.arguments.epochs < LEAST_EPOCHS)
    return {"ok": ended.code == 0 and accurate and there} | entry


def check_cluster(session, entry):
    """Fills in `entry`: one worker, then two that share the device."""
    runs = entry["runs"] = []
    for workers in (1, 2):
        runs.append(train_fashion_mnist(session, workers))
        session.save()
    states = [run["ok"] for run in runs]
    entry["ok"] = False if False in states else None if None in states else True


def write_pictures(folder, count):
    """One picture of noise many times, each with a label of its own, as IDX files of bytes."""
    for name, shape in (("pictures", (count, 224, 224, 3)), ("labels", (count,))):
        with open(folder / name, "wb") as file:
            file.write(struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape))
            if name == "labels":
                file.write(os.urandom(count))
                continue
            picture = os.urandom(math.prod(shape[1:]))
            for _ in range(count):
                file.write(picture)
    return {"images": str(folder / "pictures"), "labels": str(folder / "labels")}


def bench_alone(session):
    """ResNet-50's steps without a cluster: those of the part `bench`, if they were of this build and machine."""
    bench = session.report.get("bench", {})
    now = origin(session.report)
    if all(bench.get(key) == now[key] for key in ("device", "build", "machine")):
        for result in bench.get("models", []):
            if result["model"] == "resnet50" and "op_seconds" in result.get("shoal_bfloat16", {}):
                return result["shoal_bfloat16"]
    return bench_model(session, "resnet50", "bfloat16")


def idle_share(alone, step_seconds):
    """Of a step that takes so long, the share in which the device computes nothing, from what it takes alone: that is no more than a step
    alone takes, and no more than its ops one by one, of which each is a little longer for being timed."""
    measured = alone.get("device_seconds")
    by_ops = (sum(alone["op_seconds"].values()), "the sum of op_seconds") if measured is None else (measured, "device_seconds")
    busy, source = min(by_ops, (min(alone["step_seconds"]), "a step alone"))
    return {"step_seconds": step_seconds, "computed_seconds": busy, "computed_seconds_are": source, "idle_share": round(1 - busy / step_seconds, 4)}


def judge_idle(share, on_gpu):
    """{"ok": …} and, where it is not true, why. What shares its cores with others says nothing of a GPU."""
    if share < 0:
        why = f"the measurement failed: a step in a cluster took less time than the device computes in it, which makes a share of {share}"
        return {"ok": None if on_gpu else True, "why": why}
    if share >= MOST_IDLE:
        return {"ok": not on_gpu, "why": f"{share} is not below {MOST_IDLE}"}
    return {"ok": True}


def measure_idle(session, entry):
    """Fills in `entry`: a worker trains ResNet-50 in bfloat16 with ps on this machine; what its steps take, what of that the device
    computes, and where the rest goes: by the worker's phases, and by what each thread does meanwhile."""
    alone = bench_alone(session)
    if "op_seconds" not in alone:
        entry |= {"ok": None if "not_run" in alone else False, "why": "without a cluster the model was not timed", "alone": alone}
        return
    batch_size, steps = session.arguments.batch_size, 40 if session.on_gpu else 1
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "model.json").write_text(json.dumps(model_of("resnet50", "bfloat16")))
        (folder / "job.json").write_text(json.dumps({
            "name": "idle", "model": "model.json", "data": {"training": write_pictures(folder, steps * batch_size)},
            "loss": {"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": False}}, "metrics": [],
            "optimizer": {"class_name": "SGD", "config": {"learning_rate": 0.001, "momentum": 0.9}},
            "batch_size": batch_size, "epochs": IDLE_EPOCHS, "strategy": {"name": "async", "lease_timeout_seconds": 600}}))
        with machine.Samples(session) as samples, ThreadTimes(folder / "run/history.csv", 1, IDLE_EPOCHS - 1) as times:
            ended, run, epochs = train(session, folder, 1, IDLE_CAP_SECONDS, IDLE_PS if session.on_gpu else 1)
    entry |= run | {"gpu": samples.summary, "step_seconds_alone": min(alone["step_seconds"]), "cpu": times.summary}
    if ended.code != 0 or len(epochs) <= PREPARING_EPOCHS:
        entry |= {"ok": None if ended.why in ("budget", "timeout") else False, "why": "the cluster did not train to its end"}
        return
    steady = epochs[PREPARING_EPOCHS:]
    entry |= idle_share(alone, sum(float(epoch["seconds"]) for epoch in steady) / (steps * len(steady)))
    entry |= judge_idle(entry["idle_share"], session.on_gpu)

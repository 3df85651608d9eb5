"""How long an epoch takes by each strategy over links of several kinds, on one machine: prints a table.

    strategies_table.py [--job examples/fashion_mnist/job.json] [--workers 2 | --cores N N ...] [--epochs 2] [--seeds 1] [--examples N]
                        [--batch_size N] [--batches N] [ROW ...]

A ROW is a strategy (alone, sync, async, local, or streamed, which is local with fragments), @ and a link. Chief, ps and an
evaluator are on one host, each worker on one of its own (links.py); the best epoch but the first counts, in which connections are made,
and with it the bytes that went over a worker's link an epoch. All rows are of one run on one machine: read the ratios.
With --cores there are as many workers as numbers, each of which is held to that part of a core (a cgroup: as root).
"""
import argparse
import contextlib
import csv
import dataclasses
import gzip
import json
import pathlib
import statistics
import struct
import tempfile

import links
from part_of_a_core import part_of_a_core
from real_cluster import SOURCE

LINKS = {"none": links.Link(10000, 0), "lan": links.LAN, "wifi": links.WIFI, "vpn": links.VPN, "mobile": links.MOBILE}
STRATEGIES = ["alone", "sync", "async", "local", "streamed"]
ROWS = ["alone@none", "sync@lan", "async@lan", "local@lan", "async@vpn", "sync@vpn", "local@vpn", "streamed@vpn"]


def fields_of(strategy, workers, batches):
    """What the job says of it."""
    if strategy == "sync":
        return {"strategy": {"name": "sync", "gradients_per_update": workers}}
    if strategy in ("local", "streamed"):
        local = {"name": "local", "batches_per_step": batches}
        # Parts of this small model: chunks of the usual size would be one or two.
        streamed = {"fragments": 4, "chunk_bytes": 65536} if strategy == "streamed" else {}
        return {"strategy": local | streamed, "compression": {"push": "int8", "pull": "bf16"}}
    return {"strategy": {"name": "async"}}


def write_first(source, target, count):
    """The first examples of an IDX file, gzipped or not."""
    content = (gzip.open if source.suffix == ".gz" else open)(source, "rb").read()
    dimensions = content[3]
    shape = struct.unpack(f">{dimensions}I", content[4:4 + 4 * dimensions])
    begin = 4 + 4 * dimensions
    size = (len(content) - begin) // shape[0]
    count = min(count, shape[0])
    target.write_bytes(content[:4] + struct.pack(f">{dimensions}I", count, *shape[1:]) + content[begin:begin + count * size])


def write_job(arguments, directory, strategy, workers, seed):
    job = json.loads(arguments.job.read_text())
    job["model"] = str((arguments.job.parent / job["model"]).resolve())
    if arguments.examples:
        for what, path in job["data"]["training"].items():
            write_first(arguments.job.parent / path, directory / what, arguments.examples)
            job["data"]["training"][what] = what
    job.update(fields_of(strategy, workers, arguments.batches), epochs=arguments.epochs, seed=seed,
               checkpoint={"every_seconds": 0, "every_steps": 0}, batch_size=arguments.batch_size or job["batch_size"])
    path = directory / "job.json"
    path.write_text(json.dumps(job))
    return path


@dataclasses.dataclass
class Measured:
    seconds: float
    accuracy: float
    megabytes: float  # an epoch, over a worker's link, both ways


def measure(arguments, row, seed, directory):
    strategy, link = row.split("@")
    workers = 1 if strategy == "alone" else arguments.workers
    job = write_job(arguments, directory, strategy, workers, seed)
    hosts = {"chief": [0], "ps": [0], "evaluator": [0], "worker": range(1, 1 + workers)}
    with contextlib.ExitStack() as machines:
        parts = [machines.enter_context(part_of_a_core(part)) for part in arguments.cores[:workers]]
        star = machines.enter_context(links.Star([LINKS["none"]] + workers * [LINKS[link]], directory))
        cluster = machines.enter_context(links.StarCluster(star, directory, **hosts))
        cluster.prefixes = {("worker", index): prefix for index, prefix in enumerate(parts)}
        # The slowest row takes as long as its link is slow.
        cluster.train(job, directory / "run", arguments.patience)
        star.end()
        carried = star.counts(1)
    with open(directory / "run/history.csv", newline="") as file:
        epochs = list(csv.DictReader(file))
    seconds = [float(epoch["seconds"]) for epoch in epochs]
    return Measured(min(seconds[1:] or seconds), float(epochs[-1].get("val_accuracy") or "nan"),
                    (carried["up"]["bytes"] + carried["down"]["bytes"]) / len(epochs) / 1e6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", default=ROWS, metavar="ROW")
    parser.add_argument("--job", type=pathlib.Path, default=SOURCE / "examples/fashion_mnist/job.json")
    workers = parser.add_mutually_exclusive_group()
    workers.add_argument("--workers", type=int, default=2)
    workers.add_argument("--cores", type=float, nargs="+", default=[], help="of each worker; what a row of one worker has is the first")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=1, help="accuracies are means over so many")
    parser.add_argument("--examples", type=int, default=0, help="of the training set, of IDX files; 0: all")
    parser.add_argument("--batch_size", type=int, default=0, help="0: the job's; the smaller, the more of the time goes to the links")
    parser.add_argument("--batches", type=int, default=100, help="batches_per_step of local")
    parser.add_argument("--patience", type=float, default=7200, help="seconds that a row may take")
    arguments = parser.parse_args()
    arguments.workers = len(arguments.cores) or arguments.workers
    for row in arguments.rows:
        strategy, _, link = row.partition("@")
        if strategy not in STRATEGIES or link not in LINKS:
            parser.error(f"{row}: a row is one of {', '.join(STRATEGIES)}, @, and one of {', '.join(LINKS)}")
    print("| strategy | link | workers | s an epoch | MB over a worker's link | test accuracy |\n|---|---|---|---|---|---|", flush=True)
    for row in arguments.rows:
        measured = []
        for seed in range(1, arguments.seeds + 1):
            with tempfile.TemporaryDirectory() as directory:
                measured.append(measure(arguments, row, seed, pathlib.Path(directory)))
        strategy, link = row.split("@")
        print(f"| {strategy} | {link} | {1 if strategy == 'alone' else arguments.workers} | {statistics.median(m.seconds for m in measured):.2f} "
              f"| {statistics.mean(m.megabytes for m in measured):.1f} | {statistics.mean(m.accuracy for m in measured):.4f} |", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures what more workers, and more ps, cost where steps are tiny: a job with a small model on real daemons, for a
few seconds with each number of workers, in turns. CPU time per step says the same where other programs run beside it.

    build/venv/bin/python tests/scale_benchmark.py                    1 to 64 workers, about two minutes
    build/venv/bin/python tests/scale_benchmark.py --ps 1 2 4 --workers 4    what each further ps costs
    build/venv/bin/python tests/scale_benchmark.py --turns 5          more turns, medians of them

SHOAL_BIN names the directory of the programs, build/release/bin if it is not set. Nothing else should run on the machine.
"""
import argparse
import itertools
import os
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cluster/fixtures"))
from pause import pause  # noqa: E402
from real_cluster import Cluster, wait_for, write_job  # noqa: E402

ROLES = {"worker": "workers", "chief": "coordinator", "ps": "ps"}


class Look:
    """Counts of a running cluster at one moment."""

    def __init__(self, cluster):
        self.steps = steps_by_worker(cluster)
        self.time = time.monotonic()
        self.cpu = {role: 0.0 for role in ROLES}
        self.switches = 0
        for role, process in cluster.started:
            proc = pathlib.Path(f"/proc/{process.popen.pid}")
            fields = (proc / "stat").read_text().rsplit(")", 1)[1].split()
            self.cpu[role] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            for task in (proc / "task").iterdir():
                for line in (task / "status").read_text().splitlines():
                    if "ctxt_switches" in line:
                        self.switches += int(line.split()[1])


def steps_by_worker(cluster):
    status = cluster.status() or {"tasks": []}
    return {task["index"]: task.get("done", 0) for task in status["tasks"] if task["type"] == "worker"}


def measure(ps, workers, seconds):
    """Of one cluster, over some seconds: steps/s, µs of CPU per step by role, context switches per step, and the shares of
    the workers with the fewest and the most steps, of an equal one."""
    with tempfile.TemporaryDirectory() as name, Cluster(pathlib.Path(name) / "logs", ps, workers) as cluster:
        directory = pathlib.Path(name)
        job = write_job(directory, examples=64000, epochs=1000000, checkpoint={},
                        strategy={"name": "async", "min_shard_bytes": 256})
        cluster.started = [("ps", cluster.start("ps", i)) for i in range(ps)]
        cluster.started.append(("chief", cluster.start_chief(job, directory / "run")))
        cluster.started += [("worker", cluster.start_worker(i)) for i in range(workers)]
        wait_for(lambda: sum(steps > 20 for steps in steps_by_worker(cluster).values()) == workers, "all workers at work")
        pause(1)
        before = Look(cluster)
        pause(seconds)
        after = Look(cluster)
    done = [after.steps[worker] - steps for worker, steps in before.steps.items()]
    steps = sum(done)
    figures = {"steps/s": steps / (after.time - before.time)}
    for role, name in ROLES.items():
        figures[f"{name} µs"] = 1e6 * (after.cpu[role] - before.cpu[role]) / steps
    figures["all µs"] = sum(figures[f"{name} µs"] for name in ROLES.values())
    figures["switches"] = (after.switches - before.switches) / steps
    figures["least share"] = min(done) * workers / steps
    figures["most share"] = max(done) * workers / steps
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--ps", type=int, nargs="+", default=[1])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="of each turn")
    options = parser.parse_args()
    sizes = list(itertools.product(options.ps, options.workers))
    turns = []
    for turn in range(options.turns):
        turns.append({size: measure(*size, options.seconds) for size in (sizes, sizes[::-1])[turn % 2]})
    print(f"{os.cpu_count()} CPUs, load average at the end {os.getloadavg()[0]:.1f}; medians of {options.turns} turns; "
          "of the peak: of the most steps in a second of CPU time within a turn\n")
    names = list(turns[0][sizes[0]])
    print("| ps | workers | " + " | ".join(names) + " | of the peak |\n|" + "---|" * (len(names) + 3))
    for size in sizes:
        cells = [statistics.median(turn[size][name] for turn in turns) for name in names]
        peak = statistics.median(min(each["all µs"] for each in turn.values()) / turn[size]["all µs"] for turn in turns)
        print("| " + " | ".join([*map(str, size), *(f"{cell:.3g}" if cell < 1000 else f"{cell:.0f}" for cell in cells),
                                 f"{peak:.2f}"]) + " |")


if __name__ == "__main__":
    main()

"""What workers of unequal speed do together, by strategy, against the sum of what each does alone: prints a table.

    unequal_machines.py [--seconds 20] [--job examples/fashion_mnist/job.json] [ROW ...]

One worker has a core of its own; the other shares one with coordinator and ps, and is held to a quarter of a core (a cgroup: as root). In
the last columns there are two full workers: of one that leaves and comes back every few seconds, now in order and now by a kill, and of one that is
stopped for 2 s of each 10 s. Batches a second are those that are applied. All of it is one run on one machine: read the ratios.
"""
import argparse
import contextlib
import json
import pathlib
import signal
import tempfile
import time

from real_cluster import SOURCE, Cluster, wait_for

SYNC = {"name": "sync", "gradients_per_update": 8}
LOCAL = {"name": "local", "batches_per_step": 10}
ROWS = {
    "async": {"name": "async"},
    "async, max_staleness 4": {"name": "async", "max_staleness": 4},
    "sync": SYNC,
    "sync, speculating": SYNC | {"speculate_after": 2},
    "local": LOCAL,
    "local in rounds of 4": LOCAL | {"gradients_per_update": 4},
    "local in rounds of 4, speculating": LOCAL | {"gradients_per_update": 4, "speculate_after": 2},
}
PERIOD_US, QUARTER_US = 100000, 25000


@contextlib.contextmanager
def quarter_of_a_core():
    """A prefix for a command that is to have no more."""
    root = pathlib.Path("/sys/fs/cgroup")
    second = (root / "cgroup.controllers").exists()
    if second:
        (root / "cgroup.subtree_control").write_text("+cpu")
    group = pathlib.Path(tempfile.mkdtemp(prefix="shoal-quarter.", dir=root if second else root / "cpu"))
    try:
        if second:
            (group / "cpu.max").write_text(f"{QUARTER_US} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(QUARTER_US))
        yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text(), "its processes have ended")
        group.rmdir()


class Measurement:
    """A cluster of one strategy, and the batches that it applies."""

    def __init__(self, cluster, directory, arguments, strategy):
        self.cluster, self.arguments = cluster, arguments
        self.batches = strategy.get("batches_per_step", 1)
        job = json.loads(arguments.job.read_text())
        job.pop("epochs")
        job |= {"model": str((arguments.job.parent / job["model"]).resolve()), "strategy": strategy, "steps": 10**9,
                "checkpoint": {"every_seconds": 0, "every_steps": 0}}
        job["data"].pop("test", None)  # evaluations take turns with training
        job.pop("metrics", None)
        path = directory / "job.json"
        path.write_text(json.dumps(job))
        cluster.start("chief", 0, [f"--job={path}", f"--run_dir={directory / 'run'}"], prefix=["taskset", "-c", "1"])
        cluster.start("ps", 0, prefix=["taskset", "-c", "1"])

    def worker(self, index, core, prefix=()):
        return self.cluster.start_worker(index, prefix=[*prefix, "taskset", "-c", str(core)])

    def steps(self):
        status = wait_for(self.cluster.status, "the coordinator answers")
        return int(status["steps_done"])

    def rate(self, disturb=None):
        """Batches a second, from now on; `disturb` is called all the time."""
        first = wait_for(self.steps, "the first steps")
        wait_for(lambda: self.steps() >= first + 2 * 64 // self.batches, "it is under way")
        begin, begun = self.steps(), time.monotonic()
        pause = 0.2
        while time.monotonic() < begun + self.arguments.seconds:
            if disturb is not None:
                disturb(time.monotonic() - begun)
            time.sleep(pause)
        return (self.steps() - begin) * self.batches / (time.monotonic() - begun)


class Leaves:
    """Worker 1 is there for 4 s, and then away for 2."""

    def __init__(self, measurement):
        self.measurement, self.turns = measurement, 0
        self.process = measurement.worker(1, 1)

    def __call__(self, elapsed):
        there = elapsed % 6 < 4
        if self.process is None and there:
            self.process = self.measurement.worker(1, 1)
        elif self.process is not None and not there:
            self.process.signal(signal.SIGKILL if self.turns % 2 else signal.SIGTERM)
            self.turns += 1
            self.process = None


class Stops:
    """Worker 1 is stopped for 2 s of each 10 s."""

    def __init__(self, measurement):
        self.process, self.stopped = measurement.worker(1, 1), False

    def __call__(self, elapsed):
        stopped = elapsed % 10 < 2
        if stopped != self.stopped:
            self.process.signal(signal.SIGSTOP if stopped else signal.SIGCONT)
            self.stopped = stopped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", default=list(ROWS), metavar="ROW")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--job", type=pathlib.Path, default=SOURCE / "examples/fashion_mnist/job.json")
    arguments = parser.parse_args()
    for row in arguments.rows:
        if row not in ROWS:
            parser.error(f"{row}: a row is one of {', '.join(ROWS)}")
    print("| strategy | full | a quarter | both | of the sum | two full ones | one leaves and comes | of the two | one stops | of the two |\n"
          "|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for row in arguments.rows:
        def measured(begin, row=row):
            with tempfile.TemporaryDirectory() as directory, Cluster(pathlib.Path(directory) / "cluster") as cluster:
                measurement = Measurement(cluster, pathlib.Path(directory), arguments, ROWS[row])
                return measurement.rate(begin(measurement))
        with quarter_of_a_core() as quarter:
            full = measured(lambda m: m.worker(0, 0) and None)
            slow = measured(lambda m, quarter=quarter: m.worker(0, 1, quarter) and None)
            both = measured(lambda m, quarter=quarter: m.worker(0, 0) and m.worker(1, 1, quarter) and None)
        two = measured(lambda m: m.worker(0, 0) and m.worker(1, 1) and None)
        leaves = measured(lambda m: m.worker(0, 0) and Leaves(m))
        stops = measured(lambda m: m.worker(0, 0) and Stops(m))
        print(f"| {row} | {full:.1f} | {slow:.1f} | {both:.1f} | {both / (full + slow):.2f} | {two:.1f} | {leaves:.1f} | {leaves / two:.2f} "
              f"| {stops:.1f} | {stops / two:.2f} |", flush=True)


if __name__ == "__main__":
    main()

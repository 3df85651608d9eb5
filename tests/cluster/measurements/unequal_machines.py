"""What workers of unequal speed do together, by strategy, against the sum of what each does alone: prints a table.

    unequal_machines.py [ROW ...] [--seconds 20] [--cells full quarter both two leaves stops] [--job examples/fashion_mnist/job.json]
                        [--torch VENV/bin/python]

Batches a second, those that are applied. One worker has a core of its own; the other shares one with coordinator and ps, and in `quarter`, alone,
and `both` is held to a quarter of a core (a cgroup: as root). `two` is two full ones; in `leaves` one of them is away for 2 s of each 6, now in order
and now by a kill, in `stops` it is stopped for 2 s of each 10. All of it is one run on one machine: read the ratios. With a Python that has torch (links/ddp_comparison.py) there is a row of rounds as
DistributedDataParallel has them, a batch of each worker, of the same network, where nobody leaves.
"""
import argparse
import contextlib
import json
import pathlib
import signal
import socket
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fixtures"))
from large_models import PAUSE  # noqa: E402
from part_of_a_core import part_of_a_core  # noqa: E402
from real_cluster import SOURCE, Cluster, Process, wait_for  # noqa: E402

SYNC = {"name": "sync", "gradients_per_update": 8}
LOCAL = {"name": "local", "batches_per_step": 10}
ROWS = {
    "async": {"name": "async"},
    "async, max_staleness 4": {"name": "async", "max_staleness": 4},
    "sync, one a worker": {"name": "sync", "gradients_per_update": 2},
    "sync": SYNC,
    "sync, speculating": SYNC | {"speculate_after": 2},
    "local": LOCAL,
    "local in rounds of 4": LOCAL | {"gradients_per_update": 4},
    "local in rounds of 4, speculating": LOCAL | {"gradients_per_update": 4, "speculate_after": 2},
}
OF_TORCH = "DistributedDataParallel"
BATCH = 64  # of ddp_comparison.py


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
        return status["steps_done"]

    def rate(self, disturb=None):
        """Batches a second, from now on; `disturb` is called all the time."""
        first = wait_for(self.steps, "the first steps")
        wait_for(lambda: self.steps() >= first + 2 * 64 // self.batches, "it is under way")
        begin, begun = self.steps(), time.monotonic()
        while time.monotonic() < begun + self.arguments.seconds:
            if disturb is not None:
                disturb(time.monotonic() - begun)
            PAUSE.wait(0.2)
        return (self.steps() - begin) * self.batches / (time.monotonic() - begun)


class TorchMeasurement:
    """Ranks of torch in the place of a cluster."""

    def __init__(self, directory, arguments):
        self.directory, self.arguments, self.prefixes = directory, arguments, []

    def worker(self, index, core, prefix=()):
        self.prefixes.append([*prefix, "taskset", "-c", str(core)])

    def rate(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        script = SOURCE / "tests/links/ddp_comparison.py"
        command = [self.arguments.torch, script, "--rank", "--seconds", self.arguments.seconds]
        with contextlib.ExitStack() as processes:
            ranks = []
            for rank, prefix in enumerate(self.prefixes):
                environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(len(self.prefixes)),
                               "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
                ranks.append(Process(command, self.directory / f"rank-{rank}.log", environment, prefix))
                processes.callback(ranks[-1].kill)
            for process in ranks:
                assert process.wait(1000) == 0, process.output()[-3000:]
            return float(ranks[0].output().splitlines()[-1]) / BATCH


def measure_torch(arguments, begin, quarter):
    with tempfile.TemporaryDirectory() as directory:
        measurement = TorchMeasurement(pathlib.Path(directory), arguments)
        begin(measurement, quarter)
        return measurement.rate()


def measure(arguments, strategy, begin, quarter):
    """Batches a second with the workers that `begin` starts; what it returns is called all the time."""
    with tempfile.TemporaryDirectory() as directory, Cluster(pathlib.Path(directory) / "cluster") as cluster:
        measurement = Measurement(cluster, pathlib.Path(directory), arguments, strategy)
        return measurement.rate(begin(measurement, quarter))


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


def start(measurement, *workers):
    for index, (core, prefix) in enumerate(workers):
        measurement.worker(index, core, prefix)


def start_and(disturbance, measurement):
    start(measurement, (0, []))
    return disturbance(measurement)


CELLS = {
    "full": lambda m, quarter: start(m, (0, [])),
    "quarter": lambda m, quarter: start(m, (1, quarter)),
    "both": lambda m, quarter: start(m, (0, []), (1, quarter)),
    "two": lambda m, quarter: start(m, (0, []), (1, [])),
    "leaves": lambda m, quarter: start_and(Leaves, m),
    "stops": lambda m, quarter: start_and(Stops, m),
}
SHARES = {"both": ["full", "quarter"], "leaves": ["two"], "stops": ["two"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", default=list(ROWS), metavar="ROW")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--job", type=pathlib.Path, default=SOURCE / "examples/fashion_mnist/job.json")
    parser.add_argument("--cells", nargs="+", default=list(CELLS))
    parser.add_argument("--torch", type=pathlib.Path, help="a Python that has it")
    arguments = parser.parse_args()
    for row in arguments.rows:
        if row not in ROWS:
            parser.error(f"{row}: a row is one of {', '.join(ROWS)}")
    for cell in arguments.cells:
        if cell not in CELLS:
            parser.error(f"{cell}: a cell is one of {', '.join(CELLS)}")
    shares = [(name, of) for name, of in SHARES.items() if name in arguments.cells and set(of) <= set(arguments.cells)]
    print("| strategy | " + " | ".join(arguments.cells + [f"{name} / {' + '.join(of)}" for name, of in shares]) + " |\n"
          + "|---" * (1 + len(arguments.cells) + len(shares)) + "|", flush=True)
    for row in arguments.rows + ([OF_TORCH] if arguments.torch else []):
        with part_of_a_core(0.25, 25000) as quarter:
            if row == OF_TORCH:
                rates = {cell: measure_torch(arguments, CELLS[cell], quarter) for cell in arguments.cells if cell not in ("leaves", "stops")}
            else:
                rates = {cell: measure(arguments, ROWS[row], CELLS[cell], quarter) for cell in arguments.cells}
        figures = [f"{rates[cell]:.1f}" if cell in rates else "" for cell in arguments.cells]
        figures += [f"{rates[name] / sum(rates[each] for each in of):.2f}" if name in rates else "" for name, of in shares]
        print(f"| {row} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()

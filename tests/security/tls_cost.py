#!/usr/bin/env python3
"""Measures what TLS costs: the same job with plain and with encrypted traffic, in turns within one run. Prints the table
of docs/benchmarks.md. CPU time per step says the same where other programs run beside it.

    build/venv/bin/python tests/security/tls_cost.py                      all rows, about ten minutes; the row lan needs root
    build/venv/bin/python tests/security/tls_cost.py --turns 9 loopback   more turns of one row

A pair of turns is one of each kind. The rows:

    shared    one worker and one ps of one machine, which share memory for gradients and values; 2.2 million weights
    loopback  the same without shared memory: all passes a socket, so that TLS encrypts and copies it
    lan       the same over an emulated LAN of 1 Gbit/s, 0.3 ms there and back (tests/links)
    tiny      two workers and a model of 2,000 weights, whose steps are messages and little else
    start     `shoal train`, from its start to the first step; seconds

SHOAL_BIN names the directory of the programs, build/release/bin if it is not set. Nothing else should run on the machine.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("cluster/fixtures", "links")]
from certificates import Authority  # noqa: E402
from links import LAN, Star  # noqa: E402
from namespaces import can_make_namespaces  # noqa: E402
from pause import pause  # noqa: E402
from real_cluster import BIN, MODEL, Cluster, Process, finished_steps, wait_for, write_job  # noqa: E402

UNITS = 1024
# No worker with this limit can make the memory that it would share; what else it writes is small.
UNSHARED = ["prlimit", f"--fsize={16 << 20}"]
SHARED_MEMORY = "/memfd:shoal-payloads"


@dataclasses.dataclass(frozen=True)
class Row:
    what: str
    aim: str
    large: bool = True
    workers: int = 1
    worker_prefix: tuple = ()
    lan: bool = False


ROWS = {
    "shared": Row("worker and ps share memory", "unchanged"),
    "loopback": Row("loopback, no shared memory", "≥ 0.55", worker_prefix=tuple(UNSHARED)),
    "lan": Row("LAN of 1 Gbit/s", "≥ 0.95", lan=True),
    "tiny": Row("tiny steps, two workers", "≥ 0.8", large=False, workers=2),
}
START = "start"


def endless_job(directory, large):
    job = write_job(directory, examples=64000, epochs=1000000, checkpoint={"every_seconds": 0, "every_steps": 0},
                    optimizer={"class_name": "SGD", "config": {"learning_rate": 1e-4}}, strategy={"name": "async", "min_shard_bytes": 256})
    if large:
        model = json.loads(json.dumps(MODEL))
        *before, hidden, last = model["config"]["layers"]
        layers = [{**hidden, "config": {**hidden["config"], "name": f"hidden_{i}", "units": UNITS}} for i in range(3)]
        model["config"]["layers"] = [*before, *layers, last]
        (directory / "model.json").write_text(json.dumps(model))
    return job


class MeasuredCluster(Cluster):
    """A coordinator and a ps, on one host of the star if there is one, and workers, each on the next host. With TLS directories by
    role, traffic is encrypted."""

    def __init__(self, directory, row, tls, star):
        spec = None
        if star is not None:
            spec = {"chief": [f"{star.addresses[0]}:4100"], "ps": [f"{star.addresses[0]}:4101"],
                    "worker": [f"{star.addresses[1 + i]}:4102" for i in range(row.workers)]}
        super().__init__(directory, ps=1, workers=row.workers, spec=spec)
        self.row, self.tls, self.star = row, tls, star

    def host(self, index):
        return [] if self.star is None else self.star.prefix(index)

    def start(self, task_type, index=0, arguments=(), **options):
        role = "coordinator" if task_type == "chief" else f"{task_type}/{index}"
        prefix = [*self.host(1 + index), *self.row.worker_prefix] if task_type == "worker" else self.host(0)
        if self.tls is not None:
            arguments = [f"--tls_dir={self.tls[role]}", *arguments]
        elif self.star is not None:
            options["SHOAL_INSECURE"] = "1"
        return super().start(task_type, index, arguments, prefix=prefix, **options)

    def steps(self):
        """How many are done; None while the coordinator does not answer."""
        tls = [] if self.tls is None else ["--tls_dir", self.tls["operator"]]
        done = subprocess.run([*self.host(0), BIN / "shoal", "status", "--chief", self.chief, "--json", *tls], capture_output=True, text=True,
                              check=False)
        return json.loads(done.stdout).get("steps_done") if done.returncode == 0 else None

    def cpu_seconds(self):
        """The CPU time of all daemons."""
        ticks = 0
        for process in self.processes:
            fields = pathlib.Path(f"/proc/{process.popen.pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def look(self):
        """(time, CPU seconds, steps) at the moment when a step ends, which makes short measurements exact."""
        begin = self.steps()
        steps = wait_for(lambda: (now := self.steps()) is not None and now != begin and now, "another step")
        return time.monotonic(), self.cpu_seconds(), steps


def steps_per_second(row, tls, seconds, directory):
    """(by the clock, of CPU time) of one cluster."""
    with contextlib.ExitStack() as machines:
        star = machines.enter_context(Star([LAN] * (1 + row.workers), directory)) if row.lan else None
        cluster = machines.enter_context(MeasuredCluster(directory / "logs", row, tls, star))
        job = endless_job(directory, row.large)
        ps = cluster.start("ps")
        cluster.start_chief(job, directory / "run")
        for index in range(row.workers):
            cluster.start_worker(index)
        wait_for(lambda: (cluster.steps() or 0) > 20, "steps")
        pause(1)
        begin, cpu_before, before = cluster.look()
        pause(seconds)
        end, cpu_after, after = cluster.look()
        # Checks that the row measures what it says.
        shared = SHARED_MEMORY in pathlib.Path(f"/proc/{ps.popen.pid}/maps").read_text()
        assert shared == (not row.lan and not row.worker_prefix), f"shared memory: {shared}"
        for process in cluster.processes:
            assert ("traffic is encrypted" in process.output()) == (tls is not None), process.output()[-2000:]
    return (after - before) / (end - begin), (after - before) / (cpu_after - cpu_before)


def start_seconds(tls, directory):
    """From the start of `shoal train` to the first step."""
    job, records = endless_job(directory / "job", large=False), directory / "records"
    records.mkdir()
    begin = time.monotonic()
    train = Process([BIN / "shoal", "train", job, "--run_dir", directory / "run", *(["--tls"] if tls else [])], directory / "train.log",
                    {"SHOAL_STEP_RECORDS": str(records)})
    try:
        wait_for(lambda: finished_steps(records) > 0 or train.popen.poll() is not None, "the first step")
        taken = time.monotonic() - begin
        train.signal(signal.SIGINT)
        assert train.wait() == 143, train.output()[-3000:]
    finally:
        train.kill()
    return taken


def in_turns(turns, measure):
    """[(plain, TLS), ...], one of each pair after the other, in changing order."""
    pairs = []
    for turn in range(turns):
        pair = {}
        for tls in ((False, True), (True, False))[turn % 2]:
            with tempfile.TemporaryDirectory() as directory:
                pair[tls] = measure(tls, pathlib.Path(directory))
        pairs.append((pair[False], pair[True]))
    return pairs


def text_of(ratios):
    if len(ratios) < 2:
        return f"{ratios[0]:.3f}"
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{middle:.3f} ({low:.3f}–{high:.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", default=[*ROWS, START], metavar="ROW")
    parser.add_argument("--turns", type=int, default=5, help="turns of each kind")
    parser.add_argument("--seconds", type=float, default=8, help="length of a turn")
    options = parser.parse_args()
    for row in options.rows:
        if row not in ROWS and row != START:
            parser.error(f"{row}: a row is one of {', '.join([*ROWS, START])}")
    print("| | plain | TLS | TLS to plain, by the clock: median of pairs (quartiles) | of CPU time | aim |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        authority = Authority(pathlib.Path(name))
        tls_dirs = {role: authority.issue(role) for role in ("coordinator", "ps/0", "worker/0", "worker/1", "operator")}
        for name in options.rows:
            if name == START:
                pairs = in_turns(options.turns, start_seconds)
                plain, tls = (statistics.median(each) for each in zip(*pairs))
                more = statistics.median(after - before for before, after in pairs)
                print(f"| start of `shoal train`, to the first step | {plain:.2f} s | {tls:.2f} s | {more:+.3f} s | | +0.1 s at most |", flush=True)
                continue
            row = ROWS[name]
            if row.lan and not can_make_namespaces():
                print(f"| {row.what} | not measured: network namespaces need root and iproute2 | | | | {row.aim} |", flush=True)
                continue
            pairs = in_turns(options.turns, lambda tls, directory: steps_per_second(row, tls_dirs if tls else None, options.seconds, directory))
            plain, tls = (statistics.median(by_clock for by_clock, _ in each) for each in zip(*pairs))
            ratios = [[tls[i] / plain[i] for plain, tls in pairs] for i in range(2)]
            print(f"| {row.what} | {plain:.4g} steps/s | {tls:.4g} steps/s | {text_of(ratios[0])} | {text_of(ratios[1])} | {row.aim} |", flush=True)
    print(f"\n{os.cpu_count()} CPUs, load average at the end {os.getloadavg()[0]:.1f}; {options.turns} pairs of turns of {options.seconds:g} s")


if __name__ == "__main__":
    main()

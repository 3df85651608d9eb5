#!/usr/bin/env python3
"""Prints the table of docs/recovery.md: faults made to real processes, and how long it takes until steps flow again.

    build/venv/bin/python tests/recovery_table.py             all of it, about six minutes
    build/venv/bin/python tests/recovery_table.py --repeat 9  more measurements of each

SHOAL_BIN names the directory of the programs, build/release/bin if it is not set. Nothing else should run on the machine.
"""
import argparse
import calendar
import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import sys
import tempfile
import threading
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "cluster/fixtures"))
from pause import pause  # noqa: E402
from real_cluster import BIN, SOURCE, Cluster, Process, children_of, wait_for, write_job  # noqa: E402

EXAMPLES, BATCH_SIZE = 8000, 16
STRATEGY = {"name": "async", "min_shard_bytes": 256, "chunk_bytes": 1024}
RELEASED = re.compile(r"worker (\d+) is gone .*?; (\d+) of its steps are leased again")
RESUMED = re.compile(r"resumed from \S+ at step (\d+)")


class Sampler:
    """Reads the workers' records as they grow: [(seconds, worker, timeline, step)], to a millisecond or two."""

    def __init__(self, directory):
        self.directory, self.rows, self.offsets, self.ended = directory, [], {}, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(0.001):
            for path in self.directory.glob("steps-worker-*.csv"):
                self.read(path)

    def read(self, path):
        now = time.monotonic()
        with open(path, "rb") as file:
            file.seek(self.offsets.get(path, 0))
            data = file.read()
        whole = data[:data.rfind(b"\n") + 1]
        self.offsets[path] = self.offsets.get(path, 0) + len(whole)
        worker = int(path.stem.split("-")[-1])
        for line in whole.splitlines():
            timeline, step = line.split(b",", 2)[:2]
            self.rows.append((now, worker, int(timeline), int(step)))

    def rate(self, begin, end, workers):
        return sum(begin <= row[0] < end and row[1] in workers for row in self.rows) / (end - begin)

    def first_after(self, moment, other_than=None):
        """Seconds from `moment` to the first step after it; with `other_than`, in another timeline."""
        def found():
            return next((row[0] for row in list(self.rows) if row[0] > moment and row[2] != other_than), None)
        return wait_for(found, "steps flow again") - moment

    def close(self):
        self.ended.set()
        self.thread.join()


@contextlib.contextmanager
def running_cluster(workers=3, every_steps=500):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        job = write_job(directory, EXAMPLES, BATCH_SIZE, epochs=100000, strategy=STRATEGY,
                        checkpoint={"every_steps": every_steps, "keep": 2})
        records = directory / "records"
        records.mkdir()
        with Cluster(directory / "logs", ps=2, workers=workers) as cluster:
            sampler = Sampler(records)
            cluster.job, cluster.run = job, directory / "run"
            cluster.servers = [cluster.start("ps", i) for i in range(2)]
            cluster.begin_worker = lambda i: cluster.start_worker(i, f"--step_records={records}")
            cluster.workers = [cluster.begin_worker(i) for i in range(workers)]
            cluster.coordinator = cluster.start_chief(job, cluster.run)
            wait_for(lambda: len(sampler.rows) > 2000, "2000 steps")
            pause(1.5)
            try:
                yield cluster, sampler
            finally:
                sampler.close()


def log_seconds(text, pattern):
    """Wall-clock seconds of the last log line that matches."""
    line = [line for line in text.splitlines() if pattern.search(line)][-1]
    stamp = line.split(" ", 1)[0]
    whole, fraction = stamp.rstrip("Z").split(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float("0." + fraction)


def worker_killed():
    with running_cluster() as (cluster, sampler):
        now = time.monotonic()
        before = sampler.rate(now - 1.5, now, {0, 1})
        seen = {row[3] for row in sampler.rows}
        killed, killed_wall = time.monotonic(), time.time()
        cluster.workers[2].kill()
        wait_for(lambda: RELEASED.search(cluster.coordinator.output()), "its steps to be leased again")
        leased = log_seconds(cluster.coordinator.output(), RELEASED) - killed_wall
        pause(2)
        after = sampler.rate(killed + 0.25, killed + 1.75, {0, 1})
        newest = max(seen)
        late = [row[0] for row in sampler.rows if row[0] > killed and row[3] < newest]
        holes = set(range(newest)) - {row[3] for row in sampler.rows}
        assert not holes, sorted(holes)[:10]
        return {"leased again s": max(0.0, leased), "done by others s": max(late, default=killed) - killed,
                "others' rate %": 100 * after / before}


def worker_drained():
    with running_cluster() as (cluster, _):
        told = time.monotonic()
        cluster.workers[2].signal(signal.SIGTERM)
        assert cluster.workers[2].wait() == 143
        return {"gone s": time.monotonic() - told}


def restore(kill_all):
    with running_cluster() as (cluster, sampler):
        timeline = max(row[2] for row in sampler.rows)
        for process in (cluster.coordinator, *cluster.workers) if kill_all else ():
            process.kill()
        for process in cluster.servers if kill_all else cluster.servers[:1]:
            process.kill()
        pause(0.2)
        newest = max(row[3] for row in sampler.rows if row[2] == timeline)
        begun = time.monotonic()
        for i in range(2 if kill_all else 1):
            cluster.start("ps", i)
        if kill_all:
            cluster.coordinator = cluster.start_chief(cluster.job, cluster.run)
            for i in range(3):
                cluster.begin_worker(i)
        flows = sampler.first_after(begun, other_than=timeline)
        resumed = RESUMED.findall(cluster.coordinator.output())
        return {"steps flow s": flows, "steps rolled back": newest + 1 - int(resumed[-1])}


def ps_killed():
    return restore(kill_all=False)


def everything_killed():
    return restore(kill_all=True)


def coordinator_killed(down_seconds=1.0):
    with running_cluster() as (cluster, sampler):
        cluster.coordinator.kill()
        pause(down_seconds)
        quiet = time.monotonic()
        assert quiet - sampler.rows[-1][0] > 0.3, "leases are used up"
        cluster.coordinator = cluster.start_chief(cluster.job, cluster.run)
        flows = sampler.first_after(quiet)
        assert len({row[2] for row in sampler.rows}) == 1, "no rollback"
        return {"steps flow s": flows}


def coordinator_killed_for_long():
    return coordinator_killed(down_seconds=20)


def under_train(kind):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        job = write_job(directory, EXAMPLES, BATCH_SIZE, epochs=100000, strategy=STRATEGY, checkpoint={"every_steps": 500})
        records = directory / "records"
        records.mkdir()
        train = Process([BIN / "shoal", "train", job, "--run_dir", directory / "run", "--ps", 2], directory / "log",
                        {"SHOAL_STEP_RECORDS": str(records)})
        sampler = Sampler(records)
        try:
            wait_for(lambda: len(sampler.rows) > 2000, "2000 steps")
            pause(0.5)
            timeline = max(row[2] for row in sampler.rows)
            pid = next(pid for pid, task in children_of(train.popen.pid).items() if task == f"{kind} 0")
            os.kill(pid, signal.SIGKILL)
            killed = time.monotonic()
            if kind == "ps":
                return {"steps flow s": sampler.first_after(killed, other_than=timeline)}
            train.wait_for_output("restarts in")
            pause(4)
            rows = [row for row in sampler.rows if row[0] >= killed - 0.1]
            # The longest time without a step is that without a coordinator.
            return {"steps flow s": max(after[0] - before[0] for before, after in zip(rows, rows[1:]))}
        finally:
            sampler.close()
            train.signal(signal.SIGKILL)
            train.popen.wait()


def ps_killed_under_train():
    return under_train("ps")


def coordinator_killed_under_train():
    return under_train("chief")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask_for_checkpoint(address):
    """Cluster.Checkpoint, without the cost of a process; the request has no fields."""
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        return list(channel.stream_stream("/shoal.proto.Cluster/Checkpoint")(iter([b""]), timeout=60))


def checkpoints_every_2_s(pairs, seconds=6):
    """Windows without and with checkpoints take turns in one run of examples/fashion_mnist; medians over the pairs."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        example = SOURCE / "examples/fashion_mnist"
        job = json.loads((example / "job.json").read_text())
        job.update(epochs=1000, model=str(example / "model.json"), checkpoint={})
        job["data"].pop("test", None)
        (directory / "job.json").write_text(json.dumps(job))
        records, run = directory / "records", directory / "run"
        records.mkdir()
        train = Process([BIN / "shoal", "train", directory / "job.json", "--run_dir", run], directory / "log",
                        {"SHOAL_STEP_RECORDS": str(records)})
        sampler = Sampler(records)
        try:
            wait_for(lambda: len(sampler.rows) > 300, "300 steps")
            address = (run / "chief.address").read_text().strip()
            writers = [pid for pid, task in children_of(train.popen.pid).items() if not task.startswith("worker")]

            def window(checkpoints):
                used, count, begun = sum(map(cpu_seconds, writers)), len(sampler.rows), time.monotonic()
                for i in range(seconds // 2):
                    if checkpoints:
                        ask_for_checkpoint(address)
                    pause(max(0, begun + 2 * (i + 1) - time.monotonic()))
                elapsed = time.monotonic() - begun
                return (len(sampler.rows) - count) / elapsed, (sum(map(cpu_seconds, writers)) - used) / elapsed / os.cpu_count()

            ratios, rates, shares = [], [], []
            for pair in range(pairs):
                first = window(pair % 2 == 1)
                second = window(pair % 2 == 0)
                (rate, busy), (rate_with, busy_with) = (first, second) if pair % 2 == 0 else (second, first)
                rates.append(rate)
                ratios.append(100 * (1 - rate_with / rate))
                shares.append(100 * (busy_with - busy))
            return {"steps/s without": rates, "throughput lost %": ratios, "CPU of writing, % of the machine": shares}
        finally:
            sampler.close()
            train.signal(signal.SIGKILL)
            train.popen.wait()


FAULTS = [worker_killed, worker_drained, ps_killed, ps_killed_under_train, coordinator_killed, coordinator_killed_for_long,
          coordinator_killed_under_train, everything_killed]


def print_row(name, values):
    cells = [f"{key}: {statistics.median(each):.3g} ({min(each):.3g} to {max(each):.3g})" for key, each in values.items()]
    print(f"| {name} | {', '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="measurements of each fault")
    parser.add_argument("--only", help="one row, by its name")
    options = parser.parse_args()
    print(f"load average at the start {os.getloadavg()[0]:.1f}, {os.cpu_count()} CPUs; median of {options.repeat} (least to most)\n")
    print("| fault | measured |\n|---|---|")
    for fault in FAULTS:
        if options.only not in (None, fault.__name__):
            continue
        results = [fault() for _ in range(options.repeat)]
        print_row(fault.__name__, {key: [result[key] for result in results] for key in results[0]})
    if options.only in (None, "checkpoints_every_2_s"):
        print_row("checkpoints_every_2_s", checkpoints_every_2_s(2 * options.repeat))


if __name__ == "__main__":
    main()

"""64 workers, of which 32 are stopped in the middle of pushes and pulls of a 256 MiB model: nobody else minds.

    stopped_workers.py [--workers 64] [--layers 1] [--directory DIR]

The workers are the real session and exchange without the model's computation, in processes of their own
(pushing_worker.cc), so that 64 fit on one machine; coordinator and ps are the daemons. Half of those that are stopped have
pushed a part of their first step; the others come later, one after another while the training goes on, and are stopped with
one chunk of all that they have asked for, so that each waits for other values than the one before. The others go on, the
memory of the ps stays within what `shoal validate` says, the stopped ones come back and finish their steps, and every chunk
has had every step once.
"""
import argparse
import pathlib
import re
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fixtures"))
import large_models  # noqa: E402
from real_cluster import BIN, Cluster, Process, wait_for  # noqa: E402

WORKER = BIN.parent / "tests/cluster/measurements/pushing_worker"
PATIENCE_SECONDS = 900


def is_stopped(process):
    text = pathlib.Path(f"/proc/{process.popen.pid}/stat").read_text()
    return text.rpartition(")")[2].split()[0] == "T"


def steps_of_workers(status):
    return {task.get("index", 0): task.get("done", 0)
            for task in status["tasks"] if task["type"] == "worker"}


def run(directory, workers, layers):
    job = large_models.write_job(directory, layers / 4)
    sleeping = set(range(0, workers, 2))
    pulling = set(range(0, workers, 4))  # of them
    chunks = layers * 256
    with Cluster(directory / "cluster", ps=1, workers=workers) as cluster:
        needs = large_models.sizes_of(job, 1, workers)
        begun = time.monotonic()
        chief = cluster.start_chief(job, directory / "run")
        ps = cluster.start("ps")

        def peak():
            status = pathlib.Path(f"/proc/{ps.popen.pid}/status").read_text()
            return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024

        def wait(condition, what):
            def holds():
                large_models.PAUSE.wait(0.3)  # asking costs a core that the cluster needs
                for process in cluster.processes:
                    assert process.popen.poll() is None, f"ended: {process.popen.args}\n{process.output()[-2000:]}"
                status = cluster.status()
                return status is not None and condition(status)
            wait_for(holds, what, PATIENCE_SECONDS)

        started = {}

        def start(i, pulled, pushed):
            started[i] = Process([WORKER, cluster.chief, i, directory / "gradients", directory / "parameters", pulled, pushed],
                                 cluster.directory / f"worker-{i}.log")
            cluster.processes.append(started[i])

        for i in set(range(workers)) - pulling:
            start(i, 0, 1 + (i * chunks // workers + chunks // 2) % (chunks - 1) if i in sleeping else 0)
        for i in pulling:
            seen = (cluster.status() or {"steps_done": 0})["steps_done"]
            wait(lambda status, seen=seen: status["steps_done"] > seen, "another step")
            start(i, 1, 0)
        wait(lambda _: all(is_stopped(started[i]) for i in sleeping), f"{len(sleeping)} workers are stopped")
        print(f"{len(sleeping)} of {workers} workers stopped after {time.monotonic() - begun:.0f} s; "
              f"the ps: {peak() / 2**20:.0f} MiB at most", flush=True)
        most = needs["ps 0"][1]
        assert peak() <= most, f"the ps needed {peak()} bytes, more than {most:.0f}"

        before = cluster.status()
        awake = [i for i in range(workers) if i not in sleeping]
        done = steps_of_workers(before)
        wait(lambda status: all(steps_of_workers(status).get(i, 0) > done.get(i, 0) for i in awake),
             "every other worker goes on")
        print(f"each of the others has done another step after {time.monotonic() - begun:.0f} s; "
              f"the ps: {peak() / 2**20:.0f} MiB at most", flush=True)

        for i in sleeping:
            started[i].signal(signal.SIGCONT)
        wait(lambda status: all(steps_of_workers(status).get(i, 0) > 0 for i in sleeping), "the stopped workers finish a step")
        after = cluster.status()
        assert after["timeline"] == before["timeline"], "the ps lost what it held"
        assert after["base_step"] >= before["base_step"] and after["steps_done"] > before["steps_done"]
        print(f"all stopped ones have finished a step after {time.monotonic() - begun:.0f} s, {after['steps_done']} steps done; "
              f"the ps: {peak() / 2**20:.0f} MiB at most, of {most / 2**20:.0f}", flush=True)
        assert peak() <= most, f"the ps needed {peak()} bytes, more than {most:.0f}"

        # An orderly stop completes every leased step; whoever takes over is told how many updates the
        # chunks have had.
        chief.signal(signal.SIGTERM)
        assert chief.wait(PATIENCE_SECONDS) == 143, chief.output()[-3000:]
        for worker in started.values():
            worker.kill()
        cluster.processes = [ps, cluster.start_chief(job, directory / "run")]
        wait(lambda status: status["timeline"] != 0, "the ps are taken over")
        found = cluster.status()
        updates = next(task for task in found["tasks"] if task["type"] == "ps")
        assert found["timeline"] == before["timeline"], "the ps lost what it held"
        cut = max(int(path.name.split("-")[1]) for path in (directory / "run/checkpoints").iterdir())
        assert cut >= after["steps_done"]
        assert updates["lowest_updates"] == updates["highest_updates"] == cut, updates
        print(f"every chunk has had {cut} steps, once each", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--directory", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="shoal_stopped_", dir=options.directory) as directory:
        run(pathlib.Path(directory), options.workers, options.layers)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Real daemons that have less memory than the job needs: named with sizes, exit code 78, no crash."""
import json
import resource

import numpy as np
import pytest

from real_cluster import Cluster, shoal, wait_for

MIB = 1 << 20
UNITS = 8192  # a layer of them on as many inputs: 256 MiB


def write_wide_job(directory, layers=1, strategy=None, units=UNITS, steps=2):
    """A job with a model of `layers` times 256 MiB, or as `units` make it, that would train in a few steps."""
    directory.mkdir(parents=True, exist_ok=True)
    np.save(directory / "x.npy", np.zeros((4, units), np.float32))
    np.save(directory / "y.npy", np.zeros((4, units), np.float32))
    dense = {"units": units, "use_bias": False, "kernel_initializer": "zeros"}
    model = {"class_name": "Sequential", "config": {"name": "wide", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [None, units], "dtype": "float32", "name": "input"}},
        *({"class_name": "Dense", "config": {"name": f"dense_{i}", **dense}} for i in range(layers))]}}
    job = {"name": "wide", "model": model, "loss": "mse", "optimizer": "sgd", "batch_size": 1, "steps": steps,
           "data": {"training": {"images": "x.npy", "labels": "y.npy"}}, "strategy": strategy or {"name": "async"}}
    path = directory / "job.json"
    path.write_text(json.dumps(job))
    return path


def leave(process, more_bytes):
    """Lets a running process have `more_bytes` of address space more than it has now."""
    fields = open(f"/proc/{process.popen.pid}/status", encoding="utf-8").read().splitlines()
    size = next(int(line.split()[1]) * 1024 for line in fields if line.startswith("VmSize:"))
    resource.prlimit(process.popen.pid, resource.RLIMIT_AS, (size + more_bytes, resource.RLIM_INFINITY))


@pytest.fixture(name="cluster")
def _cluster(tmp_path):
    with Cluster(tmp_path / "cluster", ps=1, workers=1) as cluster:
        yield cluster


def limited(mebibytes):
    """Started with so much memory for data, of which the stacks of threads, some for each core, take little."""
    return ("bash", "-c", f'ulimit -Ss 1024 && ulimit -d {mebibytes * 1024} && exec "$@"', "--")


def test_a_worker_without_the_memory_says_so_at_the_welcome(tmp_path, cluster):
    job = write_wide_job(tmp_path)
    cluster.start_chief(job, tmp_path / "run")
    cluster.start("ps", 0)
    # OpenBLAS would set more than 128 MiB aside for each core.
    worker = cluster.start("worker", 0, ["--threads=1"], prefix=limited(500), OMP_NUM_THREADS="1")
    assert worker.wait() == 78, worker.output()[-3000:]
    assert "worker needs 81" in worker.output() and "parameters 256.0 MiB, gradients 256.0 MiB" in worker.output()
    assert "RLIMIT_DATA" in worker.output() and "500.0 MiB" in worker.output()


def test_a_ps_without_the_memory_ends_the_job_with_the_sizes(tmp_path, cluster):
    job = write_wide_job(tmp_path)
    chief = cluster.start_chief(job, tmp_path / "run")
    cluster.start("ps", 0, prefix=limited(200))
    assert chief.wait() == 78, chief.output()[-3000:]
    assert "ps 0 needs 32" in chief.output() and "(variables 256.0 MiB, " in chief.output()
    assert "200.0 MiB" in chief.output()


def test_a_worker_whose_memory_runs_out_later_says_so(tmp_path, cluster):
    worker = cluster.start("worker", 0, ["--threads=1"])
    worker.wait_for_output("looking for the coordinator")
    leave(worker, 800 * MIB)
    cluster.start_chief(write_wide_job(tmp_path, layers=4), tmp_path / "run")
    cluster.start("ps", 0)
    assert worker.wait() == 78, worker.output()[-3000:]
    assert "no memory" in worker.output(), worker.output()[-3000:]


def test_a_ps_whose_memory_runs_out_at_the_load_says_so(tmp_path, cluster):
    ps = cluster.start("ps", 0)
    wait_for(lambda: "waiting for the coordinator" in ps.output(), "the ps serves")
    leave(ps, 100 * MIB)
    chief = cluster.start_chief(write_wide_job(tmp_path), tmp_path / "run")
    assert chief.wait() == 78, chief.output()[-3000:]
    assert "no memory" in chief.output() and " ps 0" in chief.output(), chief.output()[-3000:]


def test_a_ps_with_little_address_space_shares_none_of_it(tmp_path):
    """Four workers of its machine lend it gradients of 64 MiB each, and 32 MiB for copies."""
    workers = 4
    with Cluster(tmp_path / "cluster", ps=1, workers=workers) as cluster:
        ps = cluster.start("ps", 0)
        wait_for(lambda: "waiting for the coordinator" in ps.output(), "the ps serves")
        # The variables, a copy of them for a checkpoint, what is sent at once, and 76 MiB for chunks and threads.
        leave(ps, (64 + 64 + 256 + 76) * MIB)
        chief = cluster.start_chief(write_wide_job(tmp_path, units=4096, steps=24), tmp_path / "run")
        started = [cluster.start_worker(index, OMP_NUM_THREADS="1") for index in range(workers)]
        wait_for(lambda: chief.popen.poll() is not None or ps.popen.poll() is not None, "the end of the job, or of the ps")
        for process in (ps, chief):
            assert process.popen.poll() in (None, 0), process.fate() + "\n" + process.output()[-3000:]
        assert (chief.wait(), ps.wait()) == (0, 0)
        for worker in started:
            assert worker.wait() == 0, worker.output()[-3000:]


def test_applied_sets_larger_than_the_model_are_rejected(tmp_path, cluster):
    job = write_wide_job(tmp_path, strategy={"name": "async", "chunk_bytes": 1024, "window_steps": 1 << 20})
    found = shoal("validate", "--job", job)
    assert found.returncode == 78, found.stdout + found.stderr
    assert all(number in found.stderr for number in ("128.0 KiB", "262144 chunks", "32.0 GiB", "256.0 MiB")), found.stderr
    chief = cluster.start_chief(job, tmp_path / "run")
    assert chief.wait() == 78
    assert "$.strategy.window_steps: " in chief.output()

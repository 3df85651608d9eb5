"""`shoal train --tls`, and the commands that ask such a run."""
import signal
import socket

import pytest

from certificates import Authority, identity
from real_cluster import BIN, Process, finished_steps, shoal, step_records, wait_for, write_job
from secure_cluster import SecureCluster

ENDLESS = {"epochs": 100000, "examples": 8007}


def mode(path):
    return path.stat().st_mode & 0o777


def test_a_small_job_trains_to_its_end(tmp_path):
    job, run = write_job(tmp_path / "job"), tmp_path / "run"
    (tmp_path / "records").mkdir()
    done = shoal("train", job, "--run_dir", run, "--tls", SHOAL_STEP_RECORDS=str(tmp_path / "records"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(step for _, step, _ in step_records(tmp_path / "records")) == list(range(2 * 25))
    for log in (run / "logs").glob("*.log"):
        assert "traffic is encrypted" in log.read_text(), log
    # Nobody can make more certificates of this run, and nobody else can read these.
    tls = run / "tls"
    assert {path.name for path in tls.iterdir()} == {"chief-0", "ps-0", "worker-0", "worker-1", "operator"}
    assert all(mode(path) == (0o700 if path.is_dir() else 0o600) for path in (tls, *tls.rglob("*")))
    again = shoal("train", job, "--run_dir", run, "--tls", "--epochs", 3)
    assert again.returncode == 0, again.stdout + again.stderr


def test_the_runs_own_operator_sees_and_commands_it(tmp_path):
    job, run, records = write_job(tmp_path / "job", **ENDLESS), tmp_path / "run", tmp_path / "records"
    records.mkdir()
    train = Process([BIN / "shoal", "train", job, "--run_dir", run, "--tls"], tmp_path / "train.log", {"SHOAL_STEP_RECORDS": str(records)})
    try:
        wait_for((records / "steps-worker-0.csv").exists, "a step of worker 0")
        wait_for((records / "steps-worker-1.csv").exists, "a step of worker 1")
        status = shoal("status", run)
        assert status.returncode == 0 and "training" in status.stdout, status.stdout + status.stderr
        written = shoal("checkpoint", "now", run)
        assert written.returncode == 0 and str(run / "checkpoints") in written.stdout, written.stdout + written.stderr
        drained = shoal("drain", "worker:0", run)
        assert drained.returncode == 0 and "worker 0" in drained.stdout, drained.stdout + drained.stderr

        # With the address alone there is no certificate to show.
        address = (run / "chief.address").read_text().strip()
        anonymous = shoal("status", address)
        assert anonymous.returncode == 138 and address in anonymous.stderr, anonymous.stdout + anonymous.stderr
        assert shoal("status", address, "--tls_dir", run / "tls/operator").returncode == 0
        assert shoal("status", address, SHOAL_TLS_DIR=str(run / "tls/operator")).returncode == 0
        for command in (["status"], ["drain", "worker:1"]):
            another = shoal(*command, address, "--tls_dir", run / "tls/worker-1")
            assert another.returncode == 78 and "worker/1" in another.stderr, another.stderr

        goal = finished_steps(records) + 100
        wait_for(lambda: finished_steps(records) > goal, "100 more steps")
        train.signal(signal.SIGINT)
        assert train.wait() == 143, train.output()[-3000:]
        advice = [line for line in train.output().splitlines() if line.strip().startswith(f"{BIN / 'shoal'} train ")]
        assert advice and all("--tls" in line.split() for line in advice), train.output()[-3000:]
        later = shoal("status", run)
        assert "--tls" in later.stderr.split(), later.stderr
    finally:
        train.kill()


@pytest.fixture
def cluster(tmp_path):
    """In the midst of an endless job."""
    records = tmp_path / "records"
    records.mkdir()
    with SecureCluster(tmp_path / "logs", Authority(tmp_path / "tls")) as cluster:
        cluster.start("ps")
        cluster.start_chief(write_job(tmp_path / "job", **ENDLESS), tmp_path / "run")
        cluster.workers = [cluster.start_worker(index, f"--step_records={records}") for index in range(2)]
        for worker in cluster.workers:
            worker.wait_for_output("working in timeline")
        wait_for(lambda: finished_steps(records) > 0, "a step")
        yield cluster
        assert all(process.popen.poll() in (None, 143) for process in cluster.processes)


def test_a_run_that_loses_its_tls_says_so(tmp_path):
    job, run = write_job(tmp_path / "job"), tmp_path / "run"
    assert shoal("train", job, "--run_dir", run, "--tls").returncode == 0
    again = shoal("train", job, "--run_dir", run, "--epochs", 3)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "--tls" in again.stderr and not (run / "tls").exists(), again.stderr


def test_a_viewer_sees_and_does_not_command(cluster, tmp_path):
    run, viewer = tmp_path / "run", cluster.tls["viewer"]
    for which in (run, cluster.chief):
        seen = shoal("status", which, "--tls_dir", viewer)
        assert seen.returncode == 0 and "training" in seen.stdout, seen.stdout + seen.stderr
        for command in (["drain", "worker:0"], ["drain", "chief"], ["checkpoint", "now"]):
            denied = shoal(*command, which, "--tls_dir", viewer)
            assert denied.returncode == 78, (command, denied.returncode, denied.stderr)
            assert identity("viewer") in denied.stderr and "operator" in denied.stderr, (command, denied.stderr)
    assert all(process.popen.poll() is None for process in cluster.processes)
    assert cluster.status()["phase"] == "training"

    drained = shoal("drain", "worker:0", run, "--tls_dir", cluster.tls["operator"])
    assert drained.returncode == 0, drained.stdout + drained.stderr
    assert cluster.workers[0].wait() == 143


def test_a_command_with_the_certificate_of_another_job_is_told_so(cluster, tmp_path):
    other = Authority(tmp_path / "other").forge("operator", [identity("operator", job="large")])
    (other / "ca.crt").write_bytes((cluster.tls["operator"] / "ca.crt").read_bytes())
    done = shoal("status", cluster.chief, "--tls_dir", other)
    assert done.returncode == 78 and str(other / "ca.crt") in done.stderr, done.stderr


def test_a_command_that_gives_up_a_silent_server_does_not_crash(tmp_path):
    """It ends in the midst of a handshake, and gRPC's threads with it; a crash was seen in one of fifteen."""
    operator = Authority(tmp_path / "tls").issue("operator")
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        asking = [Process([BIN / "shoal", "status", "--chief", address, "--tls_dir", operator], tmp_path / f"{i}.log") for i in range(60)]
        assert [process.wait() for process in asking] == [138] * 60

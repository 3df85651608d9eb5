"""What SHOAL_TEST_TLS=1 does to tests that know nothing of it."""
import pytest

import tls_mode
from real_cluster import Cluster, shoal, wait_for, write_job

ENCRYPTED = "traffic is encrypted"


@pytest.fixture(autouse=True)
def switched_on():
    with tls_mode.switched_on():
        yield


def test_every_daemon_and_command_uses_its_own_certificate(tmp_path):
    with Cluster(tmp_path / "logs", workers=1) as cluster:
        roles = {"coordinator": cluster.start_chief(write_job(tmp_path / "job", epochs=1000000), tmp_path / "run"), "ps/0": cluster.start("ps"),
                 "worker/0": cluster.start_worker(0), "evaluator": cluster.start_evaluator(),
                 "worker": cluster.start("worker", 9, ["--threads=1", f"--chief={cluster.chief}"], spec=False)}
        for role, process in roles.items():
            process.wait_for_output(f"{ENCRYPTED} identity=spiffe://shoal/job/{tls_mode.JOB}/{role}\n")
        wait_for(lambda: (cluster.status() or {}).get("steps_done"), "a step")
        assert "training" in shoal("status", tmp_path / "run").stdout
        assert shoal("status", cluster.chief, SHOAL_TLS_DIR="").returncode != 0, "nobody gets in without a certificate"


def test_shoal_train_uses_certificates_of_its_own(tmp_path):
    job, run = write_job(tmp_path / "job"), tmp_path / "run"
    trained = shoal("train", job, "--run_dir", run)
    assert trained.returncode == 0, trained.stdout + trained.stderr
    logs = list((run / "logs").glob("*.log"))
    assert logs and all(ENCRYPTED in log.read_text() for log in logs)

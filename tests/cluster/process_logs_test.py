"""What a test of processes says when it fails."""
import os
import pathlib
import subprocess
import sys

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"

FAILING = """
from real_cluster import Process

def test_that_passes(tmp_path):
    Process(["sh", "-c", "echo nothing to see here"], tmp_path / "other.log").wait()

def test_that_fails(tmp_path):
    train = tmp_path / "run/logs"
    train.mkdir(parents=True)
    dead = Process(["sh", "-c", "seq 100; echo no disk > $0/ps-0.log; exit 78", train], tmp_path / "train.log")
    dead.wait()
    killed = Process(["sh", "-c", "kill -9 $$"], tmp_path / "worker-1.log")
    killed.wait()
    alive = Process(["sleep", "1000"], tmp_path / "worker-0.log")
    try:
        assert dead.popen.returncode == 0
    finally:
        alive.kill()
"""


def test_a_failure_comes_with_the_end_of_every_log(tmp_path):
    (tmp_path / "conftest.py").write_text("from process_logs import pytest_runtest_makereport, pytest_runtest_setup\n")
    (tmp_path / "failing_test.py").write_text(FAILING)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "failing_test.py"], cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(FIXTURES)}, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    lines = done.stdout.splitlines()

    def words(title):
        start, = (i for i, line in enumerate(lines) if title in line and line.startswith("---"))
        return lines[start + 1:start + 22]
    said = words("train.log: exit code 78")
    assert said[:20] == [str(i) for i in range(81, 101)] and said[20].startswith("---"), done.stdout
    assert words("run/logs/ps-0.log")[0] == "no disk"
    assert words("worker-1.log: killed by SIGKILL")[0] == "(it said nothing)"
    assert words("worker-0.log: ran until the test killed it")
    assert "nothing to see here" not in done.stdout

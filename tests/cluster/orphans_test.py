"""What a killed test leaves behind: no process."""
import os
import pathlib
import select
import signal
import subprocess
import sys

import pytest

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
PATIENCE_SECONDS = 60

STARTING = """
import os
import pathlib
import sys
from real_cluster import Process

pid = Process(["sleep", "1000"], sys.argv[1], prefix=sys.argv[2:]).popen.pid
while pathlib.Path(f"/proc/{pid}/comm").read_text() != "sleep\\n":  # setpriv has left its mark by then
    os.sched_yield()
print(pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("prefix", [(), ("sh", "-c", 'exec "$@"', "sh")], ids=["plain", "behind a prefix"])
def test_a_daemon_ends_with_a_killed_test(tmp_path, prefix):
    with subprocess.Popen([sys.executable, "-c", STARTING, tmp_path / "daemon.log", *prefix], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, env={**os.environ, "PYTHONPATH": str(FIXTURES)}) as test:
        try:
            daemon = os.pidfd_open(int(test.stdout.readline()))
        finally:
            test.kill()
    try:
        ended, _, _ = select.select([daemon], [], [], PATIENCE_SECONDS)  # readable once it has ended
        assert ended
    finally:
        try:
            signal.pidfd_send_signal(daemon, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.close(daemon)

"""That a report of a sanitizer is found: without that, the lane asan-hostile would pass whatever happens."""
import signal

import pytest

from real_cluster import Cluster
from sanitized import SANITIZED, Reports, is_sanitized


def test_a_report_fails_one_test_and_not_the_next(tmp_path):
    reports = Reports(tmp_path)
    reports.check()
    (tmp_path / "report.12").write_text("AddressSanitizer: heap-use-after-free")
    with pytest.raises(pytest.fail.Exception, match="heap-use-after-free"):
        reports.check()
    reports.check()


def test_a_program_with_the_runtime_is_known(tmp_path):
    assert not is_sanitized(tmp_path / "missing")
    (tmp_path / "plain").write_bytes(b"\x7fELF main")
    assert not is_sanitized(tmp_path / "plain")
    (tmp_path / "program").write_bytes(b"\x7fELF main\0__asan_init\0")
    assert is_sanitized(tmp_path / "program")


@pytest.mark.skipif(not SANITIZED, reason="needs daemons built with sanitizers: scripts/check-lanes asan-hostile")
def test_a_crash_of_a_daemon_is_reported(tmp_path, sanitizer_reports):
    with Cluster(tmp_path) as cluster:
        server = cluster.start("ps")
        server.wait_for_output("listening")
        server.signal(signal.SIGSEGV)
        assert server.wait() != 0
    assert any("AddressSanitizer" in text for text in sanitizer_reports.take())

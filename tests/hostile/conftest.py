import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster/fixtures"))  # real_cluster
from process_logs import pytest_runtest_makereport, pytest_runtest_setup  # noqa: F401,E402
from sanitized import no_sanitizer_report, sanitizer_reports  # noqa: F401,E402

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
# For real_cluster, messages and watched_cluster.
sys.path[:0] = [str(TESTS / folder) for folder in ("cluster/fixtures", "hostile", "monitoring")]
from process_logs import pytest_runtest_makereport, pytest_runtest_setup  # noqa: F401,E402

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "cluster/fixtures"), str(TESTS / "security")]
from process_logs import pytest_runtest_makereport, pytest_runtest_setup  # noqa: E402,F401
from seed_options import pytest_addoption, pytest_generate_tests  # noqa: E402,F401

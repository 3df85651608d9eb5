import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "fixtures"))
from process_logs import pytest_runtest_makereport, pytest_runtest_setup  # noqa: E402,F401
from seed_options import pytest_addoption, pytest_generate_tests  # noqa: E402,F401

import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "jax"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster/fixtures"))
from process_logs import pytest_runtest_makereport, pytest_runtest_setup  # noqa: E402,F401

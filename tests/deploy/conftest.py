import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from seed_options import pytest_addoption, pytest_generate_tests  # noqa: E402,F401

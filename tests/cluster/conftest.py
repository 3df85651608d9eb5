from process_logs import pytest_runtest_makereport, pytest_runtest_setup  # noqa: F401
from seed_options import pytest_addoption, pytest_generate_tests  # noqa: F401

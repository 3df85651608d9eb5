from seed_options import pytest_addoption, pytest_generate_tests  # noqa: F401

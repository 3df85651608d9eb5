"""Hooks for a conftest.py: a test that fails says of each process that it started how it ended and what it logged last."""
import pytest

from real_cluster import Process

LINES = 20


def last_words(log):
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-LINES:]) or "(it said nothing)"


def logs_of(item):
    """[(title, log)]: of the processes, the newest life last, and what they have in files of their own (`shoal train`)."""
    found = {process.log: f"{process.log.name}: {process.fate()}" for process in Process.started}
    for log in sorted(item.funcargs["tmp_path"].rglob("*.log")) if "tmp_path" in item.funcargs else []:
        found.setdefault(log, str(log.relative_to(item.funcargs["tmp_path"])))
    return [(title, log) for log, title in found.items()]


def pytest_runtest_setup():
    # What a fixture of several tests has started goes on.
    Process.started[:] = [process for process in Process.started if process.popen.poll() is None]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.failed:
        report.sections += [(title, last_words(log)) for title, log in logs_of(item)]

"""What differs where the daemons are built with the address and undefined-behaviour sanitizers, as the lane asan-hostile does."""
import os

import pytest

from real_cluster import BIN

# Freed blocks that a process keeps, so that a use of them is seen.
QUARANTINE_MIB = 32
# Zones around blocks, and a byte of shadow for eight.
MEMORY_FACTOR = 2
# Unoptimised, with a check at each access.
TIME_FACTOR = 4


def is_sanitized(program):
    return program.exists() and b"__asan_init" in program.read_bytes()


SANITIZED = is_sanitized(BIN / "shoal-ps")


def mib_of(mib):
    """The most memory that a process takes here if it takes this much without sanitizers."""
    return mib * MEMORY_FACTOR + QUARANTINE_MIB if SANITIZED else mib


def seconds_of(seconds):
    """The most time that a process takes here if it takes this long without sanitizers."""
    return seconds * TIME_FACTOR if SANITIZED else seconds


def write_reports_to(directory):
    """Makes all processes that start from here on report into this directory, a file each. A crash is a report, too."""
    crashes = ":".join(f"handle_{signal}=2" for signal in ("abort", "segv", "sigbus", "sigfpe", "sigill"))
    # The lane asan looks for leaks. Most daemons here are killed before a sanitizer could.
    os.environ["ASAN_OPTIONS"] = f"log_path={directory}/report:detect_leaks=0:quarantine_size_mb={QUARANTINE_MIB}:{crashes}"
    os.environ["UBSAN_OPTIONS"] = f"log_path={directory}/report:halt_on_error=1:print_stacktrace=1"


class Reports:
    """The sanitizers' reports in one directory."""

    def __init__(self, directory):
        self.directory, self._seen = directory, set()

    def take(self):
        """The texts of those that have come since the last call."""
        new = sorted(set(self.directory.glob("report*")) - self._seen)
        self._seen.update(new)
        return [path.read_text(errors="replace") for path in new]

    def check(self):
        found = self.take()
        if found:
            pytest.fail("a sanitizer reports:\n" + "\n".join(text[:8000] for text in found), pytrace=False)


@pytest.fixture(scope="session")
def sanitizer_reports(tmp_path_factory):
    reports = Reports(tmp_path_factory.mktemp("reports"))
    if SANITIZED:
        write_reports_to(reports.directory)
    yield reports
    reports.check()  # of processes that a module shares


@pytest.fixture(autouse=True)
def no_sanitizer_report(sanitizer_reports):
    """Fails a test if a sanitizer has reported a process that it started."""
    yield
    sanitizer_reports.check()

import concurrent.futures
import pathlib
import sys

import pytest

from programs import Log, Programs

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cluster/fixtures"))
from real_cluster import wait_for  # noqa: E402


class Clock:
    """Stands still until it is put forward."""
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def programs(tmp_path, clock):
    return Programs(Log(tmp_path / "log.txt"), clock=clock)


@pytest.fixture
def sign(tmp_path):
    """The file by which a program says that it has begun."""
    return tmp_path / "sign"


@pytest.fixture
def passing(programs, clock, sign):
    """passing(seconds, function, ...) calls the function, by which a program of `programs` runs, and lets the seconds pass at once when there
    is something in `sign`."""
    def call(seconds, function, *words, **options):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            result = pool.submit(function, *words, **options)
            try:
                wait_for(lambda: result.done() or (sign.exists() and sign.stat().st_size > 0), "the program begins", 60)
                clock.now += seconds
                return result.result(60)
            except BaseException:
                programs.stop()  # else the pool waits for it
                raise
    return call

"""Runs programs, none for longer than there is time left, and keeps what they printed."""
import dataclasses
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing

from descendants import Descendants

# With less time left no program is begun.
LEAST_SECONDS = 2
# Between being asked to end and being killed.
PATIENCE_SECONDS = 3
KEPT_OF_OUTPUT = 4096
# A daemon's log line of a warning or an error, and whatever calls itself so.
WARNING = re.compile(r"^(?:\d{4}-\d\d-\S+Z [WE] .*|.*\bwarning\b.*)$", re.MULTILINE | re.IGNORECASE)


class Budget:
    """The time that there is; without seconds as much as it takes."""

    def __init__(self, seconds=None, clock=time.monotonic):
        self._clock = clock
        self._end = math.inf if seconds is None else clock() + seconds

    def left(self):
        return self._end - self._clock()

    def but_for(self, seconds):
        """That which leaves so many seconds of this one."""
        return Budget(max(0, self.left() - seconds), self._clock) if self._end < math.inf else self


@dataclasses.dataclass
class Ended:
    """How a program ended."""
    code: typing.Optional[int]  # what it ended with, below 0 a signal; None where it did not by itself
    output: str
    seconds: float
    # Where there is no code: "budget" (no time was left to begin it), "timeout", "silence" (it printed nothing for too long) or
    # "not started".
    why: str = ""

    def entry(self):
        """For the report: of what it printed the end, where it did not end well."""
        if self.why == "budget":
            return {"not_run": "budget"}
        entry = {"exit": self.code, "seconds": round(self.seconds, 1)} | ({"ended_by": self.why} if self.why else {})
        return entry if self.code == 0 else entry | {"output": self.output[-KEPT_OF_OUTPUT:]}


def excerpt(text, head=2000, tail=2000):
    """The text without what is between its beginning and its end."""
    left_out = len(text) - head - tail
    return text if left_out <= 0 else f"{text[:head]}\n[... {left_out} characters ...]\n{text[-tail:]}"


def first_warnings(text, most=20):
    return [line[:300] for line in WARNING.findall(text)[:most]]


class Log:
    """What is printed goes into a file, too, and what programs print into that alone. Any thread."""

    def __init__(self, path: pathlib.Path, mode="w"):
        self._file = open(path, mode, encoding="utf-8")  # pylint: disable=consider-using-with  # as long as the process
        self._lock = threading.Lock()

    def say(self, text):
        with self._lock:
            print(text, flush=True)
            self._write(text)

    def program(self, command, ended):
        how = f"ended with {ended.code}" if not ended.why else ended.why
        with self._lock:
            self._write(f"$ {' '.join(map(str, command))[:1000]}\n{excerpt(ended.output, 16384, 16384)}\n{how} after {ended.seconds:.1f} s\n")

    def _write(self, text):
        self._file.write(text + "\n")
        self._file.flush()


class Programs:
    """Runs programs while `budget` lasts. Any thread."""

    def __init__(self, log, environment=None, clock=time.monotonic):
        self.budget = Budget(clock=clock)
        self.environment = dict(os.environ) if environment is None else environment
        self._log = log
        self._clock = clock
        self._running = set()
        self._stopped = False

    def call(self, *command, cap=3600, silence=None, environment=None, folder=None):
        """Runs a program, with its own variables or those of `environment`. It is ended after `cap` seconds, when no time is left, or when it
        has printed nothing for `silence` seconds. Of what it has started nothing runs on, however it ended."""
        command = [str(word) for word in command]
        seconds = min(cap, self.budget.left())
        if seconds < LEAST_SECONDS:
            return Ended(None, "", 0, "budget")
        begin = self._clock()
        descendants = Descendants()
        # A file takes what the program prints whether it is read or not, and keeps it however the program ends.
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                           env=(environment or self.environment) | descendants.environment, cwd=folder)
            except OSError as error:
                return Ended(None, str(error), 0, "not started")
            self._running.add(process)
            if self._stopped:  # while it was begun
                _kill(process, signal.SIGKILL)
            try:
                why = _wait(process, self._clock, begin + seconds, output, silence)
            finally:
                left = _end(process, descendants)
                self._running.discard(process)
            output.seek(0)
            text = output.read().decode(errors="replace")
        ended = Ended(None if why else process.returncode, text, self._clock() - begin, why)
        self._log.program(command, ended)
        if left:
            self._log.say(f"of {command[0]}, which has ended, {len(left)} processes do not: {left[:20]}")
        return ended

    def stop(self):
        """Kills what runs, and begins nothing more."""
        self.budget = Budget(0, self._clock)
        self._stopped = True
        for process in list(self._running):
            _kill(process, signal.SIGKILL)

    def stop_on_signals(self):
        """So that nothing runs on when this process is ended."""
        def handle(number, _):
            self.stop()
            sys.exit(128 + number)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, handle)


def _wait(process, clock, end, output, silence):
    """Until it has ended; else why it is to be ended."""
    size, since = 0, clock()
    while True:
        try:
            process.wait(0.1)
            return ""
        except subprocess.TimeoutExpired:
            pass
        now = clock()
        grown = os.fstat(output.fileno()).st_size
        if grown != size:
            size, since = grown, now
        if now >= end:
            return "timeout"
        if silence is not None and now - since >= silence:
            return "silence"


def _kill(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


def _end(process, descendants):
    """Which of its descendants could not be ended: pids."""
    if process.returncode is None:
        descendants.look(process.pid)
        _kill(process, signal.SIGTERM)
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            descendants.look(process.pid)
    # What it had started may outlive it, all the more where it crashed.
    _kill(process, signal.SIGKILL)
    process.wait()
    return descendants.end()

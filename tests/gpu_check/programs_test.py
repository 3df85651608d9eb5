"""How programs are run: under a budget, and with what they printed kept."""
import math
import os
import sys
import time

import pytest

from programs import Budget, Log, Programs, excerpt, first_warnings


@pytest.fixture
def programs(tmp_path):
    return Programs(Log(tmp_path / "log.txt"))


def python(programs, code, **options):
    return programs.call(sys.executable, "-c", code, **options)


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_a_budget_runs_out():
    clock = Clock()
    budget = Budget(10, clock)
    assert budget.left() == 10
    clock.now += 4
    assert budget.left() == 6
    assert budget.but_for(5).left() == 1
    assert budget.but_for(7).left() == 0


def test_without_seconds_there_is_no_end():
    assert Budget().left() == math.inf
    assert Budget().but_for(5).left() == math.inf


def test_a_program_has_its_environment(programs):
    ended = python(programs, "import os; print(os.environ['WORD'])", environment={**os.environ, "WORD": "one"})
    assert (ended.code, ended.output, ended.why) == (0, "one\n", "")
    programs.environment["WORD"] = "two"
    assert python(programs, "import os; print(os.environ['WORD'])").output == "two\n"


def test_both_streams_are_kept_with_whatever_is_in_them(programs):
    ended = python(programs, "import sys; sys.stdout.buffer.write(b'\\xff out'); sys.stdout.flush(); sys.exit('err')")
    assert (ended.code, ended.output) == (1, "\ufffd outerr\n")
    assert ended.entry() == {"exit": 1, "seconds": round(ended.seconds, 1), "output": ended.output}


def test_what_was_printed_before_the_time_was_up_is_kept(programs, tmp_path):
    ended = python(programs, "import time; print('begun', flush=True); time.sleep(60)", cap=5)
    assert (ended.code, ended.output, ended.why) == (None, "begun\n", "timeout")
    assert ended.entry() == {"exit": None, "seconds": round(ended.seconds, 1), "ended_by": "timeout", "output": "begun\n"}
    assert "begun\n" in (tmp_path / "log.txt").read_text()


def test_what_is_left_of_the_budget_is_a_cap_too(programs):
    programs.budget = Budget(2.5)
    begin = time.monotonic()
    assert python(programs, "import time; time.sleep(60)").why == "timeout"
    assert time.monotonic() - begin < 20
    ended = python(programs, "print('never')")
    assert (ended.why, ended.output) == ("budget", "")
    assert ended.entry() == {"not_run": "budget"}


def test_what_a_program_has_started_ends_with_it(programs, tmp_path):
    # Neither of the two heeds being asked.
    child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    code = (f"import signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
            f"child = subprocess.Popen([sys.executable, '-c', {child!r}]); open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid)); child.wait()")
    assert python(programs, code, cap=8).output == "deaf\n"
    state = f"/proc/{(tmp_path / 'pid').read_text()}/stat"
    for _ in range(100):
        if not os.path.exists(state) or open(state).read().split()[2] == "Z":
            return
        time.sleep(0.1)
    assert False, "it runs on"


def test_who_prints_nothing_for_long_is_ended(programs):
    assert python(programs, "import time; print('on', flush=True); time.sleep(60)", silence=2).why == "silence"


def test_what_is_not_there_is_not_started(programs):
    ended = programs.call("/nowhere/program")
    assert (ended.code, ended.why) == (None, "not started")
    assert "/nowhere/program" in ended.output


def test_after_a_stop_nothing_is_begun(programs):
    programs.stop()
    assert python(programs, "print('never')").why == "budget"


def test_an_excerpt_has_both_ends():
    assert excerpt("short") == "short"
    assert excerpt("a" * 10 + "b" * 50 + "c" * 10, 10, 10) == "a" * 10 + "\n[... 50 characters ...]\n" + "c" * 10


def test_the_first_warnings():
    text = ("2026-11-26T03:11:55.054Z I worker-0 taking part\n2026-11-26T03:11:55.055Z W worker-0 the file of plans is not used\n"
            "2026-11-26T03:11:55.055Z E worker-0 lost\nfoo.cc: warning: unused\n")
    assert first_warnings(text) == text.splitlines()[1:]
    assert len(first_warnings("warning\n" * 30)) == 20

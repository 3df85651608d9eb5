"""How programs are run: under a budget, and with what they printed kept."""
import concurrent.futures
import math
import os
import signal
import sys

import pytest

import descendants
from programs import LEAST_SECONDS, Budget, excerpt, first_warnings
from real_cluster import wait_for


def python(programs, code, **options):
    return programs.call(sys.executable, "-c", code, **options)


def begins(sign):
    """The code of a program that says so, and who it is."""
    return f"import os, time; open({str(sign)!r}, 'w').write(str(os.getpid()))"


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pid):
    return wait_for(lambda: not runs(pid), "it ends", 30)


def test_a_budget_runs_out(clock):
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


def test_output_before_the_time_was_up_is_kept(programs, sign, passing, tmp_path):
    ended = passing(5, python, programs, f"print('begun', flush=True); {begins(sign)}; time.sleep(120)", cap=5)
    assert (ended.code, ended.output, ended.why) == (None, "begun\n", "timeout")
    assert ended.entry() == {"exit": None, "seconds": 5, "ended_by": "timeout", "output": "begun\n"}
    assert "begun\n" in (tmp_path / "log.txt").read_text()


def test_the_rest_of_the_budget_is_a_cap_too(programs, clock, sign, passing):
    programs.budget = Budget(10, clock)
    assert passing(10, python, programs, f"{begins(sign)}; time.sleep(120)").why == "timeout"
    programs.budget = Budget(LEAST_SECONDS, clock)
    assert python(programs, "print('once')").output == "once\n"
    clock.now += 0.5
    ended = python(programs, "print('never')")
    assert (ended.why, ended.output) == ("budget", "")
    assert ended.entry() == {"not_run": "budget"}


def test_children_of_a_program_end_with_it(programs, sign, passing, monkeypatch):
    monkeypatch.setattr("programs.PATIENCE_SECONDS", 0.1)
    # Neither of the two ends on request.
    child = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); {begins(sign)}; time.sleep(120)"
    code = f"import signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); subprocess.run([sys.executable, '-c', {child!r}])"
    assert passing(8, python, programs, code, cap=8).output == "deaf\n"
    assert ends(sign.read_text())


@pytest.mark.parametrize("end, code", [("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL), ("sys.exit(3)", 3)])
def test_children_that_a_program_leaves_behind_are_ended(programs, tmp_path, end, code):
    pid = tmp_path / "pid"
    ended = python(programs, "import os, pathlib, signal, subprocess, sys; child = subprocess.Popen(['sleep', '120']); "
                             f"pathlib.Path({str(pid)!r}).write_text(str(child.pid)); {end}")
    assert (ended.code, ended.why) == (code, "")
    assert ends(pid.read_text())


@pytest.fixture
def adopting():
    descendants.adopt_orphans()
    yield
    descendants.adopt_orphans(False)


def starts_apart(sign, variables="None"):
    """The code of a program that starts one in a session of its own, which does not heed being asked, and says so when that has begun."""
    child = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {begins(sign)}; time.sleep(120)"
    return ("import os, signal, subprocess, sys, threading; "
            f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True, env={variables}); sign = {str(sign)!r}\n"
            "while not (os.path.exists(sign) and os.path.getsize(sign)): threading.Event().wait(0.01)\n")


@pytest.mark.parametrize("end", ["sys.exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_children_outside_the_group_end_before_the_call(programs, sign, end):
    assert python(programs, starts_apart(sign) + end).why == ""
    assert not runs(sign.read_text())


def test_orphans_are_waited_for(programs, sign, adopting):
    assert python(programs, starts_apart(sign)).code == 0
    assert not os.path.exists(f"/proc/{sign.read_text()}")


@pytest.mark.parametrize("variables", ["None", "{}"])
def test_children_outside_the_group_end_with_their_program(programs, sign, passing, variables):
    code = starts_apart(sign, variables) + "signal.pause()"
    assert passing(8, python, programs, code, cap=8).why == "timeout"
    assert not runs(sign.read_text())


def test_processes_of_others_run_on(programs, sign, tmp_path):
    other = tmp_path / "other"
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        result = pool.submit(python, programs, starts_apart(other) + f"while not os.path.exists({str(sign)!r}): threading.Event().wait(0.01)")
        try:
            wait_for(lambda: result.done() or (other.exists() and other.read_text()), "the other begins", 60)
            assert python(programs, "print('short')").code == 0
            assert runs(other.read_text())
        finally:
            sign.write_text("end")
        assert result.result(60).code == 0
    assert not runs(other.read_text())


def test_a_process_that_cannot_be_ended_is_named(programs, sign, monkeypatch, tmp_path):
    monkeypatch.setattr("descendants.PATIENCE_SECONDS", 0)
    monkeypatch.setattr("descendants._kill", lambda pid: None)
    ended = python(programs, starts_apart(sign))
    os.kill(int(sign.read_text()), signal.SIGKILL)
    assert ended.code == 0
    assert f"1 processes do not: [{sign.read_text()}]" in (tmp_path / "log.txt").read_text()


def test_a_silent_program_is_ended(programs, sign, passing):
    ended = passing(2, python, programs, f"{begins(sign)}; time.sleep(120)", silence=2)
    assert (ended.why, ended.seconds) == ("silence", 2)


def test_a_missing_program_is_not_started(programs):
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

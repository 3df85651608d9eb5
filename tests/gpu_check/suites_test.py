"""What is made of what googletest prints, also when a test crashes or hangs."""
import pathlib
import stat
import sys
import types

import pytest

import suites
from programs import Budget, Ended
from suites import filter_of, read_tests, run_alone, run_program

# A program of four tests, one of which crashes and one of which fails only among others.
PROGRAM = f"""#!{sys.executable}
import fnmatch, os, sys
wanted = next((word.split("=", 1)[1] for word in sys.argv if word.startswith("--gtest_filter=")), "*")
positive, _, negative = wanted.partition("-")
named = lambda name, patterns: any(fnmatch.fnmatchcase(name, each) for each in patterns.split(":") if each)
tests = [name for name in ("A.First", "A.Crashes", "A.Fails", "B/C.Skips/x_1") if named(name, positive) and not named(name, negative)]
print(f"[==========] Running {{len(tests)}} tests from 1 test suite.")
failed = []
for name in tests:
    print("[ RUN      ]", name, flush=True)
    if name.endswith("Crashes"):
        os.abort()
    if name.endswith("Fails") and len(tests) > 1:
        print("file.cc:3: Failure\\nnot equal")
        print("[  FAILED  ]", name, "(0 ms)")
        failed.append(name)
    elif "Skips" in name:
        print("file.cc:9: Skipped\\nNo GPU here: none\\n")
        print("[  SKIPPED ]", name, "(0 ms)")
    else:
        print("[       OK ]", name, "(0 ms)")
print(f"[==========] {{len(tests)}} tests from 1 test suite ran. (0 ms total)")
for name in failed:
    print("[  FAILED  ]", name)
sys.exit(1 if failed else 0)
"""


@pytest.fixture
def session(programs):
    return types.SimpleNamespace(on_gpu=False, call=programs.call, save=lambda: None)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "a_test"
    path.write_text(PROGRAM)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_goes_on_after_a_crash(session, program):
    entry = run_program(session, program)
    assert entry["ok"] is False
    assert (entry["ran"], entry["failed"], entry["crashed"], entry["skipped"]) == (4, ["A.Fails"], ["A.Crashes"], 1)
    assert entry["skipped_because"] == ["No GPU here: none"]
    assert entry["texts"] == {"A.Fails": "file.cc:3: Failure\nnot equal\n", "A.Crashes": ""}
    assert len(entry["output"]) == 2


def test_a_failure_among_others_may_pass_alone(session, program):
    assert run_alone(session, program, "A.Fails") == "passes"
    assert run_alone(session, program, "A.Crashes") == "fails with -6"


def test_all_right(session, program):
    entry = run_program(session, program, "A.First:B*")
    assert entry["ok"] is True and entry["ran"] == 2 and "output" not in entry


def test_a_filter_that_names_nothing_is_wrong(session, program):
    entry = run_program(session, program, "*/cuda_*")
    assert (entry["ok"], entry["exit"], entry["ran"]) == (False, 0, 0)
    assert "0 tests" in entry["output"][0]


def test_a_suite_beyond_the_budget_is_neither_right_nor_wrong(session, programs, clock, sign, passing, program):
    program.write_text(f"#!{sys.executable}\nimport time\nprint('[ RUN      ] A.Long', flush=True)\n"
                       f"open({str(sign)!r}, 'w').write('begun')\ntime.sleep(120)\n")
    programs.budget = Budget(12, clock)
    entry = passing(12, run_program, session, program)
    assert (entry["ok"], entry["ended_by"], entry["out_of_time"], entry["seconds"]) == (None, "timeout", ["A.Long"], 12)
    assert entry["output"] == ["[ RUN      ] A.Long\n"]
    assert run_program(session, program) == {"program": "a_test", "ok": None, "not_run": "budget"}


def session_of(*endings):
    """One whose programs end so, in this order."""
    endings = list(endings)
    return types.SimpleNamespace(on_gpu=True, call=lambda *_, **__: endings.pop(0), save=lambda: None)


def test_a_hanging_case_is_wrong_and_the_rest_is_run():
    entry = run_program(session_of(Ended(None, "[ RUN      ] A.Hangs\n", 60, "silence"),
                                   Ended(0, "[ RUN      ] A.First\n[       OK ] A.First (0 ms)\n", 1)), pathlib.Path("a_test"))
    assert entry["ok"] is False and entry["hung"] == ["A.Hangs"] and entry["ran"] == 2


def test_a_case_out_of_time_is_neither_right_nor_wrong():
    entry = run_program(session_of(Ended(None, "[ RUN      ] A.Long\n", 90, "timeout")), pathlib.Path("a_test"))
    assert entry["ok"] is None and entry["out_of_time"] == ["A.Long"] and entry["ended_by"] == "timeout"
    assert run_program(session_of(Ended(None, "", 0, "budget")), pathlib.Path("a_test")) == {"program": "a_test", "ok": None, "not_run": "budget"}


def test_a_suite_that_does_not_start_is_wrong():
    entry = run_program(session_of(Ended(127, "error while loading shared libraries", 0)), pathlib.Path("a_test"))
    assert entry["ok"] is False and entry["output"] == ["error while loading shared libraries"]


def test_reading_ends_where_the_tests_do():
    tests = read_tests("[ RUN      ] A.B/0\ntext\n[  FAILED  ] A.B/0, where GetParam() = 1 (2 ms)\n"
                       "[==========] 1 test from 1 test suite ran. (2 ms total)\n"
                       "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.B/0, where GetParam() = 1\n")
    assert {name: (test.state, test.text) for name, test in tests.items()} == {"A.B/0": ("failed", "text\n")}


def test_filters():
    assert filter_of("*", []) == "--gtest_filter=*"
    assert filter_of("*", ["A.B"]) == "--gtest_filter=*-A.B"
    assert filter_of("*/cuda_*-*/cuda_on_cpu_*", ["A.B", "C.D"]) == "--gtest_filter=*/cuda_*-*/cuda_on_cpu_*:A.B:C.D"


def test_on_a_gpu_none_may_be_missing(session, program, tmp_path, monkeypatch):
    folder = tmp_path / "bundle/tests"
    folder.mkdir(parents=True)
    program.rename(folder / program.name)
    monkeypatch.setattr(suites, "HERE", tmp_path / "bundle")
    monkeypatch.setattr(suites, "GPU_TESTS", {"a_test": ["A.First", "B*"]})
    entry = {}
    session.on_gpu = True
    suites.check_tests(session, entry)
    assert [(each["tests"], each["ok"], each["ran"]) for each in entry["programs"]] == [("A.First", True, 1), ("B*", True, 1)]
    assert entry["ok"] is False


def test_those_that_failed_are_run_alone(session, program, tmp_path, monkeypatch):
    folder = tmp_path / "bundle/tests"
    folder.mkdir(parents=True)
    program.rename(folder / program.name)
    monkeypatch.setattr(suites, "HERE", tmp_path / "bundle")
    entry = {}
    suites.check_tests(session, entry)
    assert entry["programs"][0]["alone"] == {"A.Fails": "passes", "A.Crashes": "fails with -6"}
    assert entry["ok"] is False

"""The programs that check kernels and ops, which are googletest's."""
import concurrent.futures
import dataclasses
import re

from programs import excerpt
from session import HERE

FIRST = "op_conformance_test"
# What of a program's tests is for a GPU, where not all is, in parts that run at once.
GPU_TESTS = {"op_conformance_test": ["*/cuda_*:OpCasesTest.*-*/cuda_on_cpu_*:*InBfloat16/*:*InFloat16/*", "*InBfloat16/cuda_*-*/cuda_on_cpu_*",
                                     "*InFloat16/cuda_*-*/cuda_on_cpu_*"]}
# Nothing is timed: a GPU and its machine have room for several.
AT_ONCE = 6
CAP_SECONDS = 240
# A test that prints nothing for so long hangs: on a GPU a convolution's engines are tried out first.
SILENCE_SECONDS = 60
MOST_CRASHES = 5
MOST_TEXTS = 10
MOST_ALONE = 30

LINE = re.compile(r"\[\s*(RUN|OK|FAILED|SKIPPED)\s*\] ([\w/]+\.[\w/]+)")


@dataclasses.dataclass
class Test:
    """One that was begun: "ok", "failed", "skipped", or why it did not end."""
    state: str = "crashed"
    text: str = ""


def read_tests(output):
    """{name: Test} of what a program of googletest printed, to its end or not."""
    tests, current = {}, None
    for line in output.splitlines(keepends=True):
        found = LINE.search(line)
        if found and found[1] == "RUN":
            current = tests[found[2]] = Test()
        elif found and current is not None and tests.get(found[2]) is current:
            current.state = found[1].lower()
            current = None
        elif current is not None:
            current.text += line
        elif re.match(r"\[=+\] .* ran\.", line):
            break
    return tests


def filter_of(wanted, without):
    """googletest's filter of the tests that `wanted` names but for those in `without`."""
    positive, _, negative = wanted.partition("-")
    negative = ":".join(filter(None, [negative, *without]))
    return f"--gtest_filter={positive}-{negative}" if negative else f"--gtest_filter={positive}"


def run_program(session, program, wanted="*"):
    """Its entry in the report. Where a test crashes or hangs, the program goes on with those that are left."""
    cap = CAP_SECONDS if session.on_gpu else 3600
    tests, broken, outputs, seconds = {}, 0, [], 0
    while True:
        ended = session.call(program, filter_of(wanted, tests), cap=cap - seconds, silence=SILENCE_SECONDS if session.on_gpu else None)
        if ended.why == "budget" and not outputs:
            return {"program": program.name, "ok": None, "not_run": "budget"}
        outputs.append(ended.output)
        seconds += ended.seconds
        begun = read_tests(ended.output)
        unfinished = [test for test in begun.values() if test.state == "crashed"]
        for test in unfinished:
            test.state = {"timeout": "out of time", "silence": "hung"}.get(ended.why, "crashed")
        tests |= begun
        broken += 1
        if ended.code in (0, 1) or ended.why in ("timeout", "budget", "not started") or not unfinished or broken > MOST_CRASHES:
            break
    return entry_of(program, tests, ended, outputs) | {"tests": wanted, "seconds": round(seconds, 1)}


def entry_of(program, tests, ended, outputs):
    names = {state: [name for name, test in tests.items() if test.state == state]
             for state in ("failed", "crashed", "hung", "out of time", "skipped")}
    wrong = names["failed"] + names["crashed"] + names["hung"]
    reasons = [skip_reason(tests[name].text) for name in names.pop("skipped")]
    if wrong:
        right = False
    else:
        # A program of which the filter names nothing ends well, too.
        right = None if ended.why in ("timeout", "budget") else ended.code == 0 and bool(tests)
    entry = {"program": program.name, "ok": right, "exit": ended.code, "ran": len(tests), "skipped": len(reasons),
             "skipped_because": sorted(set(reasons))}
    entry |= {state.replace(" ", "_"): these for state, these in names.items() if these}
    if ended.why:
        entry["ended_by"] = ended.why
    if wrong:
        entry["texts"] = {name: tests[name].text[:1500] for name in wrong[:MOST_TEXTS]}
    if not right:
        entry["output"] = [excerpt(output) for output in outputs]
    return entry


def skip_reason(text):
    lines = text.splitlines() or [""]
    return next((line for line in lines if "GPU" in line), lines[-1])


def run_alone(session, program, test):
    """Whether a test that failed among others fails by itself, too."""
    ended = session.call(program, f"--gtest_filter={test}", cap=60, silence=SILENCE_SECONDS)
    return "passes" if ended.code == 0 else ended.why or f"fails with {ended.code}"


def check_tests(session, entry):
    """Fills in `entry`."""
    programs = sorted((HERE / "tests").iterdir(), key=lambda program: (program.name != FIRST, program.name))
    parts = [(program, wanted) for program in programs for wanted in (GPU_TESTS.get(program.name, ["*"]) if session.on_gpu else ["*"])]
    results = entry["programs"] = [{"program": program.name, "ok": None, "not_run": "budget"} for program, _ in parts]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE if session.on_gpu else 1) as pool:
        running = {pool.submit(run_program, session, program, wanted): i for i, (program, wanted) in enumerate(parts)}
        for done in concurrent.futures.as_completed(running):
            results[running[done]] = done.result()
            session.save()
        wrong = [(result, program, test) for result, (program, _) in zip(results, parts) for state in ("failed", "crashed", "hung")
                 for test in result.get(state, [])][:MOST_ALONE]
        for (result, _, test), ended in zip(wrong, pool.map(lambda each: run_alone(session, *each[1:]), wrong)):
            result.setdefault("alone", {})[test] = ended
            session.save()
    # Tests that need a GPU skip themselves where it cannot be used; here it is what is to be tested.
    without = [reason for result in results for reason in result.get("skipped_because", []) if reason.startswith("No GPU")]
    states = [result["ok"] for result in results]
    entry["ok"] = False if False in states or (without and session.on_gpu) else None if None in states else True

"""compute-sanitizer over the suites of ops and kernels."""
import collections
import concurrent.futures
import glob
import os
import pathlib
import re
import shutil
import sys
import tempfile

import suites
from programs import excerpt
from session import HERE

TOOLS = ("memcheck", "racecheck", "initcheck")
# What of a program's tests has kernels run on the GPU; the suite of ops has nearly all of them.
TESTS = {"op_conformance_test": "*/cuda_*-*/cuda_on_cpu_*", "residual_blocks_test": "*cuda*:*Cuda*-*cuda_on_cpu*", "cuda_convolutions_test": "*",
         "cuda_kernels_test": "*"}
# Its tests have managed memory, of which initcheck does not know what the host has written.
NOT_OF_INITCHECK = {"cuda_kernels_test"}
AT_ONCE = 4
CAP_SECONDS = 120
FOUND = 9

# "========= Invalid __global__ write of size 4 bytes", which begins an error, and what follows has more spaces.
HEADLINE = re.compile(r"^========= (?! |COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY|LEAK SUMMARY|Target application|No attachable|"
                      r"Error: process)(.+)$")
# "=========     at void shoal::cuda::…(…)+0x70 in file.cu:12", "========= Error: Race reported between Write access at void …"
KERNEL = re.compile(r"\bat (?:0x[0-9a-f]+ in )?(.*?)(?:\+0x[0-9a-f]+.*)?$")
# What follows is of the process that called, and names no kernel; of a kernel's own lines one may name a file in a folder "host".
OF_HOST = re.compile(r"^=========\s+(?:Saved )?host (?:backtrace|frame)\b", re.IGNORECASE)
SUMMARY = re.compile(r"^========= (?:ERROR|RACECHECK) SUMMARY: .*", re.MULTILINE)


def find_program(python):
    """compute-sanitizer on the PATH, in CUDA's folders or in a Python package of NVIDIA's; None where there is none."""
    on_path = shutil.which("compute-sanitizer")
    if on_path:
        return on_path
    folders = [*sys.path, *glob.glob(f"{pathlib.Path(python).parent.parent}/lib/python3*/site-packages")]
    packages = [f"{folder}/nvidia/*/bin/compute-sanitizer" for folder in folders]
    places = ["/usr/local/cuda*/bin/compute-sanitizer", "/usr/local/cuda*/compute-sanitizer/compute-sanitizer",
              "/opt/nvidia/*/*/compute-sanitizer", *packages]
    return next((found for place in places for found in sorted(glob.glob(place)) if os.access(found, os.X_OK) and os.path.isfile(found)), None)


def count_errors(text):
    """What compute-sanitizer wrote: {kernel, or what was said where no kernel is named: how many errors}, and the same of warnings."""
    errors, warnings = collections.Counter(), collections.Counter()
    headline = None

    def count(kernel):
        nonlocal headline
        if headline is not None:
            (warnings if headline.startswith("Warning") else errors)[kernel] += 1
        headline = None

    for line in text.splitlines():
        found = HEADLINE.match(line)
        if found:
            count(headline)
            headline = found[1]
        if headline is None or not line.startswith("=========") or OF_HOST.match(line):
            continue
        # A race's headline names the kernel itself; of other errors the next line does.
        kernel = KERNEL.search(line) if not found or "access at" in line else None
        if kernel:
            count(kernel[1].strip()[:300])
    count(headline)
    return dict(errors), dict(warnings)


def split_errors(errors):
    """(those of our kernels, those of NVIDIA's libraries and of calls)"""
    ours = {name: count for name, count in errors.items() if "shoal::" in name}
    return ours, {name: count for name, count in errors.items() if name not in ours}


class Sanitizer:
    def __init__(self, session, program):
        self._session = session
        self._program = program
        # Of a race in NVIDIA's libraries we could do nothing, and looking takes long. What initcheck does not watch it takes for not written.
        names = "--kernel-name" in session.call(program, "--help", cap=30).output
        self._flags = {"racecheck": ["--kernel-name", "kns=shoal"] if names else []}

    def run(self, tool, test):
        """The entry of one tool over one program, in several processes at once."""
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool, tempfile.TemporaryDirectory() as folder:
            logs = [pathlib.Path(folder) / f"{shard}.txt" for shard in range(AT_ONCE)]
            ended = list(pool.map(lambda shard: self._run_shard(tool, test, shard, logs[shard]), range(AT_ONCE)))
            written = [log.read_text(errors="replace") if log.exists() else "" for log in logs]
        return judge(tool, test, ended, written)

    def _run_shard(self, tool, test, shard, log):
        environment = self._session.programs.environment | {"GTEST_TOTAL_SHARDS": str(AT_ONCE), "GTEST_SHARD_INDEX": str(shard)}
        return self._session.call(self._program, "--tool", tool, "--error-exitcode", FOUND, "--print-limit", 20, "--log-file", log,
                                  *self._flags.get(tool, []), HERE / "tests" / test, f"--gtest_filter={TESTS[test]}", cap=CAP_SECONDS,
                                  environment=environment)


def judge(tool, test, ended, written):
    """The entry of a tool's run over a program: `ok` where all of it has run, and nothing was found in a kernel of ours."""
    entry = {"tool": tool, "program": test}
    if all(shard.why == "budget" for shard in ended):
        return entry | {"ok": None, "not_run": "budget"}
    everything = "\n".join(written + [shard.output for shard in ended])
    errors, warnings = count_errors("\n".join(written))
    ours, others = split_errors(errors)
    tests = [each for shard in ended for each in suites.read_tests(shard.output).values()]
    ran = sum(each.state in ("ok", "failed") for each in tests)
    entry |= {"ours": ours, "others": others, "warnings": warnings, "ran": ran, "failed_tests": sum(each.state == "failed" for each in tests),
              "exits": [shard.why or shard.code for shard in ended], "seconds": round(max(shard.seconds for shard in ended), 1),
              "summaries": [line for text in written for line in SUMMARY.findall(text)]}
    # Of a program without a test for each process some processes have none.
    unfinished = [shard for shard in ended if shard.code not in (0, 1, FOUND)]
    if ours:
        entry["ok"] = False
    elif "Device not supported" in everything:
        entry |= {"ok": None, "why": "compute-sanitizer says that it does not support this device"}
    elif unfinished or ran == 0 or not any(entry["summaries"]):
        entry |= {"ok": None, "why": f"{len(unfinished)} of {len(ended)} processes did not end by themselves" if unfinished else "nothing ran"}
    else:
        entry["ok"] = True
    if entry["ok"] is not True:
        entry["output"] = excerpt(everything, 6000, 2000)
    return entry


def check_sanitizer(session, entry):
    """Fills in `entry`."""
    program = find_program(session.arguments.python)
    if program is None:
        entry["why"] = "there is no compute-sanitizer on this machine"
        return
    entry["sanitizer"] = program
    sanitizer = Sanitizer(session, program)
    runs = entry["runs"] = []
    for test in TESTS:
        for tool in TOOLS:
            if (HERE / "tests" / test).exists() and not (tool == "initcheck" and test in NOT_OF_INITCHECK):
                runs.append(sanitizer.run(tool, test))
                session.save()
    states = [run["ok"] for run in runs]
    entry["ok"] = False if False in states else None if None in states or not states else True

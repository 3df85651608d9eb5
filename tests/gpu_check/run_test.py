"""All of a check, of programs that stand in for Shoal's and NVIDIA's: what it writes and how it ends, whatever they do."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import types

import pytest

from programs import Budget

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
SHOAL = """
import json, os, pathlib, sys, threading, time
words = sys.argv[1:]
if "SHOAL_SAYS" in os.environ:
    sys.exit(os.environ["SHOAL_SAYS"])
if words[:2] == ["bench", "model"]:
    print(json.dumps({"examples_per_second": 8000.0, "step_seconds": [0.03], "device_seconds": 0.029, "op_seconds": {"Conv2D": 0.02, "copies": 0.01},
                      "op_values": {"Conv2D": 10**9}, "op_multiply_adds": {"Conv2D": 10**12}}))
elif words[:2] == ["model", "verify"]:
    print("tensor  largest relative error  tolerance\\noutput  2.0e-05  1.0e-04  ok")
elif words[0] == "train":
    job = json.loads(pathlib.Path(words[1]).read_text())
    run = pathlib.Path(words[words.index("--run_dir") + 1])
    run.mkdir()
    # The samples are of the time in which it trains: it does until there is one.
    sampled = pathlib.Path(os.environ["SAMPLED"])
    deadline = time.monotonic() + 60
    while job["name"] == "idle" and "cpu" not in words and not sampled.exists():
        if time.monotonic() > deadline:
            sys.exit("nvidia-smi prints nothing")
        threading.Event().wait(0.01)
    # The first two epochs are slow.
    lines = [f"{epoch},0.92,{40 * (0.03 if epoch >= 2 else 0.3)}" for epoch in range(job["epochs"])]
    (run / "logs").mkdir()
    (run / "logs/worker-0.log").write_text("2026-11-26T06:59:16.575Z I worker-0 where the time of its steps went steps=200 step_ms=30.50\\n")
    (run / "history.csv").write_text("epoch,val_accuracy,seconds\\n" + "\\n".join(lines) + "\\n")
    print("the worker computes on", words[words.index("--device") + 1])
"""
PYTORCH = """
import json, pathlib, sys
pathlib.Path(sys.argv[1]).write_text(json.dumps({"examples_per_second": 7900.0, "mode": "default", "compiled": True}))
"""
TEST = """
import time
print("[ RUN      ] A.B\\n[       OK ] A.B (0 ms)\\n[==========] 1 test from 1 test suite ran. (0 ms total)")
"""
SMI = """
import os, sys, time
words = " ".join(sys.argv[1:])
if "-q -d" in words:
    print("CUDA Version                              : 13.0")
elif "--query-gpu=timestamp" in words:
    while True:
        print("2026/11/13 10:00:00.1, 90 %, 1980 MHz, 600.00 W, 100 MiB", flush=True)
        open(os.environ["SAMPLED"], "w").close()
        time.sleep(0.2)
else:
    print("NVIDIA H100 80GB HBM3")
"""
SANITIZER = """
import subprocess, sys
words = sys.argv[1:]
if words == ["--help"]:
    sys.exit()
log = words[words.index("--log-file") + 1]
open(log, "w").write("========= COMPUTE-SANITIZER\\n========= ERROR SUMMARY: 0 errors\\n")
sys.exit(subprocess.run(words[words.index("--log-file") + 2:]).returncode)
"""
MODEL = {"config": {"layers": [{"class_name": "Dense", "config": {"units": 10}}]}}


def load(path):
    """The module that a script is."""
    loader = importlib.machinery.SourceFileLoader(path.name.replace("-", "_") + "_script", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def write_program(path, code):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{code}")
    path.chmod(0o755)


@pytest.fixture(scope="module")
def scripts():
    """What scripts/gpu-check puts into a bundle."""
    return load(SOURCE / "scripts/gpu-check")


class Bundle:
    def __init__(self, folder, scripts):
        self.here = folder / "gpu-check"
        self.out = folder / "out"
        self.environment = {**os.environ, "PATH": f"{folder / 'nvidia'}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1",
                            "SAMPLED": str(folder / "sampled")}
        self.here.mkdir()
        for script in scripts:
            shutil.copy(script, self.here)
        write_program(self.here / "torch_bench.py", PYTORCH)
        write_program(self.here / "bin/shoal", SHOAL)
        write_program(self.here / "tests/op_conformance_test", TEST)
        write_program(folder / "nvidia/nvidia-smi", SMI)
        write_program(folder / "nvidia/compute-sanitizer", SANITIZER)
        (self.here / "golden/mlp").mkdir(parents=True)
        (self.here / "golden/mlp/case.json").write_text("{}")
        (self.here / "models").mkdir()
        for name in ("fashion_mnist", "mobilenet_v2", "resnet50"):
            (self.here / f"models/{name}.json").write_text(json.dumps(MODEL))
        (self.here / "job.json").write_text(json.dumps({"name": "fashion_mnist", "data": {}}))
        (self.here / "build.json").write_text(json.dumps({"commit": "0123"}))

    def start(self, *words, **variables):
        return subprocess.Popen([self.here / "run", "--out", self.out, *words], env={**self.environment, **variables}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def run(self, *words, **variables):
        """(exit code, what it printed, the report)"""
        process = self.start(*words, **variables)
        printed = process.communicate(timeout=120)[0]
        return process.returncode, printed, self.report()

    def report(self):
        return json.loads((self.out / "report.json").read_text())


@pytest.fixture
def bundle(tmp_path, scripts):
    return Bundle(tmp_path, scripts.scripts())


def command_lines():
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().decode(errors="replace")
        except OSError:
            pass


def test_a_gpu_on_which_all_is_well(bundle):
    code, printed, report = bundle.run("--batch_size", "1")
    parts = ["tests", "golden", "bench", "idle", "cluster", "several", "sanitizer"]
    assert {part: report[part]["ok"] for part in parts} == dict.fromkeys(parts, True), printed
    assert report["bench"]["models"][0]["shoal_bfloat16"]["shares"]["other"] == {"copies": 0.01}
    assert report["bench"]["models"][0]["shoal_bfloat16"]["shares"]["step"]["bandwidth"] == round(2e9 / 0.03 / 3.35e12, 3)
    # Of a part as short as this one there may be no sample.
    assert report["idle"]["gpu"].get("power.draw", {"median": 600})["median"] == 600
    assert report["idle"]["worker_steps"] == [{"steps": 200, "step_ms": 30.5}] and "of that worker's steps: steps 200, step_ms 30.5\n" in printed
    assert report["idle"]["computed_seconds_are"] == "device_seconds" and 0 < report["idle"]["idle_share"] < 0.1
    assert report["golden"]["cases"]["mlp"]["largest_error"] == {"tensor": "output", "of_tolerance": 0.2}
    assert {run["tool"] for run in report["sanitizer"]["runs"]} == {"memcheck", "racecheck", "initcheck"}
    assert report["tests"]["build"] == {"commit": "0123"} and report["tests"]["machine"] == "NVIDIA H100 80GB HBM3"
    assert [each["holds"] for each in report["sentences"]] == [True] * 8, printed
    assert code == 0
    assert printed.endswith((bundle.out / "log.txt").read_text()[-500:])


def test_without_a_gpu(bundle):
    code, printed, report = bundle.run("--device", "cpu", "--batch_size", "1", "--epochs", "1")
    assert code == 0 and "sanitizer" not in report, printed
    assert [each["holds"] for each in report["sentences"]] == [True] * 2 + [None] * 6


def test_no_driver_makes_a_report_too(bundle):
    code, printed, report = bundle.run(SHOAL_SAYS="shoal: there is no NVIDIA driver on this machine: install one")
    assert code == 2
    assert "no NVIDIA driver" in printed and "no NVIDIA driver" in report["preflight"]["stop"]
    assert report["tests"]["not_run"] == "preflight" and report["machine"]["cores"] == os.cpu_count()


def test_goes_on_where_it_is_not_said_that_nothing_can_run(bundle):
    code, _, report = bundle.run("--batch_size", "1", SHOAL_SAYS="shoal: an illegal memory access was encountered")
    assert code == 1
    assert report["preflight"]["ok"] is False and "illegal memory access" in report["preflight"]["output"]
    assert report["tests"]["ok"] is True and report["golden"]["ok"] is False and report["bench"]["ok"] is False
    assert "illegal memory access" in report["bench"]["models"][0]["shoal_bfloat16"]["output"]


def test_an_exception_ends_a_part_alone(bundle):
    (bundle.here / "models/resnet50.json").write_text("no JSON")
    code, printed, report = bundle.run("--batch_size", "1", "--part", "bench", "--part", "cluster")
    assert code == 1
    assert report["bench"]["ok"] is False and "JSONDecodeError" in report["bench"]["exception"] and "JSONDecodeError" in printed
    assert report["cluster"]["ok"] is True


def test_a_part_leaves_the_later_ones_their_share(monkeypatch, clock):
    run = load(SOURCE / "tests/gpu_check/run")
    had = []

    def take_all(session, entry):
        had.append(session.programs.budget.left())
        clock.now += had[-1]
        entry["ok"] = True

    monkeypatch.setattr(run, "PARTS", {"first": (take_all, 480), "second": (take_all, 100), "third": (take_all, 60), "fourth": (take_all, 2)})
    session = types.SimpleNamespace(arguments=types.SimpleNamespace(budget=240, parts=["first", "second", "third", "fourth"]), report={},
                                    programs=types.SimpleNamespace(), save=lambda: None, log=types.SimpleNamespace(say=lambda text: None))
    run.run_parts(session, Budget(240, clock))
    # Of half the budget that the seconds are of; for the last too little is left.
    assert had == [240 - 81, 50, 30]
    assert [session.report[part]["ok"] for part in ("first", "second", "third", "fourth")] == [True, True, True, None]
    assert session.report["fourth"]["not_run"] == "budget"


def test_pytorch_has_the_time_that_its_compiler_takes():
    run = load(SOURCE / "tests/gpu_check/run")
    left = {part: seconds for part, (_, seconds) in run.PARTS.items()}
    # Of both models Shoal's steps take some 20 s, PyTorch's eager ones some 30, and to compile one takes 60.
    assert run.timing.PYTORCH_CAP_SECONDS >= 30 + 60 + 10
    assert left["bench"] >= 2 * (20 + 30 + 60)
    # The first part has the rest.
    assert run.DEFAULT_BUDGET - sum(left.values()) + left["tests"] >= 100


def test_nothing_is_run_without_time(bundle):
    code, _, report = bundle.run("--budget", "0", "--part", "tests", "--part", "sanitizer")
    assert code == 2
    for part in ("tests", "sanitizer"):
        assert report[part]["ok"] is None and report[part]["not_run"] == "budget"


def test_other_parts_are_kept(bundle):
    bundle.run("--device", "cpu", "--batch_size", "1", "--part", "golden")
    _, _, report = bundle.run("--device", "cpu", "--batch_size", "1", "--part", "tests")
    assert report["golden"]["ok"] is True and report["tests"]["ok"] is True
    assert (bundle.out / "log.txt").read_text().count("golden: ok") == 1


def test_an_ended_check_leaves_a_report_and_no_process(bundle):
    mark = "time.sleep(61.25)"
    write_program(bundle.here / "tests/op_conformance_test", TEST.replace("import time", f"import time; print('begun', flush=True); {mark}"))
    process = bundle.start("--device", "cpu", "--part", "tests")
    process.stdout.readline()
    assert process.stdout.readline() == "tests ...\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert bundle.report()["tests"]["ok"] is None
    assert not any(str(bundle.here) in line for line in command_lines())


def test_a_bundle_has_what_the_tracked_files_leave_it(scripts):
    mib = 1 << 20
    assert scripts.max_bytes(0) == 52 * mib
    assert scripts.max_bytes(13 * mib) == 50.5 * mib


def test_files_are_counted_as_an_archive_has_them(scripts, tmp_path):
    sizes = (0, 1, 512, 513)
    with tarfile.open(tmp_path / "all.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        for size in sizes:
            (tmp_path / str(size)).write_bytes(bytes(size))
            archive.add(tmp_path / str(size), str(size))
        assert archive.offset == sum(map(scripts.in_tar, sizes))


def test_programs_that_use_no_gpu_are_not_sent(scripts, monkeypatch):
    def test(name, *labels):
        return {"command": [str(SOURCE / "build/cuda/tests" / name)], "properties": [{"name": "LABELS", "value": list(labels)}]}

    tests = [test("cuda_device_test", "cuda"), test("sums_test", "cuda"), test("loss_scale_test"), test("worker_test"),
             {"command": ["/bin/sh"], "properties": [{"name": "LABELS", "value": ["cuda"]}]}]
    monkeypatch.setattr(scripts, "run", lambda *command: json.dumps({"tests": tests}))
    assert [program.name for program in scripts.test_programs("cuda")] == ["cuda_device_test", "loss_scale_test"]
    known = (SOURCE / "tests/worker/compute/cuda/CMakeLists.txt").read_text()
    assert [name for name in scripts.WITHOUT_A_GPU if f"shoal_cuda_test({name}" not in known] == []


@pytest.mark.skipif(not (SOURCE / ".git").exists(), reason="what is tracked is known in a checkout alone")
def test_tracked_files_leave_room_for_a_bundle(scripts):
    assert 0 < scripts.tracked_bytes() < 64 << 20


def test_tests_are_not_sent(scripts):
    names = {script.name for script in scripts.scripts()}
    assert {"run", "programs.py"} <= names and not any(name.endswith("_test.py") or name == "conftest.py" for name in names)

"""What a report is said to show, and with which code a check ends."""
import copy

import pytest

from sentences import exit_code, judge, table

GPU = {
    "device": "cuda:0", "preflight": {"ok": True},
    "tests": {"ok": True, "programs": [{"program": "a_test", "ok": True, "skipped": 0}]},
    "golden": {"ok": True, "cases": {"mlp": {"ok": True}}},
    "bench": {"ok": True, "models": [
        {"model": name, "shoal_bfloat16": {"examples_per_second": 8000.0},
         "pytorch_bfloat16": {"examples_per_second": 7900.0, "mode": "default", "compiled": True}} for name in ("resnet50", "mobilenet_v2")]},
    "idle": {"ok": True, "idle_share": 0.05, "computed_seconds_are": "device_seconds"},
    "cluster": {"ok": True, "runs": [{"ok": True, "workers": workers, "exit": 0, "val_accuracy": 0.91, "computes": ["the worker computes on cuda:0"]}
                                     for workers in (1, 2)]},
    "sanitizer": {"ok": True, "runs": [{"ok": True, "tool": "memcheck", "program": "op_conformance_test", "ours": {}}]},
}
PARTS = ["tests", "golden", "bench", "idle", "cluster", "sanitizer"]
TESTS, GOLDEN, SANITIZER, ACCURACY, MOBILENET, RESNET, SPEED, IDLE = range(8)


def judged(change=lambda report: None):
    """(the sentences, the code) of a report of a GPU that is changed so."""
    report = copy.deepcopy(GPU)
    change(report)
    report["sentences"] = judge(report)
    return report["sentences"], exit_code(report, [part for part in PARTS if part in report])


def test_all_hold():
    sentences, code = judged()
    assert [each["holds"] for each in sentences] == [True] * 8
    assert sentences[GOLDEN]["value"] == "1 of 1"
    assert sentences[MOBILENET]["wanted"] == ">= 7900 (default)"
    assert code == 0


@pytest.mark.parametrize("which, change", [
    (TESTS, lambda report: report["tests"].update(ok=False, programs=[{"program": "a_test", "ok": False}])),
    (GOLDEN, lambda report: report["golden"].update(ok=False, cases={"mlp": {"ok": False}})),
    (SANITIZER, lambda report: report["sanitizer"]["runs"][0].update(ok=False, ours={"shoal::Kernel": 3})),
    (ACCURACY, lambda report: report["cluster"]["runs"][1].update(ok=False, val_accuracy=0.8)),
    (MOBILENET, lambda report: report["bench"]["models"][1]["shoal_bfloat16"].update(examples_per_second=7000.0)),
    (RESNET, lambda report: report["bench"]["models"][0]["shoal_bfloat16"].update(examples_per_second=7500.0)),
    (IDLE, lambda report: report["idle"].update(ok=False, idle_share=0.1)),
])
def test_one_does_not_hold(which, change):
    sentences, code = judged(change)
    assert [i for i, each in enumerate(sentences) if each["holds"] is False] == [which]
    assert code == 1


@pytest.mark.parametrize("which, change, why", [
    (SANITIZER, lambda report: report.update(sanitizer={"ok": None, "not_run": "budget"}), "no time was left"),
    (SANITIZER, lambda report: report["sanitizer"]["runs"][0].update(ok=None, why="it does not support this device"), "does not support"),
    (GOLDEN, lambda report: report["golden"].update(ok=None, cases={"mlp": {"ok": True}, "late": {"ok": None, "not_run": "budget"}}), ""),
    (ACCURACY, lambda report: report.update(cluster={"ok": None, "not_run": "budget"}), "no time was left"),
    (MOBILENET, lambda report: report["bench"]["models"][1].update(pytorch_bfloat16={"missing": "No module named 'torch'"}), "No module named"),
    (IDLE, lambda report: report["idle"].update(ok=None, idle_share=-0.2, why="the measurement failed"), "the measurement failed"),
])
def test_one_was_not_measured(which, change, why):
    sentences, code = judged(change)
    assert [i for i, each in enumerate(sentences) if each["holds"] is None] == [which]
    assert why in sentences[which]["why"]
    assert code == 2


def test_a_part_that_failed_counts_though_no_sentence_is_of_it():
    assert judged(lambda report: report.update(bench={"ok": False, "exception": "Traceback\nKeyError: 'a'"}))[1] == 1


def test_pytorch_that_is_not_compiled_is_said_to_be_so():
    def change(report):
        report["bench"]["models"][0]["pytorch_bfloat16"].update(mode="eager", compiled="default: AssertionError: ")
    sentences, code = judged(change)
    assert sentences[RESNET]["holds"] is True and sentences[RESNET]["why"] == "PyTorch not compiled: default: AssertionError: "
    assert code == 0


def test_one_worker_is_enough_where_no_time_was_left_for_two():
    def change(report):
        report["cluster"].update(ok=None)
        report["cluster"]["runs"][1] = {"ok": None, "workers": 2, "not_run": "budget"}
    sentences, _ = judged(change)
    assert sentences[ACCURACY]["holds"] is True and sentences[ACCURACY]["why"] == "with --workers 1 alone"


def test_few_epochs_are_not_judged():
    def change(report):
        for run in report["cluster"]["runs"]:
            run["val_accuracy"] = 0.8
    sentences, code = judged(change)
    assert sentences[ACCURACY]["holds"] is None and code == 2


def on_cpu(report):
    report["device"] = "cpu"
    del report["sanitizer"]


def test_without_a_gpu_what_is_of_one_is_not_asked_for():
    sentences, code = judged(on_cpu)
    assert [each["holds"] for each in sentences] == [True, True] + [None] * 6
    assert code == 0


def test_without_a_gpu_a_part_that_failed_still_counts():
    def change(report):
        on_cpu(report)
        report["idle"]["ok"] = False
    assert judged(change)[1] == 1


def test_where_nothing_could_run_nothing_was_measured():
    def change(report):
        for part in PARTS:
            report[part] = {"ok": None, "not_run": "preflight", "why": "there is no NVIDIA driver"}
        report["preflight"] = {"ok": False, "stop": "there is no NVIDIA driver"}
    sentences, code = judged(change)
    assert {each["holds"] for each in sentences} == {None} and code == 2


def test_any_beginning_of_a_report_is_judged():
    for count in range(len(PARTS) + 1):
        report = {"device": "cuda:0", "preflight": {"ok": True}} | {part: GPU[part] if i < count else {"ok": None} for i, part in enumerate(PARTS)}
        assert len(judge(report)) == 8
    assert len(judge({})) == 8


def test_the_table_has_a_line_a_sentence():
    lines = table(judged()[0]).splitlines()
    assert len(lines) == 9
    assert "holds" in lines[1] and "of 1" in lines[1]

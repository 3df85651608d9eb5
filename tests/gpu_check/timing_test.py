"""What is made of times: shares of what a card can do, of a step that a GPU waits for, and which of PyTorch's ways is the fastest."""
import pathlib
import types

import pytest

import timing
import torch_bench
import training
from machine import Samples
from programs import Ended


def test_shares_of_ops_and_of_the_step():
    result = {"op_seconds": {"Conv2D": 0.001, "Add": 0.001, "copies": 0.002}, "op_values": {"Conv2D": 10**6, "Add": 2 * 10**6, "Relu": 10**6},
              "op_multiply_adds": {"Conv2D": 10**9, "Add": 0, "Relu": 0}}
    shares = timing.shares(result, "bfloat16", (1e10, 1e12, 1e13))
    assert shares["ops"]["Conv2D"] == {"bandwidth": 0.2, "arithmetic": 0.2}
    assert shares["step"] == {"bandwidth": 0.2, "arithmetic": 0.05}
    assert shares["other"] == {"copies": 0.002}


def test_the_last_object_is_the_result():
    assert timing.last_json(Ended(0, '2026-11-26T03:11:55.055Z W slow\n{"a": 1}\na word after it\n', 1)) == {
        "a": 1, "warnings": ["2026-11-26T03:11:55.055Z W slow"]}
    failed = timing.last_json(Ended(None, "half {", 3, "timeout"))
    assert (failed["ended_by"], failed["output"]) == ("timeout", "half {")


def test_all_are_timed_or_not_or_out_of_time():
    timed, late, wrong = {"examples_per_second": 1}, {"not_run": "budget"}, {"exit": 1}
    assert timing.all_timed([timed, timed]) is True
    assert timing.all_timed([timed, late]) is None
    assert timing.all_timed([timed, late, wrong]) is False


def test_an_idle_share_is_of_the_devices_own_time():
    assert training.idle_share({"device_seconds": 0.09, "op_seconds": {"a": 0.2}, "step_seconds": [0.1, 0.095]}, 0.1) == {
        "step_seconds": 0.1, "computed_seconds": 0.09, "computed_seconds_are": "device_seconds", "idle_share": 0.1}
    by_ops = training.idle_share({"device_seconds": None, "op_seconds": {"a": 0.05, "b": 0.03}, "step_seconds": [0.1]}, 0.1)
    assert (by_ops["idle_share"], by_ops["computed_seconds_are"]) == (0.2, "the sum of op_seconds")
    timed = training.idle_share({"device_seconds": 0.09, "op_seconds": {"a": 0.2}, "step_seconds": [0.09, 0.08]}, 0.1)
    assert (timed["idle_share"], timed["computed_seconds_are"]) == (0.2, "a step alone")


@pytest.mark.parametrize("share, ok", [(0, True), (0.0999, True), (0.1, False), (-0.01, None)])
def test_an_idle_share_is_judged(share, ok):
    assert training.judge_idle(share, on_gpu=True)["ok"] is ok
    assert training.judge_idle(share, on_gpu=False)["ok"] is True
    assert ("why" in training.judge_idle(share, on_gpu=True)) == (ok is not True)


def test_a_worker_says_where_its_steps_went():
    log = "2026-11-26T06:59:16.575Z I worker-0 where the time of its steps went steps=2 step_ms=9.01 push_ms=0.00\n2026 I worker-0 ended exit_code=0\n"
    assert training.worker_steps("2026 I worker-0 where the time of its steps went steps=1 step_ms=7.00\n" + log) == {
        "steps": 2, "step_ms": 9.01, "push_ms": 0}
    assert training.worker_steps("killed") is None


def test_samples_of_nvidia_smi_are_summarized():
    lines = "2026/11/13 10:00:00.1, 10 %, 1980 MHz, 612.11 W, 100 MiB\n2026/11/13 10:00:00.3, 90 %, 345 MHz, 100.5 W, 300 MiB\n"
    summary = Samples.summarize(lines + "2026/11/13 10:00:00.5, 90 %, [N/A], 100")
    assert summary["utilization.gpu"] == {"min": 10, "median": 50, "max": 90, "samples": 2}
    assert summary["power.draw"]["max"] == 612.11
    assert Samples.summarize("") == {}


def test_pictures_are_of_one_block(tmp_path):
    files = training.write_pictures(tmp_path, 3)
    pictures = pathlib.Path(files["images"]).read_bytes()
    assert pictures[:4] == b"\0\0\x08\x04" and len(pictures) == 4 + 4 * 4 + 3 * 224 * 224 * 3
    assert pathlib.Path(files["labels"]).stat().st_size == 4 + 4 + 3


def test_pytorchs_fastest_way():
    eager, compiled = {"step_seconds": [0.2, 0.1, 0.3]}, {"step_seconds": [0.1]}
    assert torch_bench.conclude({"eager": eager, "default": compiled}, 2)["examples_per_second"] == 20
    assert torch_bench.conclude({"eager": eager, "default": compiled}, 2)["compiled"] is True
    alone = torch_bench.conclude({"eager": eager, "default": {"failed": "AssertionError: "}}, 2)
    assert (alone["mode"], alone["examples_per_second"], alone["compiled"]) == ("eager", 10, "default: AssertionError: ")
    assert torch_bench.conclude({"eager": {"failed": "no"}}, 2).get("examples_per_second") is None


def test_pytorchs_blocks_stride_as_keras_does():
    class Bottleneck:
        def __init__(self):
            self.conv1, self.conv2 = types.SimpleNamespace(stride=(1, 1)), types.SimpleNamespace(stride=(2, 2))

    block = Bottleneck()
    models = types.SimpleNamespace(resnet=types.SimpleNamespace(Bottleneck=Bottleneck),
                                   net=lambda weights, num_classes: types.SimpleNamespace(classes=num_classes, modules=lambda: [block]))
    assert torch_bench.make_model(types.SimpleNamespace(models=models), "net", 5).classes == 5
    assert (block.conv1.stride, block.conv2.stride) == ((2, 2), (1, 1))


def test_a_window_is_waited_for_once():
    calls = []
    steps, taken = torch_bench.time_windows(lambda: calls.append("step"), lambda: calls.append("wait"), 0)
    assert steps == 1 and len(taken) == torch_bench.WINDOWS
    assert calls == ["step"] * 3 + ["wait"] + ["step"] * 3 + ["wait"] + ["step", "wait"] * torch_bench.WINDOWS

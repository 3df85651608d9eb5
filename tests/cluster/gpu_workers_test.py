"""Clusters of workers on a GPU, and Keras's golden cases there: where there is one."""
import csv
import json
import pathlib
import subprocess

import pytest

from real_cluster import BIN, PATIENCE_SECONDS, SOURCE, shoal

DEVICE = "cuda:0"
FASHION_MNIST = SOURCE / "examples/fashion_mnist"
LEAST_ACCURACY = 0.90
# After 5 it has 0.903 and more, which is too close.
EPOCHS = 10
CASES = sorted(case.parent for case in (SOURCE / "tests/golden").glob("*/case.json"))


def reason_against():
    """Why nothing trains on a GPU here; empty where something does."""
    tried = subprocess.run([BIN / "shoal", "bench", "model", FASHION_MNIST / "model.json", "--device", DEVICE, "--seconds", "0"],
                           capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    if tried.returncode == 78:
        return "No GPU here: " + tried.stderr.strip().replace("\n", " ")
    return ""  # what else is wrong is for the tests to say


@pytest.fixture(scope="module", autouse=True)
def gpu():
    why = reason_against()
    if why:
        pytest.skip(why)


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_on_a_gpu_learn_fashion_mnist(tmp_path, workers):
    run = tmp_path / "run"
    job = json.loads((FASHION_MNIST / "job.json").read_text()) | {"model": str(FASHION_MNIST / "model.json"), "epochs": EPOCHS}
    (tmp_path / "job.json").write_text(json.dumps(job))
    done = shoal("train", tmp_path / "job.json", "--run_dir", run, "--workers", workers, "--device", DEVICE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"on {DEVICE}" in done.stdout
    with open(run / "history.csv", newline="") as file:
        history = list(csv.DictReader(file))
    assert float(history[-1]["val_accuracy"]) >= LEAST_ACCURACY
    assert [int(epoch["examples"]) for epoch in history] == [60000] * EPOCHS


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_gpu_computes_what_keras_does(case: pathlib.Path):
    done = shoal("model", "verify", case, "--device", DEVICE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_gpu_that_is_not_there_is_named(tmp_path):
    done = shoal("train", FASHION_MNIST / "job.json", "--run_dir", tmp_path / "run", "--device", "cuda:64")
    assert done.returncode == 78, done.stdout + done.stderr
    assert "cuda:64" in done.stdout + done.stderr
    assert not (tmp_path / "run/checkpoints").exists()

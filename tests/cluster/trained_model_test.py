"""What is done with a trained model on one machine: shoal evaluate."""
import csv
import json
import os
import pathlib
import pty
import signal
import struct

import numpy as np
import pytest

from real_cluster import BIN, Process, children_of, shoal, wait_for, write_job

EXAMPLES = 64  # of the test set


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of three epochs, each with a checkpoint and a line of history; its batches leave a rest of the test set."""
    directory = tmp_path_factory.mktemp("trained")
    job = write_job(directory, 400, 24, epochs=3, checkpoint={"every_steps": 1000, "keep": 9},
                    optimizer={"class_name": "SGD", "config": {"learning_rate": 0.05}},
                    metrics=["accuracy", {"class_name": "SparseTopKCategoricalAccuracy", "config": {"k": 2, "name": "top2"}}])
    done = shoal("train", job, "--run_dir", directory / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def history(run):
    with open(run / "history.csv", newline="") as file:
        return list(csv.DictReader(file))


def evaluate(*arguments):
    done = shoal("evaluate", *arguments, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_every_checkpoint_evaluates_to_what_the_run_wrote_of_it(trained):
    run = trained / "run"
    checkpoints = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert len(checkpoints) == 3
    for name, epoch in zip(checkpoints, history(run)):
        result = evaluate(run, "--checkpoint", name)
        assert pathlib.Path(result["checkpoint"]).name == name and result["examples"] == EXAMPLES
        assert result["loss"] == pytest.approx(float(epoch["val_loss"]), rel=2e-5)
        assert list(result["metrics"]) == ["accuracy", "top2"]
        for metric, value in result["metrics"].items():
            assert value == pytest.approx(float(epoch[f"val_{metric}"]), rel=1e-5)
    # Without a name the newest; by its own path; and for people.
    assert evaluate(run) == result
    assert evaluate(run / "checkpoints" / checkpoints[-1]) == result
    assert evaluate(run, "--batch_size", 64)["loss"] == pytest.approx(result["loss"], rel=1e-5)
    text = shoal("evaluate", run).stdout
    assert f"\nloss        {float(epoch['val_loss']):.4f}\n" in text and "\naccuracy " in text and "64 examples" in text


def test_other_data_in_the_place_of_the_test_set(trained, tmp_path):
    run = trained / "run"
    on_training = evaluate(run, "training")
    assert on_training["examples"] == 400
    assert evaluate(run, "--set", f"data.test.images={trained}/train-images.idx",
                    "--set", f"data.test.labels={trained}/train-labels.idx") == on_training
    # Relative paths are the caller's.
    relative = [f"data.test.{part}={os.path.relpath(trained)}/train-{part}.idx" for part in ("images", "labels")]
    assert evaluate(run, "--set", relative[0], "--set", relative[1]) == on_training
    # A format that the job has no data of does not say where the labels are.
    np.savez(tmp_path / "new.npz", x=np.zeros((2, 8, 8)), y=np.zeros(2))
    refused = shoal("evaluate", run, tmp_path / "new.npz")
    assert refused.returncode == 78 and "data.test=" in refused.stderr
    described = {"format": "npz", "path": str(tmp_path / "new.npz"), "features": "x", "labels": "y"}
    assert evaluate(run, "--set", f"data.test={json.dumps(described)}")["examples"] == 2


def test_a_damaged_checkpoint_is_named_and_passed_over(trained, tmp_path):
    run = tmp_path / "run"
    checkpoints = sorted((trained / "run/checkpoints").iterdir())
    for checkpoint in checkpoints[-2:]:
        (run / "checkpoints" / checkpoint.name).mkdir(parents=True)
        for file in checkpoint.iterdir():
            (run / "checkpoints" / checkpoint.name / file.name).write_bytes(file.read_bytes())
    older, newest = sorted((run / "checkpoints").iterdir())
    file = newest / "model-00001-of-00001.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    done = shoal("evaluate", run, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["checkpoint"] == str(older)
    assert str(file) in done.stderr and "passed over" in done.stderr
    for arguments in ((run, "--checkpoint", newest.name), (newest,)):
        refused = shoal("evaluate", *arguments)
        assert refused.returncode == 65 and str(file) in refused.stderr and not refused.stdout
    (older / "manifest.json").write_text("{")
    refused = shoal("evaluate", run)
    assert refused.returncode == 65 and str(file) in refused.stderr and str(older) in refused.stderr
    refused = shoal("evaluate", run, "--checkpoint", "step-7")
    assert refused.returncode == 78 and newest.name in refused.stderr


def test_what_is_no_run_is_said(trained, tmp_path):
    for path, text in ((tmp_path, "there is no checkpoint"), (trained / "job.json", "give the run directory")):
        refused = shoal("evaluate", path)
        assert refused.returncode == 78 and text in refused.stderr, refused.stderr
    labels = bytearray((trained / "test-labels.idx").read_bytes())
    labels[8 + 3] = 9
    (tmp_path / "labels.idx").write_bytes(labels)
    refused = shoal("evaluate", trained / "run", "--set", f"data.test.labels={tmp_path}/labels.idx")
    assert refused.returncode != 0 and "example 3, counted from 0, has the label 9" in refused.stderr


def test_averaged_weights_are_what_a_model_is_evaluated_with(tmp_path):
    job = write_job(tmp_path, optimizer={"class_name": "SGD", "config": {"learning_rate": 0.05, "use_ema": True, "ema_momentum": 0.5}})
    done = shoal("train", job, "--run_dir", tmp_path / "run", "--workers", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    result = evaluate(tmp_path / "run")
    assert result["averaged"] is True and "use_ema" in shoal("evaluate", tmp_path / "run").stdout
    # The saved model holds the averages; the history is that of the variables themselves.
    from safetensors.numpy import load_file
    model = load_file(tmp_path / "run/model/model.safetensors")
    images = np.frombuffer((tmp_path / "test-images.idx").read_bytes()[16:], np.uint8).reshape(-1, 64).astype(np.float32) / 255
    labels = np.frombuffer((tmp_path / "test-labels.idx").read_bytes()[8:], np.uint8)
    hidden = np.maximum(images @ model["dense/kernel"] + model["dense/bias"], 0)
    logits = (hidden @ model["dense_1/kernel"] + model["dense_1/bias"]).astype(np.float64)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]
    assert result["loss"] == pytest.approx(losses.mean(), rel=1e-5)
    assert result["loss"] != pytest.approx(float(history(tmp_path / "run")[-1]["val_loss"]), rel=1e-4)


def big_test_set(directory, examples):
    """Of the small job's shape; too large to be over in a moment at one example a batch."""
    images, labels = directory / "big-images.idx", directory / "big-labels.idx"
    images.write_bytes(struct.pack(">IIII", 0x803, examples, 8, 8) + bytes(64 * examples))
    labels.write_bytes(struct.pack(">II", 0x801, examples) + bytes(examples))
    return ["--set", f"data.test.images={images}", "--set", f"data.test.labels={labels}", "--batch_size", "1"]


def test_a_terminal_shows_how_far_it_is_and_ctrl_c_ends_it_in_order(trained, tmp_path):
    arguments = [BIN / "shoal", "evaluate", trained / "run", *big_test_set(tmp_path, 20_000_000)]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(arguments[0], list(map(str, arguments)), {**os.environ, "TERM": "xterm"})
    seen = b""
    try:
        while b" examples/s  " not in seen:
            seen += os.read(terminal, 4096)
        assert b"evaluating: " in seen and b" of 20,000,000 examples" in seen and b" left" in seen
        os.write(terminal, b"\x03")
        try:
            while True:
                chunk = os.read(terminal, 4096)
                seen += chunk
                if not chunk:
                    break
        except OSError:  # the other side has gone
            pass
        ended, status = os.waitpid(child, 0)
        child = 0
        assert os.waitstatus_to_exitcode(status) == 143, seen[-2000:]
        assert b"stopped: evaluating had come to example" in seen
    finally:
        os.close(terminal)
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

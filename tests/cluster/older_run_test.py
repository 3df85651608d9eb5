"""Runs that older builds wrote: this one evaluates, exports and resumes them. older_runs/ has one for each format that there was.

    build/venv/bin/python tests/cluster/older_run_test.py NAME

writes older_runs/NAME with the build that is there, in place of nothing; docs/contributing/adding-a-kind.md says when.
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import pytest
from safetensors.numpy import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "fixtures"))  # run by hand, there is no conftest.py
from real_cluster import shoal  # noqa: E402
from run_history import history  # noqa: E402

RUNS = pathlib.Path(__file__).resolve().parent / "older_runs"
DATA = "/proc/self/cwd"  # a run goes on with the data that it began with, by their absolute paths: these are wherever a test is
EXAMPLES, EPOCHS, STEPS_PER_EPOCH = 12, 2, 3


def layer(class_name, **config):
    return {"module": "keras.layers", "class_name": class_name, "config": config, "registered_name": None}


MODEL = {"module": "keras", "class_name": "Sequential", "registered_name": None, "config": {"name": "small", "layers": [
    layer("InputLayer", name="in", batch_shape=[None, 3], dtype="float32"), layer("Dense", name="wide", units=4, activation="relu"),
    layer("BatchNormalization", name="norm", momentum=0.9), layer("Dense", name="head", units=2, activation="softmax")]}}


def write_job():
    """Here, with all kinds of variables, slots and averages, metrics and a callback."""
    examples = np.float32(np.arange(EXAMPLES * 3).reshape(EXAMPLES, 3) % 7) / 7
    np.save("x.npy", examples)
    np.save("y.npy", (examples.sum(1) > 1.4).astype(np.int64))
    data = {"images": f"{DATA}/x.npy", "labels": f"{DATA}/y.npy"}
    pathlib.Path("job.json").write_text(json.dumps({
        "name": "small", "model": MODEL, "data": {"training": data, "test": data}, "loss": "sparse_categorical_crossentropy",
        "metrics": ["accuracy"], "optimizer": {"class_name": "Adam", "config": {"learning_rate": 0.01, "use_ema": True}}, "batch_size": 4,
        "callbacks": [{"class_name": "ModelCheckpoint", "config": {"monitor": "val_loss", "save_best_only": True}}],
        "epochs": EPOCHS, "checkpoint": {"keep": 1}, "seed": 7}))
    return "job.json"


@pytest.fixture(name="run", params=sorted(path.name for path in RUNS.iterdir()))
def copy_run(request, tmp_path, monkeypatch):
    shutil.copytree(RUNS / request.param, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run"


def succeeded(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_evaluates_to_what_its_model_computes(run):
    write_job()
    model = load_file(run / "model/model.safetensors")
    hidden = np.maximum(np.load("x.npy") @ model["wide/kernel"] + model["wide/bias"], 0)
    scale = model["norm/gamma"] / np.sqrt(model["norm/moving_variance"] + 1e-3)
    logits = ((hidden - model["norm/moving_mean"]) * scale + model["norm/beta"]) @ model["head/kernel"] + model["head/bias"]
    loss = np.log(np.exp(logits).sum(1)) - logits[np.arange(EXAMPLES), np.load("y.npy")]
    found = json.loads(succeeded(shoal("evaluate", run, "--json")))
    assert found["loss"] == pytest.approx(loss.mean(), rel=1e-5), found


def test_it_is_exported(run, tmp_path):
    saved = load_file(run / "model/model.safetensors")
    succeeded(shoal("export", run, "--format", "safetensors", "-o", tmp_path / "out.safetensors"))
    exported = load_file(tmp_path / "out.safetensors")
    assert len(exported) == 8 and set(exported) == set(saved)
    for name, values in saved.items():
        assert np.array_equal(values, exported[name]), name
    succeeded(shoal("export", run, "-o", tmp_path / "out.keras"))


def test_it_resumes(run):
    before = history(run)
    said = succeeded(shoal("train", write_job(), "--run_dir", run, "--workers", "1", "--epochs", EPOCHS + 1))
    assert "epoch 3/3" in said and "epoch 1/3" not in said.split("\n\n")[0], said
    after = history(run)
    assert [{column: row[column] for column in before[0]} for row in after[:EPOCHS]] == before
    assert len(after) == EPOCHS + 1
    newest = max(run.glob("checkpoints/*/manifest.json"))
    manifest = json.loads(newest.read_text())
    assert manifest["cut_step"] == (EPOCHS + 1) * STEPS_PER_EPOCH
    slots = load_file(next(newest.parent.glob("optimizer-*.safetensors")))
    assert all(np.any(values != 0) for name, values in slots.items() if name.startswith("adam_v/")), slots


def main():
    target = RUNS / sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        succeeded(shoal("train", write_job(), "--run_dir", "run", "--workers", "1"))
        run = pathlib.Path("run")
        for entry in run.iterdir():  # the rest tells of the processes
            if entry.name not in ("checkpoints", "model", "history.csv", "job.json"):
                (shutil.rmtree if entry.is_dir() else pathlib.Path.unlink)(entry)
        shutil.rmtree(min(run.glob("checkpoints/*")))  # one is enough
        shutil.move(run, target)


if __name__ == "__main__":
    main()

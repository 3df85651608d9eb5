"""examples/: model files as Keras writes them, jobs that `shoal validate` passes, and one that trains on pictures that its script drew."""
import csv
import json
import subprocess
import sys

import keras
import numpy as np
import pytest

from real_cluster import SOURCE, shoal
from undrawn import undrawn_weights

EXAMPLES = SOURCE / "examples"
sys.path.insert(0, str(EXAMPLES))
import make_models  # noqa: E402

JOBS = sorted(path.parent.name for path in EXAMPLES.glob("*/job.json"))


def test_there_is_a_model_for_each_job():
    assert JOBS == sorted(make_models.MODELS)


@pytest.mark.parametrize("name", JOBS)
def test_model_files_are_what_keras_writes(name):
    with undrawn_weights():
        assert (EXAMPLES / name / "model.json").read_text() == make_models.model_text(name), f"run examples/make_models.py {name}"


@pytest.mark.parametrize("name", JOBS)
def test_jobs_are_valid_and_say_what_data_they_lack(name):
    done = shoal("validate", EXAMPLES / name / "job.json")
    assert done.returncode == 0, done.stdout + done.stderr
    for source in json.loads((EXAMPLES / name / "job.json").read_text())["data"].values():
        for path in {source.get("path"), source.get("images")} - {None}:
            path = EXAMPLES / name / path
            assert list(path.parent.glob(path.name)) or str(path) in done.stdout


@pytest.fixture(name="pictures")
def draw_pictures(tmp_path):
    script = [sys.executable, EXAMPLES / "mobilenet_v2/draw_pictures.py"]
    subprocess.run([*script, "--folder", tmp_path / "pictures", "--training", "4", "--test", "2", "--size", "40"], check=True)
    return tmp_path / "pictures"


def test_drawn_pictures_are_pictures(pictures):
    inspected = shoal("dataset", "inspect", pictures / "training")
    assert inspected.returncode == 0 and "20 pictures, 5 classes" in inspected.stdout, inspected.stdout
    for part, count in (("training", 4), ("test", 2)):
        for name in ("circle", "cross", "ring", "square", "triangle"):
            assert len({path.read_bytes() for path in (pictures / part / name).iterdir()}) == count


def test_mobilenet_v2_trains_on_drawn_pictures(tmp_path, pictures):
    """At 32 x 32 and a third of the channels."""
    keras.utils.clear_session()
    with undrawn_weights():
        (tmp_path / "model.json").write_text(make_models.mobilenet_v2(size=32, alpha=0.35).to_json())
    done = shoal("train", EXAMPLES / "mobilenet_v2/job.json", "--run_dir", tmp_path / "run", "--set", f"model={tmp_path}/model.json",
                 "--set", f"data.training.path={pictures}/training", "--set", f"data.test.path={pictures}/test",
                 "--batch_size", "5", "--epochs", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "run/history.csv", newline="") as file:
        history = list(csv.DictReader(file))
    assert len(history) == 2 and all(np.isfinite(float(row[figure])) for row in history for figure in ("loss", "val_loss"))

"""Archives: training begins with what Keras saved, and Keras opens what `shoal export` writes."""
import json

import keras
import numpy as np
import pytest
from keras import layers
from safetensors.numpy import load_file

from real_cluster import SOURCE, shoal

EXAMPLES, CLASSES = 24, 3


def classifier(head="head", classes=CLASSES):
    """With all that an archive may hold: nested and shared layers, statistics, random numbers, names that are not in order."""
    tower = keras.Sequential([keras.Input((4, 4, 3)), layers.Conv2D(4, 3, padding="same", name="zeta"), layers.BatchNormalization(name="norm"),
                              layers.Dropout(0.3, name="drop"), layers.Conv2D(2, 3, use_bias=False, name="alpha")], name="tower")
    first, second = keras.Input((4, 4, 1), name="first"), keras.Input((4, 4, 1), name="second")
    widen = layers.Conv2D(3, 1, name="widen")
    both = layers.Add(name="both")([widen(first), widen(second)])
    flat = layers.Flatten(name="flat")(tower(both))
    return keras.Model([first, second], layers.Dense(classes, activation="softmax", name=head)(flat), name="two")


def draw_weights(model, seed):
    random = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(random.uniform(0.1, 0.9, weight.shape).astype(np.float32))


def write_job(tmp_path, **fields):
    random = np.random.default_rng(1)
    for name in ("first", "second"):
        np.save(tmp_path / f"{name}.npy", random.normal(size=(EXAMPLES, 4, 4, 1)).astype(np.float32))
    np.save(tmp_path / "y.npy", random.integers(0, CLASSES, EXAMPLES))
    data = {"training": {"features": {"first": "first.npy", "second": "second.npy"}, "labels": "y.npy"}}
    job = {"name": "two", "data": data, "loss": "sparse_categorical_crossentropy", "optimizer": "sgd", "batch_size": 8, "epochs": 2, **fields}
    (tmp_path / "job.json").write_text(json.dumps(job))
    return tmp_path / "job.json"


def train(tmp_path, **fields):
    done = shoal("train", write_job(tmp_path, **fields), "--workers", "1", "--run_dir", tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("compiled", [False, True])
def test_training_begins_with_an_archive_and_keras_opens_the_result(tmp_path, compiled, recwarn):
    model = classifier()
    if compiled:
        model.compile("adam", "sparse_categorical_crossentropy")
    draw_weights(model, 7)
    model.save(tmp_path / "two.keras")
    slow = {"class_name": "SGD", "config": {"learning_rate": 1e-12}}
    assert "11 of 11 variables" in train(tmp_path, model="two.keras", optimizer=slow)
    path = tmp_path / "out.keras"
    exported = shoal("export", tmp_path / "run", "-o", path)
    assert exported.returncode == 0, exported.stderr
    back = keras.models.load_model(path)
    assert not back.compiled and not [str(w.message) for w in recwarn if "optimizer" in str(w.message)]
    # Nothing was trained, but for statistics.
    for before, after in zip(model.weights, back.weights, strict=True):
        assert before.path.split("/")[-2:] == after.path.split("/")[-2:]
        if "moving" not in before.path:
            np.testing.assert_allclose(keras.ops.convert_to_numpy(before), keras.ops.convert_to_numpy(after), rtol=1e-6)
    saved = load_file(tmp_path / "run/model/model.safetensors")
    inputs = [np.load(tmp_path / "first.npy"), np.load(tmp_path / "second.npy")]
    for weight in model.weights:
        inner = {layer.name for layer in model.get_layer("tower").layers}
        name = weight.path if weight.path in saved else f"tower/{weight.path}"
        assert name == weight.path or weight.path.split("/")[0] in inner
        weight.assign(saved[name])
    np.testing.assert_allclose(model.predict(inputs, verbose=0), back.predict(inputs, verbose=0), atol=1e-5)


def test_a_file_is_not_replaced_unless_it_is_asked_for(tmp_path):
    (tmp_path / "model.json").write_text(classifier().to_json())
    train(tmp_path, model="model.json", epochs=1)
    path = tmp_path / "out.safetensors"
    unlike = shoal("export", tmp_path / "run", "-o", tmp_path / "out.h5")
    assert unlike.returncode == 78 and ".keras" in unlike.stderr, unlike.stderr
    command = ("export", tmp_path / "run", "--format", "safetensors", "-o", path)
    assert shoal(*command).returncode == 0
    tensors = load_file(path)
    assert {name.split("/")[-2] for name in tensors} == {"widen", "zeta", "norm", "alpha", "head"}
    path.write_text("mine")
    refused = shoal(*command)
    assert refused.returncode == 78 and "--overwrite" in refused.stderr
    assert path.read_text() == "mine"
    assert shoal(*command, "--overwrite").returncode == 0
    assert set(load_file(path)) == set(tensors)
    assert not list(tmp_path.glob("*.partial*"))


@pytest.mark.parametrize("saved", ["weights.weights.h5", "weights.keras", "weights.h5"])
def test_weights_of_another_model_are_transferred_by_name(tmp_path, saved):
    donor = classifier("old_head", 5)
    draw_weights(donor, 3)
    (donor.save_weights if saved == "weights.weights.h5" else donor.save)(tmp_path / saved)
    (tmp_path / "model.json").write_text(classifier("new_head").to_json())
    job = write_job(tmp_path, model="model.json", initial_weights=saved)
    done = shoal("validate", job)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 of 11 variables" in done.stdout
    assert "new_head/kernel: " in done.stdout
    assert "    old_head: " in done.stdout


def test_layers_that_draw_at_random_open_in_keras(tmp_path):
    model = keras.Sequential([keras.Input((4, 4, 1)), layers.Dropout(0.2), layers.SpatialDropout2D(0.2), layers.Flatten(),
                              layers.Dense(CLASSES, activation="softmax")], name="drawing")
    (tmp_path / "model.json").write_text(model.to_json())
    write_job(tmp_path)
    data = {"training": {"images": "first.npy", "labels": "y.npy"}}
    train(tmp_path, model="model.json", data=data, epochs=1)
    assert shoal("export", tmp_path / "run").returncode == 0
    back = keras.models.load_model(tmp_path / "run/two.keras")
    assert [layer.name for layer in back.layers] == [layer.name for layer in model.layers]
    back.compile("sgd", "sparse_categorical_crossentropy")
    back.fit(np.load(tmp_path / "first.npy"), np.load(tmp_path / "y.npy"), verbose=0)


def test_a_model_of_keras_2_is_no_archive_that_keras_3_opens(tmp_path):
    random = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", random.normal(size=(8, 28, 28, 1)).astype(np.float32))
    data = {"training": {"images": "x.npy", "labels": "y8.npy"}}
    np.save(tmp_path / "y8.npy", random.integers(0, 3, 8))
    train(tmp_path, model=str(SOURCE / "tests/golden/keras2_fashion_cnn/model.json"), data=data, epochs=1)
    refused = shoal("export", tmp_path / "run")
    assert refused.returncode == 78 and "Keras 2's, which no Keras 3 opens" in refused.stderr
    assert "give --format safetensors" in refused.stderr
    assert not list((tmp_path / "run").glob("*.keras*"))
    assert shoal("export", tmp_path / "run", "--format", "safetensors").returncode == 0

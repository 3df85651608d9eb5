"""Keras saves a model, Shoal trains on from its weights with real processes, Keras opens what comes of it: what both compute is the same."""
import json

import keras
import numpy as np
import pytest

from real_cluster import shoal

EXAMPLES, CLASSES = 24, 4
STEPS = 3


def residual_model():
    """A nested model, BatchNormalization with statistics, a shared layer, and layers whose names Keras gave."""
    layers = keras.layers
    image = keras.Input((9, 9, 2), name="image")
    head = keras.Sequential([keras.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(CLASSES, activation="softmax")], name="head")
    shared = layers.Conv2D(6, 3, padding="same", name="shared")
    x = layers.Conv2D(6, 3, padding="same", use_bias=False)(layers.Rescaling(1 / 255)(image))
    x = layers.ReLU()(layers.BatchNormalization(momentum=0.8)(x))
    x = layers.Add()([x, layers.Activation("tanh")(shared(x))])
    x = layers.Add()([x, layers.DepthwiseConv2D(3, padding="same")(shared(x))])
    return keras.Model(image, head(layers.GlobalAveragePooling2D()(x)), name="residual")


@pytest.fixture(name="run")
def train(tmp_path):
    """The folder with start.keras and the run, a batch, and what Keras's own training makes of it."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(5)
    random = np.random.default_rng(5)
    x = random.integers(0, 256, (EXAMPLES, 9, 9, 2)).astype(np.float32)
    y = random.integers(0, CLASSES, EXAMPLES)
    model = residual_model()
    model.set_weights([w + random.uniform(0.01, 0.05, w.shape).astype(np.float32) for w in model.get_weights()])  # biases and statistics too
    model.compile(optimizer=keras.optimizers.SGD(0.05, momentum=0.9), loss="sparse_categorical_crossentropy")
    model.save(tmp_path / "start.keras")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    (tmp_path / "job.json").write_text(json.dumps({
        "name": "round_trip", "model": "start.keras", "data": {"training": {"images": "x.npy", "labels": "y.npy"}},
        "loss": "sparse_categorical_crossentropy", "optimizer": {"class_name": "SGD", "config": {"learning_rate": 0.05, "momentum": 0.9}},
        "batch_size": EXAMPLES, "steps": STEPS}))  # each step takes all examples, so that their order says nothing
    done = shoal("train", tmp_path / "job.json", "--run_dir", tmp_path / "run", "--workers", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    for _ in range(STEPS):
        model.train_on_batch(x, y)
    return tmp_path, x, model


def test_training_goes_on_from_a_keras_archive_and_comes_back_as_one(run):
    folder, x, trained_by_keras = run
    done = shoal("export", folder / "run", "--format", "keras", "-o", folder / "back.keras")
    assert done.returncode == 0, done.stdout + done.stderr
    back = keras.models.load_model(folder / "back.keras")
    names = [v.path for v in trained_by_keras.weights]
    for name, got, expected in zip(names, back.get_weights(), trained_by_keras.get_weights(), strict=True):
        assert np.abs(got - expected).max() <= 1e-5 * np.abs(expected).max(), name
    assert np.abs(back.predict(x, verbose=0) - trained_by_keras.predict(x, verbose=0)).max() <= 1e-5

    done = shoal("predict", folder / "run", folder / "x.npy", "--output", folder / "predicted.npy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert np.abs(back.predict(x, verbose=0) - np.load(folder / "predicted.npy")).max() <= 1e-5

"""A model that Keras wrote under a mixed dtype policy: Shoal trains it in float32, says so, and gives it back with its policies."""
import json

import keras
import numpy as np

from real_cluster import shoal

EXAMPLES, CLASSES, STEPS = 24, 4, 3


def mixed_model():
    """mixed_bfloat16 but for the last layer, as Keras's guide has it, and one of mixed_float16; the input is of whole numbers."""
    layers = keras.layers
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        image = keras.Input((9, 9, 2), name="image", dtype="uint8")
        x = layers.Conv2D(6, 3, activation="relu")(layers.Rescaling(1 / 255)(image))
        x = layers.GlobalAveragePooling2D()(layers.BatchNormalization(momentum=0.8)(x))
        x = layers.Dense(8, activation="tanh", dtype="mixed_float16")(x)
        return keras.Model(image, layers.Dense(CLASSES, activation="softmax", dtype="float32")(x), name="mixed")
    finally:
        keras.config.set_dtype_policy("float32")


def in_float32(model):
    text = model.to_json()
    for policy in ("mixed_bfloat16", "mixed_float16"):
        text = text.replace(f'"{policy}"', '"float32"')
    twin = keras.models.model_from_json(text)
    twin.set_weights(model.get_weights())
    return twin


def policies(model):
    return [layer.dtype_policy.name for layer in model.layers[1:]]


def test_a_mixed_model_trains_in_float32_and_keeps_its_policies(tmp_path):
    keras.utils.clear_session()
    keras.utils.set_random_seed(5)
    random = np.random.default_rng(5)
    x = random.integers(0, 256, (EXAMPLES, 9, 9, 2)).astype(np.uint8)
    y = random.integers(0, CLASSES, EXAMPLES)
    model = mixed_model()
    assert set(policies(model)) == {"mixed_bfloat16", "mixed_float16", "float32"}
    model.save(tmp_path / "start.keras")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    (tmp_path / "job.json").write_text(json.dumps({
        "name": "mixed", "model": "start.keras", "data": {"training": {"images": "x.npy", "labels": "y.npy"}},
        "loss": "sparse_categorical_crossentropy", "optimizer": {"class_name": "SGD", "config": {"learning_rate": 0.05, "momentum": 0.9}},
        "batch_size": EXAMPLES, "steps": STEPS}))

    said = shoal("validate", tmp_path / "job.json")
    assert said.returncode == 0, said.stdout + said.stderr
    assert " cpu " in said.stdout and " float32" in said.stdout
    assert 'bfloat16 (layers "batch_normalization", "conv2d", "global_average_pooling2d" and 1 more), float16 (layer "dense")' in said.stdout

    done = shoal("train", tmp_path / "job.json", "--run_dir", tmp_path / "run", "--workers", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    twin = in_float32(model)
    twin.compile(optimizer=keras.optimizers.SGD(0.05, momentum=0.9), loss="sparse_categorical_crossentropy")
    for _ in range(STEPS):
        twin.train_on_batch(x, y)

    done = shoal("export", tmp_path / "run", "--format", "keras", "-o", tmp_path / "back.keras")
    assert done.returncode == 0, done.stdout + done.stderr
    back = keras.models.load_model(tmp_path / "back.keras")
    assert policies(back) == policies(model)
    assert back.inputs[0].dtype == "uint8"
    for variable, expected in zip(back.weights, twin.get_weights(), strict=True):
        assert variable.dtype == "float32"
        assert np.abs(variable.numpy() - expected).max() <= 1e-5 * np.abs(expected).max(), variable.path
    # What Keras computes of it is in the precision of its policies.
    assert 1e-5 < np.abs(back.predict(x, verbose=0) - twin.predict(x, verbose=0)).max() < 0.05

"""A model that Keras wrote under a mixed dtype policy: Shoal trains it in the precision that the CPU has, says which, and gives it back with its policies."""
import json

import keras
import numpy as np
import pytest

from real_cluster import shoal

EXAMPLES, CLASSES, STEPS = 24, 4, 3
# A CPU without bfloat16, to oneDNN.
WITHOUT_BFLOAT16 = {"DNNL_MAX_CPU_ISA": "AVX2"}
FLOAT16_LAYER = 'float16 (layer "dense")'


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


@pytest.fixture(name="mixed")
def mixed_fixture(tmp_path):
    """The model, its batch, and the folder of its job."""
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
    return model, x, y, tmp_path


def trained(folder, **environment):
    """The model that Shoal gives back."""
    done = shoal("train", folder / "job.json", "--run_dir", folder / "run", "--workers", "1", **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    done = shoal("export", folder / "run", "--format", "keras", "-o", folder / "back.keras")
    assert done.returncode == 0, done.stdout + done.stderr
    return keras.models.load_model(folder / "back.keras")


def trained_by_keras(model, x, y):
    """In float32."""
    twin = in_float32(model)
    twin.compile(optimizer=keras.optimizers.SGD(0.05, momentum=0.9), loss="sparse_categorical_crossentropy")
    for _ in range(STEPS):
        twin.train_on_batch(x, y)
    return twin


def largest_difference(model, twin):
    """Of all variables, relative to the largest value of each."""
    return max(np.abs(variable.numpy() - expected).max() / np.abs(expected).max()
               for variable, expected in zip(model.weights, twin.get_weights(), strict=True))


def test_a_mixed_model_trains_in_float32_and_keeps_its_policies(mixed):
    model, x, y, folder = mixed
    said = shoal("validate", folder / "job.json", **WITHOUT_BFLOAT16)
    assert said.returncode == 0, said.stdout + said.stderr
    assert " cpu " in said.stdout and " float32" in said.stdout
    assert 'bfloat16 (layers "batch_normalization", "conv2d", "global_average_pooling2d" and 1 more), ' + FLOAT16_LAYER in said.stdout

    back, twin = trained(folder, **WITHOUT_BFLOAT16), trained_by_keras(model, x, y)
    assert policies(back) == policies(model)
    assert back.inputs[0].dtype == "uint8"
    assert {variable.dtype for variable in back.weights} == {"float32"}
    assert largest_difference(back, twin) <= 1e-5
    # What Keras computes of it is in the precision of its policies.
    assert 1e-5 < np.abs(back.predict(x, verbose=0) - twin.predict(x, verbose=0)).max() < 0.05


def test_a_cpu_with_bfloat16_trains_a_mixed_model_in_it(mixed):
    model, x, y, folder = mixed
    said = shoal("validate", folder / "job.json")
    assert said.returncode == 0, said.stdout + said.stderr
    assert FLOAT16_LAYER in said.stdout
    if '"conv2d"' in said.stdout:
        pytest.skip("This CPU has no bfloat16.")
    back, twin = in_float32(trained(folder)), trained_by_keras(model, x, y)
    assert largest_difference(back, twin) > 1e-5
    expected = twin.predict(x, verbose=0)
    moved = np.abs(in_float32(model).predict(x, verbose=0) - expected).max()
    assert np.abs(back.predict(x, verbose=0) - expected).max() < 0.3 * moved

"""Every activation that Keras knows by name, Shoal does too, but the one that Keras itself cannot compute by its name."""
import keras
import numpy as np
import pytest
from keras.src.activations import ALL_OBJECTS_DICT

from real_cluster import shoal


def model_with(name):
    keras.utils.clear_session()
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(4, activation=name)])


def test_every_activation_of_keras_is_known(tmp_path):
    names = sorted(set(ALL_OBJECTS_DICT) - {"threshold"})
    assert {"sparsemax", "glu", "relu6"} < set(names)
    for name in names:
        (tmp_path / "model.json").write_text(model_with(name).to_json())
        done = shoal("model", "summary", tmp_path / "model.json")
        assert done.returncode == 0, name + ": " + done.stderr


def test_keras_writes_threshold_and_cannot_compute_it(tmp_path):
    model = model_with("threshold")
    (tmp_path / "model.json").write_text(model.to_json())
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        model(np.zeros((1, 4)))
    refused = shoal("model", "summary", tmp_path / "model.json")
    assert refused.returncode == 78 and '"threshold" ' in refused.stderr

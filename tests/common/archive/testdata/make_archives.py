"""Writes the files beside it, with the Keras that it is run with:

    nested.keras         Keras 3.15.1; nested.json is its model as to_json() gives it
    nested.weights.h5    the same values by Keras 3.0.5, which writes no names: run with --weights_only
    nested.h5            the same in Keras's old format
    types.h5             numbers of several types
    external_link.h5, external_data.h5, soft_link.h5, chunked.h5, latest.h5
                         what Keras does not write: values elsewhere, in pieces, in the newest format

The k-th number of all weights, in the order of model.weights, is k / 4.
"""

import pathlib
import sys

import h5py
import keras
import numpy as np
from keras import layers

HERE = pathlib.Path(__file__).parent


def model():
    tower = keras.Sequential(
        [keras.Input((3,)), layers.Dense(2, name="wide"), layers.Dropout(0.5, name="drop"),
         layers.BatchNormalization(name="norm")], name="tower")
    first, second = keras.Input((2,), name="first"), keras.Input((2,), name="second")
    shared = layers.Dense(3, name="shared")
    both = layers.Add(name="both")([shared(first), shared(second)])
    return keras.Model([first, second], layers.Dense(1, name="answer")(tower(both)), name="nested")


def write_foreign():
    with h5py.File(HERE / "external_link.h5", "w") as file:
        file["layers/dense/vars/0"] = h5py.ExternalLink("other.h5", "layers/dense/vars/0")
    with h5py.File(HERE / "external_data.h5", "w") as file:
        file.create_dataset("layers/dense/vars/0", (2,), "f4", external=[("/etc/hostname", 0, 8)])
    with h5py.File(HERE / "soft_link.h5", "w") as file:
        file["layers/dense/vars/1"] = np.zeros(2, "f4")
        file["layers/dense/vars/0"] = h5py.SoftLink("/layers/dense/vars/1")
    with h5py.File(HERE / "chunked.h5", "w") as file:
        file.create_dataset("layers/dense/vars/0", (8,), "f4", chunks=(4,), compression="gzip")
    with h5py.File(HERE / "types.h5", "w") as file:
        for dtype in ("f2", "f4", "f8", "i4", "i8", "u4", "u8", ">f4", "i2"):
            file[f"a/{dtype}"] = np.array([0, 1.5, 5, 2**-15] if "f" in dtype else [0, 1, 5, 7], dtype)
    with h5py.File(HERE / "latest.h5", "w", libver="latest") as file:
        file["layers/dense/vars/0"] = np.zeros(2, "f4")


def main():
    nested = model()
    k = 0
    for weight in nested.weights:
        size = int(np.prod(weight.shape))
        weight.assign((np.arange(k, k + size) / 4).reshape(weight.shape).astype("float32"))
        k += size
    if "--weights_only" in sys.argv:
        nested.save_weights(HERE / "nested.weights.h5")
        return
    nested.save(HERE / "nested.keras")
    nested.save(HERE / "nested.h5")
    (HERE / "nested.json").write_text(nested.to_json())
    write_foreign()


main()

import contextlib
import unittest.mock

import keras
import numpy as np


@contextlib.contextmanager
def undrawn_weights():
    """Models that are made meanwhile begin with zeros: JAX compiles an initializer anew for each shape, which takes longer than all else."""
    def zeros(_self, shape, dtype=None):
        return keras.ops.convert_to_tensor(np.zeros(shape, dtype))

    with unittest.mock.patch.object(keras.initializers.VarianceScaling, "__call__", zeros):
        yield

"""Writes keras_stft.json: kernels that keras.initializers.STFT makes, beside its configs.

    KERAS_BACKEND=jax python make_keras_stft.py > keras_stft.json
"""
import json
import sys

import keras

WINDOWS = ["bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "cosine", "flattop", "hamming", "hann", "nuttall", "triang"]
SCALINGS = ["density", "spectrum", None]

cases = [{"side": "imag" if i % 2 else "real", "window": window, "scaling": SCALINGS[i % 3], "periodic": i % 4 > 1, "length": 5 + i % 2}
         for i, window in enumerate(WINDOWS + WINDOWS[::-1])]
cases += [{"window": None, "scaling": None, "length": 7}, {"window": [0.1, 0.5, -0.3, 1.0], "scaling": "spectrum", "length": 4}, {"length": 1}]
for case in cases:
    options = {key: value for key, value in case.items() if key != "length"}
    case["values"] = [round(float(x), 7) for x in keras.ops.convert_to_numpy(keras.initializers.STFT(**options)((case["length"], 1, 4))).ravel()]
json.dump({"keras": keras.__version__, "frequencies": 4, "cases": cases}, sys.stdout, indent=1)
sys.stdout.write("\n")

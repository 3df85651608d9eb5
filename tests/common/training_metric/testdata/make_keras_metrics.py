"""Writes keras_metrics.json: what Keras's metrics come to, over batches of unlike size, for Shoal's to be compared with.

    pip install keras==3.15.1 jax "numpy>=2"
    KERAS_BACKEND=jax python make_keras_metrics.py > keras_metrics.json
"""
import json
import os

os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np

rng = np.random.default_rng(3)


def rounded(values):
    """Few digits, which float32 and JSON both have."""
    return np.round(values, 3).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


N = 41
classes = rng.integers(0, 7, N)
logits = rng.normal(0, 1, (N, 7)) + 1.2 * np.eye(7)[classes]
probabilities = rounded(softmax(logits))
probabilities[5] = probabilities[6] = 0.25  # ties
binary = (rng.uniform(0, 1, (N, 1)) < 0.4).astype(np.float32)
score = rounded(np.clip(rng.normal(0.35, 0.25, (N, 1)) + 0.3 * binary, 0, 1))
score[:4, 0] = [0, 1, 0.5, 0.25]
several = (rng.uniform(0, 1, (N, 3)) < 0.5).astype(np.float32)
scores = rounded(np.clip(rng.uniform(0, 1, (N, 3)) * 0.7 + 0.3 * several, 0, 1))
numbers, near = rounded(rng.normal(0.5, 1, (N, 3))), None
near = rounded(numbers + rng.normal(0, 0.3, (N, 3)))

data = {
    "sparse": (probabilities, classes.astype(np.float32)),
    "categorical": (probabilities, np.eye(7, dtype=np.float32)[classes]),
    "binary": (score, binary),
    "logits": (rounded(np.log((score + 0.01) / (1.01 - score))), binary),
    "several": (scores, several),
    "numbers": (near, numbers),
    "none_positive": (score, binary * 0),
}
wanted = [
    ("sparse", "SparseCategoricalAccuracy", {}), ("sparse", "SparseTopKCategoricalAccuracy", {"k": 3}),
    ("sparse", "SparseTopKCategoricalAccuracy", {}), ("categorical", "CategoricalAccuracy", {}),
    ("categorical", "TopKCategoricalAccuracy", {"k": 2}), ("binary", "BinaryAccuracy", {}),
    ("several", "BinaryAccuracy", {"threshold": 0.7}), ("binary", "AUC", {}), ("several", "AUC", {"num_thresholds": 11}),
    ("logits", "AUC", {"from_logits": True}), ("binary", "AUC", {"curve": "PR"}), ("several", "AUC", {"curve": "PR", "num_thresholds": 20}),
    ("several", "AUC", {"summation_method": "minoring"}), ("several", "AUC", {"summation_method": "majoring", "curve": "PR"}),
    ("none_positive", "AUC", {}), ("binary", "Precision", {}), ("several", "Precision", {"thresholds": 0.6}),
    ("several", "Precision", {"class_id": 1}), ("none_positive", "Precision", {}), ("binary", "Recall", {}),
    ("several", "Recall", {"thresholds": [0.6], "class_id": 2}), ("none_positive", "Recall", {}),
    ("numbers", "MeanSquaredError", {}), ("numbers", "MeanAbsoluteError", {}), ("numbers", "RootMeanSquaredError", {}),
    ("numbers", "MeanAbsolutePercentageError", {}), ("several", "MeanSquaredLogarithmicError", {}),
]
weights = rounded(np.random.default_rng(4).uniform(0, 3, N))
weights[7] = 0
cases = []
for name, class_name, config in wanted:
    prediction, target = data[name]
    metric = getattr(keras.metrics, class_name)(**config)
    for begin, end in ((0, 16), (16, 32), (32, N)):
        metric.update_state(target[begin:end], prediction[begin:end])
    weighted = getattr(keras.metrics, class_name)(**config)
    for begin, end in ((0, 16), (16, 32), (32, N)):
        weighted.update_state(target[begin:end], prediction[begin:end], sample_weight=weights[begin:end])
    cases.append({"data": name, "class_name": class_name, "config": config, "result": float(metric.result()),
                  "weighted": float(weighted.result())})
print(json.dumps({"keras": keras.__version__, "weights": [float(f"{v:.4g}") for v in weights],
                  "data": {k: {"shape": list(p.shape), "prediction": [float(f"{v:.4g}") for v in p.ravel()],
                               "target": [float(f"{v:.4g}") for v in np.asarray(t).ravel()]} for k, (p, t) in data.items()},
                  "cases": cases}, indent=None, separators=(",", ":")).replace('},{', '},\n{'))

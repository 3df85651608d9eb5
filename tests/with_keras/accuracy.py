"""The test accuracy that examples/fashion_mnist reaches in Keras and here, with 1 worker and with 4: the mean over seeds.

    KERAS_BACKEND=jax build/venv/bin/python tests/with_keras/accuracy.py [--epochs 10] [--seeds 1 2 3] [--examples 60000]

The same model.json, optimizer, batch size and data in both; random numbers differ.
"""
import argparse
import csv
import gzip
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import keras
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster/fixtures"))
from real_cluster import BIN, SOURCE  # noqa: E402

EXAMPLE = SOURCE / "examples/fashion_mnist"


def read_idx(path):
    data = gzip.decompress(pathlib.Path(path).read_bytes())
    rank = data[3]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(struct.unpack(f">{rank}I", data[4:4 + 4 * rank]))


class Comparison:
    """The job of the example with its first `examples` training images, in a folder of its own."""

    def __init__(self, folder, epochs, examples):
        self.folder, self.epochs = pathlib.Path(folder), epochs
        self.job = json.loads((EXAMPLE / "job.json").read_text())
        self.job |= {"model": str(EXAMPLE / "model.json"), "epochs": epochs, "data": {}}
        self.data = {}
        for part, count in (("training", examples), ("test", None)):
            source = json.loads((EXAMPLE / "job.json").read_text())["data"][part]
            images, labels = (read_idx(source[kind])[:count] for kind in ("images", "labels"))
            self.data[part] = images[..., None], labels
            np.save(self.folder / f"{part}-images.npy", images)
            np.save(self.folder / f"{part}-labels.npy", labels)
            self.job["data"][part] = {"images": f"{part}-images.npy", "labels": f"{part}-labels.npy"}
        (self.folder / "job.json").write_text(json.dumps(self.job))

    def of_keras(self, seed):
        keras.utils.set_random_seed(seed)
        model = keras.models.model_from_json((EXAMPLE / "model.json").read_text())
        model.compile(optimizer=keras.optimizers.deserialize(self.job["optimizer"]), loss=keras.losses.deserialize(self.job["loss"]),
                      metrics=["accuracy"])
        images, labels = self.data["training"]
        model.fit(images, labels, batch_size=self.job["batch_size"], epochs=self.epochs, verbose=0)
        return model.evaluate(*self.data["test"], batch_size=500, verbose=0, return_dict=True)["accuracy"]

    def of_shoal(self, seed, workers):
        run = self.folder / f"run-{workers}-{seed}"
        subprocess.run([BIN / "shoal", "train", self.folder / "job.json", "--run_dir", run, "--seed", str(seed),
                        "--workers", str(workers)], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        with open(run / "history.csv", newline="") as file:
            return float(list(csv.DictReader(file))[-1]["val_accuracy"])

    def means(self, seeds, report=lambda line: None):
        """{who: the mean accuracy}, and a line for each run to `report`."""
        of = {"Keras": self.of_keras, "Shoal, 1 worker": lambda seed: self.of_shoal(seed, 1),
              "Shoal, 4 workers": lambda seed: self.of_shoal(seed, 4)}
        found = {who: [] for who in of}
        for seed in seeds:
            for who, accuracy in of.items():
                found[who].append(accuracy(seed))
                report(f"seed {seed}, {who}: {found[who][-1]:.4f}")
        return {who: float(np.mean(values)) for who, values in found.items()}


def main():
    parser = argparse.ArgumentParser(description="The accuracy of examples/fashion_mnist in Keras and here.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--examples", type=int, default=60000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        means = Comparison(folder, given.epochs, given.examples).means(given.seeds, lambda line: print(line, flush=True))
    for who, accuracy in means.items():
        print(f"{who}: mean {accuracy:.4f}, {100 * (accuracy - means['Keras']):+.2f} points")


if __name__ == "__main__":
    main()

"""How pictures travel."""
import json
import struct
import types

import training
from programs import Ended
from turned_pictures import SUFFIX, turn

HEADER = bytes([0, 0, 8, 3])


def test_turning_exchanges_rows_and_columns():
    pictures = HEADER + struct.pack(">III", 2, 2, 3) + b"abcdefABCDEF"
    assert turn(pictures) == HEADER + struct.pack(">III", 2, 3, 2) + b"adbecfADBECF"
    assert turn(turn(pictures)) == pictures


def test_a_cluster_trains_on_pictures_as_they_were(tmp_path, monkeypatch):
    pictures = HEADER + struct.pack(">III", 1, 2, 2) + b"abcd"
    (tmp_path / "data").mkdir()
    (tmp_path / f"data/train-images{SUFFIX}").write_bytes(turn(pictures))
    (tmp_path / "data/train-labels").write_bytes(b"labels")
    (tmp_path / "job.json").write_text(json.dumps({"data": {"training": {"images": "/of/train-images.gz", "labels": "/of/train-labels.gz"}}}))
    monkeypatch.setattr(training, "HERE", tmp_path)
    read = {}

    def train(session, folder, *_):
        files = json.loads((folder / "job.json").read_text())["data"]["training"]
        read.update({what: open(path, "rb").read() for what, path in files.items()})
        return Ended(0, "", 1), {"computes": []}, []

    monkeypatch.setattr(training, "train", train)
    training.train_fashion_mnist(types.SimpleNamespace(arguments=types.SimpleNamespace(epochs=1), on_gpu=False), 1)
    assert read == {"images": pictures, "labels": b"labels"}

"""What is done with a trained model on one machine: shoal evaluate, shoal predict."""
import csv
import json
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import zlib

import numpy as np
import pytest

from safetensors.numpy import load_file

from real_cluster import BIN, PATIENCE_SECONDS, Process, shoal, wait_for, write_job
from run_history import history

EXAMPLES = 64  # of the test set


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of three epochs, each with a checkpoint and a line of history; its batches leave a rest of the test set."""
    directory = tmp_path_factory.mktemp("trained")
    job = write_job(directory, 400, 24, epochs=3, checkpoint={"every_steps": 1000, "keep": 9},
                    optimizer={"class_name": "SGD", "config": {"learning_rate": 0.05}},
                    metrics=["accuracy", {"class_name": "SparseTopKCategoricalAccuracy", "config": {"k": 2, "name": "top2"}}])
    done = shoal("train", job, "--run_dir", directory / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def test_images(directory):
    return np.frombuffer((directory / "test-images.idx").read_bytes()[16:], np.uint8).reshape(-1, 8, 8)


test_images.__test__ = False


def outputs(run, images):
    """What the small model that a run has saved makes of pictures, computed here."""
    model = load_file(run / "model/model.safetensors")
    hidden = images.reshape(-1, 64).astype(np.float32) / 255 @ model["dense/kernel"] + model["dense/bias"]
    return np.maximum(hidden, 0) @ model["dense_1/kernel"] + model["dense_1/bias"]


def evaluate(*arguments):
    done = shoal("evaluate", *arguments, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_every_checkpoint_evaluates_to_what_the_run_wrote_of_it(trained):
    run = trained / "run"
    checkpoints = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert len(checkpoints) == 3
    for name, epoch in zip(checkpoints, history(run)):
        result = evaluate(run, "--checkpoint", name)
        assert pathlib.Path(result["checkpoint"]).name == name and result["examples"] == EXAMPLES
        assert result["loss"] == pytest.approx(float(epoch["val_loss"]), rel=2e-5)
        assert list(result["metrics"]) == ["accuracy", "top2"]
        for metric, value in result["metrics"].items():
            assert value == pytest.approx(float(epoch[f"val_{metric}"]), rel=1e-5)
    # Without a name the newest; by its own path; and for people.
    assert evaluate(run) == result
    assert evaluate(run / "checkpoints" / checkpoints[-1]) == result
    assert evaluate(run, "--batch_size", 64)["loss"] == pytest.approx(result["loss"], rel=1e-5)
    # The loss of a checkpoint depends on the device and the threads by rounding only.
    for compute in (["--threads", 1], ["--device", "reference"]):
        assert evaluate(run, *compute)["loss"] == pytest.approx(result["loss"], rel=1e-5)
    no_gpu = shoal("evaluate", run, "--device", "cuda:99")
    assert no_gpu.returncode == 78 and "--device" in no_gpu.stderr, no_gpu.stderr
    text = shoal("evaluate", run).stdout
    assert f"\nloss        {float(epoch['val_loss']):.4f}\n" in text and "\naccuracy " in text and "64 examples" in text


def test_the_best_checkpoint_is_the_callbacks_one(tmp_path):
    # By what is highest, so that it is not the last.
    job = write_job(tmp_path, epochs=3, callbacks=[{"class_name": "ModelCheckpoint", "config": {"monitor": "val_loss", "mode": "max"}}])
    done = shoal("train", job, "--run_dir", tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(epoch["val_loss"]) for epoch in history(tmp_path / "run")]
    assert max(losses) != losses[-1]
    assert evaluate(tmp_path / "run", "--best")["loss"] == pytest.approx(max(losses), rel=1e-6)
    assert evaluate(tmp_path / "run")["loss"] == pytest.approx(losses[-1], rel=1e-6)
    said = shoal("evaluate", tmp_path / "run", "--best").stderr
    assert f"best val_loss: {max(losses):.6g}, of epoch {losses.index(max(losses)) + 1}, in " in said, said
    both = shoal("evaluate", tmp_path / "run", "--best", "--checkpoint", "step-1")
    assert both.returncode == 64


def test_other_data_in_the_place_of_the_test_set(trained, tmp_path):
    run = trained / "run"
    on_training = evaluate(run, "training")
    assert on_training["examples"] == 400
    assert evaluate(run, "--set", f"data.test.images={trained}/train-images.idx",
                    "--set", f"data.test.labels={trained}/train-labels.idx") == on_training
    # Relative paths are the caller's.
    relative = [f"data.test.{part}={os.path.relpath(trained)}/train-{part}.idx" for part in ("images", "labels")]
    assert evaluate(run, "--set", relative[0], "--set", relative[1]) == on_training
    # A format that the job has no data of does not say where the labels are.
    np.savez(tmp_path / "new.npz", x=np.zeros((2, 8, 8)), y=np.zeros(2))
    rejected = shoal("evaluate", run, tmp_path / "new.npz")
    assert rejected.returncode == 78 and "data.test=" in rejected.stderr
    missing = shoal("evaluate", run, tmp_path / "new.npy")
    assert missing.returncode != 0 and f"{tmp_path}/new.npy: No such file" in missing.stderr and f'"{tmp_path}/new.npz"' in missing.stderr
    described = {"format": "npz", "path": str(tmp_path / "new.npz"), "features": "x", "labels": "y"}
    assert evaluate(run, "--set", f"data.test={json.dumps(described)}")["examples"] == 2


def test_a_damaged_checkpoint_is_named_and_passed_over(trained, tmp_path):
    run = tmp_path / "run"
    checkpoints = sorted((trained / "run/checkpoints").iterdir())
    for checkpoint in checkpoints[-2:]:
        (run / "checkpoints" / checkpoint.name).mkdir(parents=True)
        for file in checkpoint.iterdir():
            (run / "checkpoints" / checkpoint.name / file.name).write_bytes(file.read_bytes())
    older, newest = sorted((run / "checkpoints").iterdir())
    file = newest / "model-00001-of-00001.safetensors"
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    done = shoal("evaluate", run, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["checkpoint"] == str(older)
    assert str(file) in done.stderr
    for arguments in ((run, "--checkpoint", newest.name), (newest,)):
        rejected = shoal("evaluate", *arguments)
        assert rejected.returncode == 65 and str(file) in rejected.stderr and not rejected.stdout
    (older / "manifest.json").write_text("{")
    rejected = shoal("evaluate", run)
    assert rejected.returncode == 65 and str(file) in rejected.stderr and str(older) in rejected.stderr
    rejected = shoal("evaluate", run, "--checkpoint", "step-7")
    assert rejected.returncode == 78 and newest.name in rejected.stderr


def test_a_path_without_a_run_is_named(trained, tmp_path):
    for path, text in ((tmp_path, "there is no checkpoint"), (trained / "job.json", "give the run directory")):
        rejected = shoal("evaluate", path)
        assert rejected.returncode == 78 and text in rejected.stderr, rejected.stderr
    labels = bytearray((trained / "test-labels.idx").read_bytes())
    labels[8 + 3] = 9
    (tmp_path / "labels.idx").write_bytes(labels)
    rejected = shoal("evaluate", trained / "run", "--set", f"data.test.labels={tmp_path}/labels.idx")
    assert rejected.returncode != 0 and "example 3" in rejected.stderr and "label 9" in rejected.stderr


def test_averaged_weights_are_what_a_model_is_evaluated_with(tmp_path):
    job = write_job(tmp_path, optimizer={"class_name": "SGD", "config": {"learning_rate": 0.05, "use_ema": True, "ema_momentum": 0.5}})
    done = shoal("train", job, "--run_dir", tmp_path / "run", "--workers", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    result = evaluate(tmp_path / "run")
    assert result["averaged"] is True and "use_ema" in shoal("evaluate", tmp_path / "run").stdout
    # The saved model holds the averages; the history is that of the variables themselves.
    labels = np.frombuffer((tmp_path / "test-labels.idx").read_bytes()[8:], np.uint8)
    logits = outputs(tmp_path / "run", test_images(tmp_path)).astype(np.float64)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(labels)), labels]
    assert result["loss"] == pytest.approx(losses.mean(), rel=1e-5)
    assert result["loss"] != pytest.approx(float(history(tmp_path / "run")[-1]["val_loss"]), rel=1e-4)


def big_test_set(directory, examples):
    """Of the small job's shape; too large to be over in a moment at one example a batch."""
    images, labels = directory / "big-images.idx", directory / "big-labels.idx"
    for path, header, size in ((images, struct.pack(">IIII", 0x803, examples, 8, 8), 64), (labels, struct.pack(">II", 0x801, examples), 1)):
        path.write_bytes(header)
        os.truncate(path, len(header) + size * examples)
    return ["--set", f"data.test.images={images}", "--set", f"data.test.labels={labels}", "--batch_size", "1"]


def test_a_terminal_shows_how_far_it_is_and_ctrl_c_ends_it_in_order(trained, tmp_path):
    arguments = [BIN / "shoal", "evaluate", trained / "run", *big_test_set(tmp_path, 20_000_000)]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(arguments[0], list(map(str, arguments)), {**os.environ, "TERM": "xterm"})
    seen = b""
    try:
        while b" examples/s  " not in seen:
            assert select.select([terminal], [], [], PATIENCE_SECONDS)[0], seen[-2000:]
            seen += os.read(terminal, 4096)
        assert b"evaluating: " in seen and b" of 20,000,000 examples" in seen and b" left" in seen
        os.write(terminal, b"\x03")
        try:
            while select.select([terminal], [], [], PATIENCE_SECONDS)[0]:
                chunk = os.read(terminal, 4096)
                seen += chunk
                if not chunk:
                    break
        except OSError:  # the other side has gone
            pass
        ended, status = os.waitpid(child, 0)
        child = 0
        assert os.waitstatus_to_exitcode(status) == 143, seen[-2000:]
        assert b"reached example" in seen
    finally:
        os.close(terminal)
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def predict(*arguments):
    done = shoal("predict", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rows(text):
    return list(csv.reader(text.splitlines()))


def test_predictions_in_every_form_are_those_of_the_model(trained, tmp_path):
    run, images = trained / "run", test_images(trained)
    expected = outputs(run, images)
    said = predict(run, "--output", tmp_path / "out.npy")
    assert "64 predictions" in said
    exact = np.load(tmp_path / "out.npy")
    assert exact.dtype == np.float32 and exact.shape == (64, 4)
    np.testing.assert_allclose(exact, expected, rtol=0, atol=1e-5)
    # Text reads back as the same numbers; a file and standard output are the same.
    header, *table = rows(predict(run))
    assert header == ["example", "0", "1", "2", "3"] and [row[0] for row in table] == [str(i) for i in range(64)]
    assert np.array_equal(np.array([row[1:] for row in table], np.float32), exact)
    predict(run, "test", "--output", tmp_path / "out.csv")
    assert rows((tmp_path / "out.csv").read_text()) == [header, *table]
    lines = predict(run, "--json").splitlines()
    assert np.array_equal(np.array([json.loads(line)["output"] for line in lines], np.float32), exact)
    predict(run, "--output", tmp_path / "top.jsonl", "--top", 2)
    best = [json.loads(line)["top"] for line in (tmp_path / "top.jsonl").read_text().splitlines()]
    assert [[int(each["class"]) for each in top] for top in best] == np.argsort(-exact, kind="stable")[:, :2].tolist()
    likely = np.array([row[1:] for row in rows(predict(run, "--probabilities"))[1:]], float)
    powers = np.exp(exact.astype(float) - exact.max(axis=1, keepdims=True))
    np.testing.assert_allclose(likely, powers / powers.sum(axis=1, keepdims=True), atol=1e-6)


def predict_on_terminal(*arguments):
    """Returns what a terminal gets on standard output, and what standard error gets."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen([BIN / "shoal", "predict", *map(str, arguments)], stdout=follower, stderr=subprocess.PIPE,
                          env=environment) as command:
        os.close(follower)
        said = b""
        try:
            while part := os.read(leader, 1 << 16):
                said += part
        except OSError:  # EIO: the command has ended
            pass
        errors = command.stderr.read()
        assert command.wait(PATIENCE_SECONDS) == 0, errors
    os.close(leader)
    return said.decode().replace("\r\n", "\n"), errors.decode()


def test_a_terminal_gets_the_class_of_the_first_examples(trained):
    run = trained / "run"
    said, hint = predict_on_terminal(run)
    header, *table = rows(said)
    all_likely = np.array([row[1:] for row in rows(predict(run, "--probabilities"))[1:]], np.float32)
    assert header == ["example", "class_1", "output_1"] and [row[0] for row in table] == [str(i) for i in range(50)]
    assert [int(row[1]) for row in table] == all_likely.argmax(axis=1)[:50].tolist()
    # The last batch is a smaller one, so sums may round in another way.
    np.testing.assert_allclose(np.array([row[2] for row in table], float), all_likely.max(axis=1)[:50], atol=1e-6)
    assert "50 of 64" in hint and "--output" in hint
    # What is asked for in words stays as it is.
    said, hint = predict_on_terminal(run, "--top", 2)
    without_values = [[row[0], row[1], row[3]] for row in rows(said)]
    assert without_values == [[row[0], row[1], row[3]] for row in rows(predict(run, "--top", 2))[:51]]
    assert "50 of 64" in hint


def test_examples_without_labels_of_any_kind_of_file(trained, tmp_path):
    run, images = trained / "run", test_images(trained)[:7]
    expected = outputs(run, images)
    np.save(tmp_path / "new.npy", images)
    np.savez(tmp_path / "one.npz", anything=images)
    np.savez(tmp_path / "two.npz", other=np.zeros(3), input=images)
    for name in ("new.npy", "one.npz", "two.npz"):
        predict(run, tmp_path / name, "--output", tmp_path / "out.npy", "--overwrite")
        np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=0, atol=1e-5)
    np.savez(tmp_path / "strange.npz", a=images, b=images)
    rejected = shoal("predict", run, tmp_path / "strange.npz")
    assert rejected.returncode == 78 and "input.npy" in rejected.stderr and "a.npy" in rejected.stderr
    np.save(tmp_path / "wide.npy", np.zeros((2, 9, 9)))
    rejected = shoal("predict", run, tmp_path / "wide.npy")
    assert rejected.returncode == 78 and "wide.npy" in rejected.stderr and "9" in rejected.stderr
    rejected = shoal("predict", run, tmp_path / "new.npy", tmp_path / "one.npz")
    assert rejected.returncode == 78 and "one kind" in rejected.stderr


def png(image):
    """A grey picture, as a PNG."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    height, width = image.shape
    lines = b"".join(b"\0" + row.tobytes() for row in image)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def test_pictures_are_named_and_so_are_the_classes_of_their_folders(trained, tmp_path):
    images, labels = test_images(trained), (trained / "test-labels.idx").read_bytes()[8:]
    classes = ["bottom left", "bottom, right", "top left", "top right"]  # not in the order of the quarters
    for i, image in enumerate(images):
        folder = tmp_path / "pictures" / classes[labels[i]]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i:02}.png").write_bytes(png(image))
    folder = {"format": "image_folder", "path": "pictures"}
    job = write_job(tmp_path, 64, data={"training": folder, "test": folder}, epochs=3)
    run = tmp_path / "run"
    sheet = tmp_path / "batch.png"
    shown = shoal("dataset", "show", job, "--output", sheet)
    assert shown.returncode == 0, shown.stderr
    for line in shown.stdout.splitlines()[2:]:
        example, name = line.split(": ")
        assert name == sorted(classes[label] for label in labels)[int(example)]
    sheet.write_text("mine")
    rejected = shoal("dataset", "show", job, "--output", sheet)
    assert rejected.returncode == 78 and "--overwrite" in rejected.stderr and sheet.read_text() == "mine"
    assert shoal("dataset", "show", job, "--output", sheet, "--overwrite").returncode == 0
    # A typing error in the path is no error here, as the data may be elsewhere, but it is said.
    checked = shoal("validate", job, "--set", f"data.training.path={tmp_path}/picturse")
    assert checked.returncode == 0 and "warning: " in checked.stdout and f'"{tmp_path}/pictures"' in checked.stdout
    done = shoal("train", job, "--run_dir", run)
    assert done.returncode == 0, done.stdout + done.stderr
    # The job's own, in the order of image_dataset_from_directory, by their paths in the folder.
    header, *table = rows(predict(run))
    assert header == ["example", *classes]
    ordered = sorted(range(64), key=lambda i: (classes[labels[i]], i))
    assert [row[0] for row in table] == [f"{classes[labels[i]]}/{i:02}.png" for i in ordered]
    expected = outputs(run, images[ordered])
    np.testing.assert_allclose(np.array([row[1:] for row in table], np.float32), expected, rtol=0, atol=1e-5)
    # A folder without classes, and pictures by name in the order in which they are given.
    flat = tmp_path / "flat"
    flat.mkdir()
    for i in (3, 1, 2):
        (flat / f"{i}.png").write_bytes(png(images[i]))
    (flat / "readme.txt").write_text("no picture")
    rejected = shoal("predict", run, flat / "readme.txt", flat / "1.png")
    assert rejected.returncode == 78 and f"{flat}/readme.txt: " in rejected.stderr
    names = [row[0] for row in rows(predict(run, flat))[1:]]
    assert names == [str(flat / f"{i}.png") for i in (1, 2, 3)]
    one, two = [json.loads(line) for line in predict(run, flat / "3.png", flat / "1.png", "--json", "--top", 1).splitlines()]
    assert [one["example"], two["example"]] == [str(flat / "3.png"), str(flat / "1.png")]
    assert one["top"][0]["class"] == classes[int(np.argmax(outputs(run, images[3:4])))]
    # A folder with labels is evaluated, also when it is another one.
    assert evaluate(run, tmp_path / "pictures")["loss"] == evaluate(run)["loss"]
    # What cannot be read is named, and nothing is written.
    (flat / "2.png").write_bytes(png(images[2])[:60])
    rejected = shoal("predict", run, flat, "--output", tmp_path / "flat.csv")
    assert rejected.returncode == 65 and str(flat / "2.png") in rejected.stderr
    assert not list(tmp_path.glob("flat.csv*"))
    # Where the job may skip it, it has a row without values, and the others keep theirs.
    skip = ["--set", "data.test.damaged=skip"]
    done = shoal("predict", run, flat, *skip)
    assert done.returncode == 0 and str(flat / "2.png") in done.stderr and "1 of 3 examples" in done.stderr
    header, *table = rows(done.stdout)
    assert [row[0] for row in table] == [str(flat / f"{i}.png") for i in (1, 2, 3)] and table[1][1:] == [""] * 4
    np.testing.assert_allclose(np.array([row[1:] for row in table[::2]], np.float32), outputs(run, images[[1, 3]]), rtol=0, atol=1e-5)
    predict(run, flat, *skip, "--output", tmp_path / "flat.npy")
    assert np.isnan(np.load(tmp_path / "flat.npy")).any(axis=1).tolist() == [False, True, False]


def test_the_training_folder_numbers_the_classes_of_every_folder(trained, tmp_path):
    images, labels = test_images(trained), (trained / "test-labels.idx").read_bytes()[8:]
    classes = ["a", "b", "c", "d"]
    for i, image in enumerate(images):
        for folder in ["training", "test"][:1 if labels[i] < 2 else 2]:  # c and d alone in the test set
            path = tmp_path / folder / classes[labels[i]] / f"{i:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(image))
    data = {name: {"format": "image_folder", "path": name} for name in ("training", "test")}
    job = write_job(tmp_path, 64, data=data, epochs=3, metrics=["accuracy"])
    run = tmp_path / "run"
    done = shoal("train", job, "--run_dir", run)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = [i for i in range(64) if labels[i] >= 2]
    right = (outputs(run, images[tested]).argmax(axis=1) == np.array([labels[i] for i in tested])).mean()
    assert right > 0  # as labels of their own, 0 and 1, few would be
    assert float(history(run)[-1]["val_accuracy"]) == pytest.approx(right)
    assert evaluate(run)["metrics"]["accuracy"] == pytest.approx(right)
    # A folder of another class is rejected, by every command that needs its number.
    (tmp_path / "other/c").mkdir(parents=True)
    (tmp_path / "other/e").mkdir()
    for name in "ce":
        (tmp_path / "other" / name / "0.png").write_bytes(png(images[0]))
    other = ["--set", f"data.test.path={tmp_path}/other"]
    for arguments in (["evaluate", run, tmp_path / "other"], ["evaluate", run, *other], ["validate", job, *other],
                      ["train", job, "--run_dir", tmp_path / "run2", *other]):
        rejected = shoal(*arguments)
        assert rejected.returncode == 78, arguments
        assert f"{tmp_path}/other/e: " in rejected.stderr and ": a, b, c, d. " in rejected.stderr
    assert len(rows(predict(run, *other))) == 3
    # The run knows them without the training data.
    (tmp_path / "training").rename(tmp_path / "elsewhere")
    assert evaluate(run)["metrics"]["accuracy"] == pytest.approx(right)
    assert rows(predict(run))[0] == ["example", *classes]
    # One that does not name them, as that of a cluster whose coordinator sees no data, numbers folders, and says so.
    described = {"format": "image_folder", "path": str(tmp_path / "training")}
    said = shoal("evaluate", run, "--set", f"data.training={json.dumps(described)}")
    assert said.returncode == 0 and "data.training.class_names=" in said.stderr


def test_an_existing_file_stays_and_no_partial_one_appears(trained, tmp_path):
    run, path = trained / "run", tmp_path / "out.csv"
    path.write_text("mine")
    rejected = shoal("predict", run, "--output", path)
    assert rejected.returncode == 78 and str(path) in rejected.stderr and "--overwrite" in rejected.stderr and path.read_text() == "mine"
    predict(run, "--output", path, "--overwrite")
    assert len(rows(path.read_text())) == 65
    for name in ("out.txt", "out"):
        rejected = shoal("predict", run, "--output", tmp_path / name)
        assert rejected.returncode == 78 and ".jsonl" in rejected.stderr
    running = Process([BIN / "shoal", "predict", run, "--output", tmp_path / "big.npy", *big_test_set(tmp_path, 20_000_000)],
                      tmp_path / "predict.log")
    try:
        partial = tmp_path / "big.npy.partial/file"
        wait_for(lambda: partial.exists() and partial.stat().st_size > 10_000, "predictions on their way")
        running.signal(signal.SIGINT)
        assert running.wait() == 143, running.output()
        assert "reached example" in running.output()
    finally:
        running.kill()
    assert not list(tmp_path.glob("big.npy*"))


def test_columns_are_those_of_the_training_table_wherever_they_stand(tmp_path):
    random = np.random.default_rng(3)
    table = {name: random.normal(size=96).astype(np.float32) for name in "abcd"}
    table["price"] = 3 * table["a"] - table["d"]

    def write(name, columns, header=True):
        lines = [",".join(columns)] * header + [",".join(map(str, row)) for row in zip(*(table[c] for c in columns))]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    for name in ("train.csv", "test.csv"):
        write(name, ["a", "b", "c", "d", "price"])
    model = {"class_name": "Sequential", "config": {"name": "line", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [None, 4], "name": "x"}},
        {"class_name": "Dense", "config": {"units": 1, "name": "y"}}]}}
    data = {part: {"format": "csv", "path": f"{name}.csv", "labels": "price"}
            for part, name in (("training", "train"), ("test", "test"))}
    job = write_job(tmp_path, model=model, data=data, loss="mean_squared_error", metrics=[], epochs=1)
    run = tmp_path / "run"
    assert shoal("train", job, "--run_dir", run).returncode == 0
    (tmp_path / "train.csv").rename(tmp_path / "elsewhere.csv")
    expected = predict(run, "test")
    turned = write("turned.csv", ["d", "price", "c", "b", "a"])
    assert predict(run, turned) == expected
    assert evaluate(run, turned)["loss"] == evaluate(run)["loss"]
    rejected = shoal("predict", run, write("bare.csv", ["a", "b", "c", "d"], header=False))
    assert rejected.returncode == 78 and 'column "a"' in rejected.stderr and '"header": false' in rejected.stderr, rejected.stderr
    # A table that has changed since is not gone on with under the old names.
    write("train.csv", ["d", "b", "c", "a", "price"])
    rejected = shoal("train", job, "--run_dir", run, "--epochs", 2)
    assert rejected.returncode == 78 and "$.data.training.features[0]" in rejected.stdout + rejected.stderr, rejected.stderr

"""examples/from_keras.py: `shoal validate` takes what it writes of models that Keras compiled, and the job says what compile() said."""
import json
import os
import re
import subprocess
import sys

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from real_cluster import BIN, SOURCE, shoal

sys.path.insert(0, str(SOURCE / "examples"))
from from_keras import write_job  # noqa: E402

EXAMPLES, CLASSES = 12, 4


@pytest.fixture(autouse=True)
def shoal_on_path(monkeypatch):
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture(name="data")
def write_data(tmp_path):
    """Two paths, by what a label is: a class's number, or a value for each output."""
    random = np.random.default_rng(1)
    np.save(tmp_path / "x.npy", random.normal(size=(EXAMPLES, 5)).astype(np.float32))
    np.save(tmp_path / "classes.npy", random.integers(0, CLASSES, EXAMPLES))
    np.save(tmp_path / "values.npy", np.eye(CLASSES, dtype=np.float32)[random.integers(0, CLASSES, EXAMPLES)])
    return {labels: (tmp_path / "x.npy", tmp_path / f"{labels}.npy") for labels in ("classes", "values")}


def model(**compiled):
    keras.utils.clear_session()  # names of layers begin anew
    made = keras.Sequential([keras.Input((5,)), keras.layers.Dense(CLASSES, activation="softmax")], name="net")
    made.compile(**{"optimizer": "sgd", "loss": "sparse_categorical_crossentropy", **compiled})
    return made


def written(tmp_path, made, training, **options):
    """The job, which `shoal validate` has passed, and the lines that name what is left out."""
    lines = write_job(made, tmp_path / "job", training, **{"epochs": 2, "force": True, **options})
    done = shoal("validate", tmp_path / "job/job.json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((tmp_path / "job/job.json").read_text()), lines


def labels_of(loss):
    return "classes" if "sparse" in loss.name else "values"


LOSSES = [
    keras.losses.SparseCategoricalCrossentropy(), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    keras.losses.CategoricalCrossentropy(label_smoothing=0.1), keras.losses.CategoricalFocalCrossentropy(alpha=0.3, gamma=1.5),
    keras.losses.BinaryCrossentropy(label_smoothing=0.1), keras.losses.BinaryFocalCrossentropy(apply_class_balancing=True, alpha=0.3),
    keras.losses.Huber(delta=0.25), keras.losses.MeanAbsoluteError(), keras.losses.MeanSquaredError(),
    keras.losses.MeanAbsolutePercentageError(), keras.losses.MeanSquaredLogarithmicError(), keras.losses.CosineSimilarity(),
    keras.losses.KLDivergence(), keras.losses.LogCosh(), keras.losses.Poisson(), keras.losses.Hinge(), keras.losses.SquaredHinge(),
    keras.losses.CategoricalHinge(), keras.losses.Dice(), keras.losses.Tversky(alpha=0.3, beta=0.8)]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_losses_are_written_with_their_options(tmp_path, data, loss):
    job, _ = written(tmp_path, model(loss=loss), data[labels_of(loss)])
    assert job["loss"]["class_name"] == type(loss).__name__
    for option, value in loss.get_config().items():
        assert job["loss"]["config"][option] == value


def test_options_that_keras_leaves_out_of_a_losses_config_are_kept(tmp_path, data):
    job, _ = written(tmp_path, model(loss=keras.losses.Huber(delta=0.25)), data["values"])
    assert job["loss"]["config"]["delta"] == 0.25


@pytest.mark.parametrize("loss", ["mse", "kl_divergence", keras.losses.mean_absolute_error, ["mse"], {"dense": "mse"}], ids=str)
def test_losses_by_name_and_by_function(tmp_path, data, loss):
    job, _ = written(tmp_path, model(loss=loss), data["values"])
    assert job["loss"] in ("mse", "kl_divergence", "mean_absolute_error")


OPTIMIZERS = [
    keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True, clipnorm=1.0), keras.optimizers.Adam(3e-4, amsgrad=True, global_clipnorm=2.0),
    keras.optimizers.AdamW(1e-3, weight_decay=0.01), keras.optimizers.Adamax(), keras.optimizers.Nadam(clipvalue=0.5),
    keras.optimizers.Adagrad(0.05), keras.optimizers.Adadelta(1.0), keras.optimizers.RMSprop(centered=True, momentum=0.5),
    keras.optimizers.Ftrl(0.1, l1_regularization_strength=0.01), keras.optimizers.Lion(1e-4), keras.optimizers.Lamb(1e-2, weight_decay=0.1),
    keras.optimizers.Adam(use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=10)]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: type(optimizer).__name__)
def test_optimizers_are_written_with_their_options(tmp_path, data, optimizer):
    job, _ = written(tmp_path, model(optimizer=optimizer), data["classes"])
    assert job["optimizer"]["class_name"] == type(optimizer).__name__
    config = optimizer.get_config()
    rate = config.pop("learning_rate")
    assert np.float32(job["optimizer"]["config"].pop("learning_rate")) == np.float32(rate)
    assert job["optimizer"]["config"] == config


def test_exclusions_from_weight_decay_are_written(tmp_path, data):
    def excluded(var_list=(), **given):
        nested = keras.Sequential([keras.Input((5,)), keras.layers.Dense(4, name="deep"), keras.layers.BatchNormalization(name="norm")], name="inner")
        made = keras.Sequential([keras.Input((5,)), nested, keras.layers.Dense(CLASSES, name="head")])
        optimizer = keras.optimizers.AdamW(weight_decay=0.1)
        optimizer.exclude_from_weight_decay(var_list=[v for v in made.trainable_variables if v.path.endswith(tuple(var_list))], **given)
        made.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy")
        job, _ = written(tmp_path, made, data["classes"])
        decays = [optimizer._use_weight_decay(v) for v in made.trainable_variables]
        return job["optimizer"]["config"].get("exclude_from_weight_decay"), decays.count(False)

    assert excluded(var_names=["gamma", "bias", "beta", "no_such"]) == (["beta", "bias", "gamma"], 4)
    assert excluded(var_list=["head/kernel"]) == (["head/kernel"], 1)
    assert excluded(var_list=["deep/kernel", "head/bias"], var_names=["bias"]) == (["bias", "inner/deep/kernel"], 3)
    assert excluded(var_names=["^(?!k)"]) == (["head/bias", "inner/deep/bias", "inner/norm/beta", "inner/norm/gamma"], 4)
    assert excluded(var_names=["head/bias"]) == (None, 0) and excluded() == (None, 0)


def test_a_learning_rate_is_written_as_it_was_given(tmp_path, data):
    for rate in (0.01, 0.1, 3e-4, 1e-5, 0.0123456):
        job, _ = written(tmp_path, model(optimizer=keras.optimizers.SGD(rate)), data["classes"])
        assert job["optimizer"]["config"]["learning_rate"] == rate


S = keras.optimizers.schedules
SCHEDULES = [
    S.ExponentialDecay(0.1, 100, 0.9, staircase=True), S.PiecewiseConstantDecay([10, 20], [0.1, 0.01, 0.001]),
    S.PolynomialDecay(0.1, 100, power=2.0, cycle=True), S.InverseTimeDecay(0.1, 100, 0.5),
    S.CosineDecay(0.0, 100, warmup_target=0.1, warmup_steps=10), S.CosineDecayRestarts(0.1, 100)]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: type(schedule).__name__)
def test_schedules_are_written_with_their_options(tmp_path, data, schedule):
    job, _ = written(tmp_path, model(optimizer=keras.optimizers.SGD(schedule)), data["classes"])
    assert job["optimizer"]["config"]["learning_rate"] == {"class_name": type(schedule).__name__, "config": schedule.get_config()}


def test_metrics_are_written_with_their_options(tmp_path, data):
    m = keras.metrics
    values = ["accuracy", m.AUC(num_thresholds=50, curve="PR"), m.Precision(thresholds=0.4), m.Recall(class_id=1), m.BinaryAccuracy(),
              m.CategoricalAccuracy(), m.TopKCategoricalAccuracy(k=2), m.MeanSquaredError(name="own_name"), m.MeanAbsoluteError(),
              m.RootMeanSquaredError(), "mape", m.mean_squared_logarithmic_error]
    job, _ = written(tmp_path, model(loss="categorical_crossentropy", metrics=values), data["values"])
    assert [f if isinstance(f, str) else f["class_name"] for f in job["metrics"]] == [
        v if isinstance(v, str) else getattr(v, "__name__", type(v).__name__) for v in values]
    assert job["metrics"][7]["config"]["name"] == "own_name"
    sparse = [m.SparseCategoricalAccuracy(), m.SparseTopKCategoricalAccuracy(k=2), "acc"]
    for form in (sparse, [sparse], {"dense": sparse}):
        job, _ = written(tmp_path, model(metrics=form), data["classes"])
        assert len(job["metrics"]) == 3
    job, _ = written(tmp_path, model(), data["classes"])
    assert job["metrics"] == []


def test_how_long_and_how_many(tmp_path, data):
    job, _ = written(tmp_path, model(), data["classes"], test=data["classes"], epochs=None, steps=7, batch_size=5, seed=3, name="mine")
    assert (job["name"], job["steps"], job["batch_size"], job["seed"]) == ("mine", 7, 5, 3)
    assert job["data"]["test"] == {"images": "../x.npy", "labels": "../classes.npy"} and "epochs" not in job
    with pytest.raises(ValueError, match="epochs or steps"):
        write_job(model(), tmp_path / "job", data["classes"])
    with pytest.raises(ValueError, match="3 paths"):
        write_job(model(), tmp_path / "job", 3 * [tmp_path], epochs=1)
    for arrays in (np.zeros((4, 2)), (np.zeros((4, 2)), np.zeros(4))):
        with pytest.raises(ValueError, match="numpy.save"):
            write_job(model(), tmp_path / "job", arrays, epochs=1)


def test_callbacks_have_their_counterpart_or_are_named(tmp_path, data):
    c = keras.callbacks
    job, lines = written(tmp_path, model(), data["classes"], test=data["classes"], callbacks=[
        c.TerminateOnNaN(), c.ModelCheckpoint("x.keras", save_freq=50), c.CSVLogger("log.csv"), c.BackupAndRestore("backup")])
    assert (job["stop_after_nan_steps"], job["checkpoint"], lines) == (1, {"every_steps": 50}, [])

    class Own(c.Callback):
        pass
    _, lines = written(tmp_path, model(), data["classes"], callbacks=[
        c.ModelCheckpoint("x.keras"), c.ReduceLROnPlateau(), c.LearningRateScheduler(lambda epoch: 0.1), Own()])
    assert [line.split(":")[0] for line in lines] == ["ModelCheckpoint", "ReduceLROnPlateau", "LearningRateScheduler", "Own"]
    for line in lines[1:3]:
        assert all(type(schedule).__name__ in line for schedule in SCHEDULES), line
    assert written(tmp_path, model(), data["classes"], callbacks=c.TerminateOnNaN())[0]["stop_after_nan_steps"] == 1


def test_weights_of_classes_and_weighted_metrics(tmp_path, data):
    job, lines = written(tmp_path, model(weighted_metrics=["accuracy"]), data["classes"], class_weight={0: 1, 2: 2.5})
    assert (job["class_weight"], job["weighted_metrics"], lines) == ({"0": 1.0, "2": 2.5}, ["accuracy"], [])


@pytest.mark.parametrize("metrics,weighted", [("acc", "accuracy"), ("accuracy", "acc"), ("accuracy", "accuracy")])
def test_columns_are_called_as_keras_calls_its_figures(tmp_path, data, metrics, weighted):
    made = model(metrics=[metrics], weighted_metrics=[weighted], loss="categorical_crossentropy")
    stopping = keras.callbacks.EarlyStopping(monitor=f"val_{weighted}", mode="max", patience=9)
    _, lines = written(tmp_path, made, data["values"], test=data["values"], epochs=1, callbacks=[stopping])
    assert lines == []
    done = shoal("train", tmp_path / "job/job.json", "--run_dir", tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    columns = (tmp_path / "run/history.csv").read_text().splitlines()[0].split(",")
    x, y = (np.load(path) for path in data["values"])
    figures = made.fit(x, y, validation_data=(x, y), verbose=0).history
    assert {column for column in columns if "acc" in column} == {figure for figure in figures if "acc" in figure}


def test_training_begins_with_the_weights_of_the_model_or_afresh(tmp_path, data):
    for fresh in (False, True):
        write_job(model(optimizer=keras.optimizers.SGD(1e-12)), tmp_path / "job", data["classes"], steps=1, seed=1, fresh=fresh, force=True)
        assert (tmp_path / "job/model.json").exists() == fresh
        run = tmp_path / f"run-{fresh}"
        done = shoal("train", tmp_path / "job/job.json", "--run_dir", run)
        assert done.returncode == 0, done.stdout + done.stderr
        if not fresh:
            started = keras.models.load_model(tmp_path / "job/model.keras").get_weights()[0]
        trained = load_file(run / "model/model.safetensors")["dense/kernel"]
        assert np.allclose(trained, started, atol=1e-7) != fresh


def test_callbacks_that_follow_the_best_epoch(tmp_path, data):
    c = keras.callbacks
    stopping = {"monitor": "val_accuracy", "mode": "max", "min_delta": 0.01, "patience": 3, "baseline": 0.1,
                "restore_best_weights": True, "start_from_epoch": 1}
    best = {"monitor": "val_loss", "mode": "auto", "initial_value_threshold": 2.5, "save_best_only": True}
    both = [c.EarlyStopping(**stopping), c.ModelCheckpoint("x.keras", **best)]
    made = model(metrics=["accuracy"])
    job, lines = written(tmp_path, made, data["classes"], test=data["classes"], callbacks=both)
    assert job["callbacks"] == [{"class_name": "EarlyStopping", "config": stopping}, {"class_name": "ModelCheckpoint", "config": best}]
    assert lines == []

    _, lines = written(tmp_path, made, data["classes"], callbacks=both)
    assert [line.split(":")[0] for line in lines] == ["EarlyStopping", "ModelCheckpoint"], "there is no test set"
    job, lines = written(tmp_path, made, data["classes"], test=data["classes"], callbacks=[
        c.EarlyStopping(monitor="loss"), c.ModelCheckpoint("x.keras", save_best_only=True, save_freq=10)])
    assert "callbacks" not in job and len(lines) == 2

    _, lines = written(tmp_path, made, data["classes"], test=data["classes"], callbacks=[c.EarlyStopping(monitor="val_acuracy")])
    assert lines == ["EarlyStopping: follows val_acuracy, and a job's callbacks figures of its test set alone (val_loss, val_accuracy); it was left out"]
    job, lines = written(tmp_path, model(metrics=["acc"]), data["classes"], test=data["classes"],
                         callbacks=[c.EarlyStopping(monitor="val_acc", mode="max")])
    assert job["callbacks"][0]["config"]["monitor"] == "val_accuracy" and lines == []


def own(target, output):
    return keras.ops.mean(target - output)


class OwnLoss(keras.losses.MeanSquaredError):
    pass


class OwnMetric(keras.metrics.MeanSquaredError):
    pass


class OwnSGD(keras.optimizers.SGD):
    pass


class OwnSchedule(S.ExponentialDecay):
    pass


def test_the_optimizer_that_scales_the_loss_is_left_out_with_a_word(tmp_path, data):
    made = keras.Sequential([keras.Input((5,)), keras.layers.Dense(CLASSES, dtype="mixed_float16")])
    made.compile(optimizer=keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.3)), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    job, lines = written(tmp_path, made, data["classes"])
    assert job["optimizer"]["class_name"] == "SGD" and job["optimizer"]["config"]["learning_rate"] == 0.3
    assert [line.split(",")[0] for line in lines] == ["LossScaleOptimizer: was left out"]


@pytest.mark.parametrize("compiled,named", [
    ({"loss": own}, "own"), ({"loss": OwnLoss()}, "OwnLoss"), ({"loss": None}, "without a loss"), ({"metrics": [own]}, "own"),
    ({"metrics": [OwnMetric()]}, "OwnMetric"), ({"optimizer": OwnSGD()}, "OwnSGD"),
    ({"optimizer": keras.optimizers.SGD(OwnSchedule(0.1, 10, 0.9))}, "OwnSchedule"),
    ({"loss_weights": 2.0}, "loss_weights")],
    ids=lambda value: value if isinstance(value, str) else "")
def test_a_model_that_would_train_otherwise_is_refused(tmp_path, data, compiled, named):
    with pytest.raises(ValueError, match=named):
        write_job(model(**compiled), tmp_path / "job", data["classes"], epochs=1)
    assert not (tmp_path / "job").exists()


def of_name(name, base):
    """A class of one's own that is called as one of Keras's."""
    return type(name, (base,), {"__module__": "__main__"})


def silu(x):  # Keras writes the name alone
    return x * x


def swish(x):
    return x * x


@pytest.mark.parametrize("layer", [
    of_name("Dense", keras.layers.Dense)(CLASSES), keras.layers.Dense(CLASSES, activation=silu), keras.layers.Dense(CLASSES, activation=swish),
    keras.layers.Dense(CLASSES, activation=of_name("ReLU", keras.layers.ReLU)()),
    keras.layers.Dense(CLASSES, kernel_regularizer=of_name("L2", keras.regularizers.L2)(0.1)),
    keras.layers.Dense(CLASSES, kernel_initializer=of_name("HeNormal", keras.initializers.HeNormal)()),
    keras.layers.Dense(CLASSES, dtype=of_name("DTypePolicy", keras.DTypePolicy)("float32"))],
    ids=["layer", "function_by_name", "function", "activation", "regularizer", "initializer", "policy"])
def test_an_own_class_with_a_name_of_keras_is_refused(tmp_path, data, layer):
    made = keras.Sequential([keras.Input((5,)), layer, keras.layers.Softmax()])
    made.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(ValueError):
        write_job(made, tmp_path / "job", data["classes"], epochs=1)
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize("compiled", [
    {"loss": of_name("SparseCategoricalCrossentropy", keras.losses.SparseCategoricalCrossentropy)()},
    {"metrics": [of_name("Poisson", keras.metrics.Poisson)()]},
    {"optimizer": of_name("SGD", keras.optimizers.SGD)()},
    {"optimizer": of_name("LossScaleOptimizer", keras.optimizers.LossScaleOptimizer)(keras.optimizers.SGD())},
    {"optimizer": keras.optimizers.SGD(of_name("CosineDecay", S.CosineDecay)(0.1, 10))}],
    ids=["loss", "metric", "optimizer", "scaling", "schedule"])
def test_parts_of_compile_that_are_only_called_so_are_rejected(tmp_path, data, compiled):
    with pytest.raises(ValueError):
        write_job(model(**compiled), tmp_path / "job", data["classes"], epochs=1)
    assert not (tmp_path / "job").exists()


def test_a_callback_of_ones_own_is_no_callback_of_keras(tmp_path, data):
    job, lines = written(tmp_path, model(), data["classes"], test=data["classes"],
                         callbacks=[of_name("EarlyStopping", keras.callbacks.EarlyStopping)(), of_name("TerminateOnNaN", keras.callbacks.TerminateOnNaN)()])
    assert "callbacks" not in job and "stop_after_nan_steps" not in job
    assert [line.split(":")[0] for line in lines] == ["EarlyStopping", "TerminateOnNaN"]


def test_functions_of_keras_and_of_its_backends_are_taken(tmp_path, data):
    made = keras.Sequential([keras.Input((5,)), keras.layers.Dense(6, activation=keras.activations.swish), keras.layers.Dense(6, activation=keras.ops.tanh),
                             keras.layers.Dense(CLASSES, activation=keras.activations.softmax)])
    made.compile("sgd", keras.losses.sparse_categorical_crossentropy, metrics=[keras.metrics.sparse_categorical_accuracy])
    written(tmp_path, made, data["classes"])


def test_all_that_shoal_lacks_is_named_at_once_and_nothing_is_written(tmp_path, data, monkeypatch):
    lstm = keras.Sequential([keras.Input((5, 1)), keras.layers.LSTM(2), keras.layers.Dense(CLASSES, bias_constraint="non_neg")])
    for compiled, named in [({"loss": "categorical_crossentropy", "metrics": [keras.metrics.F1Score()], "optimizer": OwnSGD()},
                             ["LSTM", "bias_constraint", "F1Score", "OwnSGD"]),
                            ({"loss": own, "metrics": [OwnMetric()], "optimizer": keras.optimizers.Muon(), "loss_weights": 2.0},
                             ["LSTM", "bias_constraint", "own", "OwnMetric", "Muon", "loss_weights"])]:
        lstm.compile(**compiled)
        with pytest.raises(ValueError) as refused:
            write_job(lstm, tmp_path / "job", data["values"], epochs=1)
        for name in named:
            assert name in str(refused.value)
        assert not (tmp_path / "job").exists()

    monkeypatch.setenv("TF_CONFIG", "of another program")
    written(tmp_path, model(), data["classes"])


def test_a_model_with_two_inputs_and_a_relative_path_to_shoal(tmp_path, data, monkeypatch):
    left, right = keras.Input((5,), name="left"), keras.Input((5,))
    two = keras.Model([left, right], keras.layers.Dense(CLASSES, activation="softmax")(keras.layers.Concatenate()([left, right])))
    two.compile(loss="sparse_categorical_crossentropy", optimizer="sgd")
    # Without a name it has its layer's, whatever its tensor is called until the model is stored.
    source = {"features": {"left": "left.npy", two.layers[1].name: "right.npy"}, "labels": "labels.npy"}
    monkeypatch.setenv("PATH", os.path.relpath(BIN))
    assert write_job(two, tmp_path / "job", source, epochs=1) == []
    assert json.loads((tmp_path / "job/job.json").read_text())["data"]["training"] == source


def test_without_shoal_it_says_that_nobody_was_asked(tmp_path, data, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert write_job(model(), tmp_path / "job", data["classes"], epochs=1) == []
    assert "shoal is not on PATH" in capsys.readouterr().err
    assert (tmp_path / "job/job.json").exists() and (tmp_path / "job/model.keras").exists()


def test_a_model_that_is_not_compiled(tmp_path, data):
    with pytest.raises(ValueError, match="not compiled"):
        write_job(keras.Sequential([keras.Input((5,)), keras.layers.Dense(CLASSES)]), tmp_path / "job", data["classes"], epochs=1)


def test_a_model_that_is_not_built_is_said_to_be(tmp_path, data):
    made = keras.Sequential([keras.layers.Dense(CLASSES)])
    made.compile(optimizer="sgd", loss="mse")
    with pytest.raises(ValueError, match="not built.*keras.Input"):
        write_job(made, tmp_path / "job", data["values"], epochs=1)


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(CLASSES)

    def call(self, inputs):
        return self.dense(inputs)


def test_a_subclassed_model_is_refused_by_what_it_is(tmp_path, data):
    made = Subclassed()
    made.compile(optimizer="sgd", loss="mse")
    made(np.load(tmp_path / "x.npy"))
    with pytest.raises(ValueError, match="Subclassed: .*Sequential or functional"):
        write_job(made, tmp_path / "job", data["values"], epochs=1)
    assert not (tmp_path / "job").exists()
    made.save(tmp_path / "own.keras")
    done = subprocess.run([sys.executable, SOURCE / "examples/from_keras.py", tmp_path / "own.keras", tmp_path / "job", "--epochs", "1",
                           "--training", *data["values"]], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "Subclassed" in done.stderr, done.stderr


def test_a_folder_that_is_a_file_is_named(tmp_path, data):
    (tmp_path / "job").write_text("mine")
    with pytest.raises(ValueError, match="job: is a file"):
        write_job(model(), tmp_path / "job", data["classes"], epochs=1)
    assert (tmp_path / "job").read_text() == "mine"


def test_it_says_what_it_wrote_and_what_comes_next(tmp_path, data, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_job(model(), "my job", data["classes"], epochs=1)
    assert capsys.readouterr().out == ("from_keras: wrote my job/model.keras and my job/job.json. Next:\n"
                                       "  shoal validate 'my job/job.json'\n  shoal train 'my job/job.json'\n")
    write_job(model(), "fresh", data["classes"], epochs=1, fresh=True)
    assert "wrote fresh/model.json and fresh/job.json." in capsys.readouterr().out


def test_existing_files_are_not_replaced_without_a_word(tmp_path, data, capsys):
    folder, made = tmp_path / "job", model()
    contents = lambda: {path.name: path.read_bytes() for path in folder.iterdir()}
    write_job(made, folder, data["classes"], epochs=1)
    write_job(made, folder, data["classes"], epochs=1)  # the same again
    assert "replaced" not in capsys.readouterr().out
    edited = json.loads((folder / "job.json").read_text()) | {"seed": 7}
    (folder / "job.json").write_text(json.dumps(edited))
    before = contents()
    with pytest.raises(ValueError, match="job.json: is there already.*--force") as refused:
        write_job(made, folder, data["classes"], epochs=1)
    assert "model.keras" not in str(refused.value) and contents() == before
    write_job(made, folder, data["classes"], epochs=1, force=True)
    assert "model.keras and " in (said := capsys.readouterr().out) and "job.json (replaced)." in said
    # Another model, with and without a job beside it.
    other = model()
    for alone in (False, True):
        if alone:
            (folder / "job.json").unlink()
        before = contents()
        with pytest.raises(ValueError, match="job/model.keras: is there already"):
            write_job(other, folder, data["classes"], epochs=1)
        assert contents() == before
    write_job(other, folder, data["classes"], epochs=1, force=True)
    assert "model.keras (replaced) and " in capsys.readouterr().out
    assert np.array_equal(keras.models.load_model(folder / "model.keras").get_weights()[0], other.get_weights()[0])


def test_optimizer_state_is_left_out_with_a_word(tmp_path, data):
    made = model(optimizer=keras.optimizers.Adam(S.CosineDecay(0.1, 50)))
    assert written(tmp_path, made, data["classes"])[1] == []
    made.fit(np.load(tmp_path / "x.npy"), np.load(tmp_path / "classes.npy"), batch_size=4, epochs=2, verbose=0)
    _, lines = written(tmp_path, made, data["classes"])
    assert len(lines) == 1 and re.match("Adam: .* 6 steps.*schedule", lines[0]), lines
    # Drawn anew, the variables are as far as the optimizer is.
    assert written(tmp_path, made, data["classes"], fresh=True)[1] == []


def test_without_a_backend_it_says_how_to_name_one(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"} | {"KERAS_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, SOURCE / "examples/from_keras.py", "a.keras", "job"], env=environment, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "KERAS_BACKEND=jax" in done.stderr, done.stderr


def test_as_a_command_with_a_saved_model(tmp_path, data):
    model(optimizer=keras.optimizers.Adam(3e-4), metrics=["accuracy"]).save(tmp_path / "net.keras")
    script = [sys.executable, SOURCE / "examples/from_keras.py"]
    done = subprocess.run([*script, "net.keras", "job", "--training", *data["classes"], "--epochs", "3"], cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Next:\n  shoal validate job/job.json\n  shoal train job/job.json\n")
    job = json.loads((tmp_path / "job/job.json").read_text())
    assert (job["epochs"], job["metrics"], job["optimizer"]["config"]["learning_rate"]) == (3, ["accuracy"], 3e-4)
    checked = shoal("validate", tmp_path / "job/job.json")
    assert checked.returncode == 0, checked.stdout + checked.stderr

    source = json.dumps({"format": "npz", "path": "../d.npz", "features": "x", "labels": "y"})
    np.savez(tmp_path / "d.npz", x=np.load(tmp_path / "x.npy"), y=np.load(tmp_path / "classes.npy"))
    again = [*script, "net.keras", "job", "--training", source, "--steps", "3"]
    done = subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "from_keras: job/job.json: is there already" in done.stderr, done.stderr
    done = subprocess.run([*again, "--force"], cwd=tmp_path, capture_output=True, text=True, check=False)
    checked = shoal("validate", tmp_path / "job/job.json")
    assert done.returncode == 0 and checked.returncode == 0, done.stderr + checked.stdout + checked.stderr

    done = subprocess.run([*script, "net.keras", "job", "--training", "absent", "--steps", "3"], cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and re.search("^from_keras: absent: is no folder", done.stderr, re.MULTILINE), done.stderr


# Keras opens it, and takes its own function of that name.
def test_a_saved_model_with_a_function_of_ones_own_is_refused(tmp_path, data):
    made = keras.Sequential([keras.Input((5,)), keras.layers.Dense(CLASSES, activation=swish), keras.layers.Softmax()])
    made.compile("sgd", keras.losses.sparse_categorical_crossentropy)
    made.save(tmp_path / "net.keras")
    done = subprocess.run([sys.executable, SOURCE / "examples/from_keras.py", "net.keras", "job", "--training", *data["classes"], "--epochs", "3"],
                          cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "swish" in done.stderr, done.stderr
    assert not (tmp_path / "job").exists()


def test_a_job_that_it_wrote_trains(tmp_path, data):
    made = model(optimizer=keras.optimizers.Adam(0.01), metrics=["accuracy"])
    write_job(made, tmp_path / "job", data["classes"], data["classes"], epochs=2, batch_size=4)
    done = shoal("train", tmp_path / "job/job.json", "--run_dir", tmp_path / "run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "run/model/model.safetensors").exists()

"""Writes the job file of a compiled Keras 3 model: what `model.fit` would train, for `shoal train`. Needs Keras and nothing else.

From Python, where the model was made and compiled:

    from from_keras import write_job
    write_job(model, "job", training="flowers/training", test="flowers/test", epochs=10, batch_size=32,
              callbacks=[keras.callbacks.TerminateOnNaN()])

or as a command, with a model that `model.save("model.keras")` wrote after `model.compile(...)`:

    python examples/from_keras.py model.keras job --training flowers/training --test flowers/test --epochs 10

The folder `job` then has model.keras, with its weights, and job.json: `shoal validate job/job.json` checks them and the data, `shoal train
job/job.json` trains. What is there already and would change is not replaced, unless with force=True or --force. Data are where docs/job-file.md
says: a folder with a folder of pictures for each class, a pair of files (examples and labels, IDX or NPY), or any data source as an object (a
dict, or JSON), whose paths start from the folder `job`. What `fit` does and a job cannot is printed, and returned, as
a list of lines; what would change what is learnt, a loss of one's own for example, is a ValueError, which names all such things, and nothing is
written. Which layers, losses, metrics and optimizers there are `shoal` itself is asked, where it is on PATH.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import types
import zipfile

try:
    import keras  # with any backend: nothing is computed
except ImportError as error:
    if __name__ != "__main__":
        raise
    sys.exit(f"from_keras: Keras cannot be imported: {error}.\nIt computes with TensorFlow unless KERAS_BACKEND names what it computes with instead:"
             " KERAS_BACKEND=jax or torch, whichever is installed beside keras (pip install keras jax)")


def shortest(value):
    """A float32 that Keras widened, as it was written: 0.01, not 0.009999999776482582."""
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        if abs(short - value) <= 6e-8 * abs(value):
            return short
    return value


def function_name(kind, function):
    """The name of a function of keras.losses or keras.metrics; no other function has a counterpart."""
    name = getattr(function, "__name__", str(function))
    if getattr(kind, name, None) is not function:
        raise ValueError(f"{name}: Shoal has Keras's own losses and metrics, and no functions of yours")
    return name


def only(value, what):
    """The one element of a list or dict: Keras takes one for each output of the model."""
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return value
    if len(value) != 1:
        raise ValueError(f"{len(value)} {what}: a job's model has one output")
    return value[0]


def loss_field(model):
    loss = only(model.loss, "losses")
    if loss is None:
        raise ValueError("the model is compiled without a loss: call model.compile(optimizer, loss)")
    if isinstance(loss, str):
        return loss
    if not isinstance(loss, keras.losses.Loss):
        return function_name(keras.losses, loss)
    if getattr(keras.losses, type(loss).__name__, None) is not type(loss):
        raise ValueError(f"{type(loss).__name__}: Shoal has Keras's own losses, and none of yours")
    # get_config() of some losses leaves options out: the delta of Huber.
    config = {**getattr(loss, "_fn_kwargs", {}), **loss.get_config()}
    return {"class_name": type(loss).__name__, "config": config}


def metric_fields(model, kind="metrics"):
    fields = []
    given = getattr(model._compile_metrics, "_user_" + kind, None) or []  # get_compile_config() has functions only by their names
    if isinstance(given, dict):  # by output, each one metric or a list
        given = [only(given, "outputs with metrics")]
    for metric in given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else given:
        if isinstance(metric, str):
            fields.append(metric)
        elif isinstance(metric, keras.metrics.Metric):
            if getattr(keras.metrics, type(metric).__name__, None) is not type(metric):
                raise ValueError(f"{type(metric).__name__}: Shoal has Keras's own metrics, and none of yours")
            fields.append({"class_name": type(metric).__name__, "config": metric.get_config()})
        else:
            fields.append(function_name(keras.metrics, metric))
    return fields


def name_accuracy(*lists):
    """Both lists with accuracy for acc, as a job calls the figure of either; where one has the one word and one the other, each keeps its own."""
    words = [{"acc", "accuracy"} & {metric for metric in fields if isinstance(metric, str)} for fields in lists]
    if len(words[0]) == len(words[1]) == 1 and words[0] != words[1]:
        return lists
    return [["accuracy" if metric == "acc" else metric for metric in fields] for fields in lists]


def own_optimizer(model):
    """The model's optimizer without the LossScaleOptimizer that compile() puts around it under mixed_float16."""
    scaled = type(model.optimizer) is keras.optimizers.LossScaleOptimizer
    return model.optimizer.inner_optimizer if scaled else model.optimizer


def variable_paths(model, before=""):
    """{id of a variable: its path} as Shoal has it. Keras's own v.path leaves models out that a layer was nested in after it was built."""
    found = {}
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            found.update(variable_paths(layer, f"{before}{layer.name}/"))
        else:
            found.update((id(v), f"{before}{layer.name}/{v.name}") for v in layer.weights)
    return found


def excluded_from_weight_decay(model, optimizer):
    """What exclude_from_weight_decay() was given, which get_config() leaves out: words of var_names that match as they stand, and the
    paths of all other variables that it means."""
    pattern = getattr(optimizer, "_exclude_from_weight_decay_pattern", None)
    listed = getattr(optimizer, "_exclude_from_weight_decay", ())
    words = pattern.pattern.split("|") if pattern else []
    words = words if all(re.fullmatch(r"[A-Za-z0-9_]+", word) for word in words) else []
    excluded = set()
    for variable in model.trainable_variables:
        found = {word for word in words if word in variable.name}
        if not found and (id(variable) in listed or (pattern and pattern.search(variable.name))):
            found = {variable_paths(model)[id(variable)]}
        excluded |= found
    return sorted(excluded)


def optimizer_field(model):
    optimizer = own_optimizer(model)
    if getattr(keras.optimizers, type(optimizer).__name__, None) is not type(optimizer):
        raise ValueError(f"{type(optimizer).__name__}: Shoal has Keras's own optimizers, and none of yours")
    config = optimizer.get_config()
    if excluded := excluded_from_weight_decay(model, optimizer):
        config["exclude_from_weight_decay"] = excluded
    rate = config["learning_rate"]
    if isinstance(rate, dict):
        if rate["module"] != "keras.optimizers.schedules":  # Keras writes other modules, or null, of other people's classes
            raise ValueError(f"{rate['class_name']}: Shoal has Keras's own learning rate schedules, and none of yours")
        config["learning_rate"] = {"class_name": rate["class_name"], "config": rate["config"]}
    else:
        config["learning_rate"] = shortest(float(rate))
    return {"class_name": type(optimizer).__name__, "config": config}


def follows_best(callback):
    return isinstance(callback, keras.callbacks.EarlyStopping) or callback.save_best_only


def monitor_of(callback, job):
    return "val_accuracy" if callback.monitor == "val_acc" and "val_acc" not in figures_of(job) else callback.monitor


def figures_of(job):
    """What a callback may follow: the columns of history.csv that the test set gives."""
    if "test" not in job["data"]:
        return []
    name = lambda metric: metric if isinstance(metric, str) else metric["config"]["name"]
    plain, weighted = [[name(metric) for metric in job.get(kind, [])] for kind in ("metrics", "weighted_metrics")]
    return [f"val_{figure}" for figure in ["loss", *plain, *(f"weighted_{each}" if each in plain else each for each in weighted)]]


def best_field(callback, job):
    """EarlyStopping, or ModelCheckpoint(save_best_only=True), in the form of the job's `callbacks`."""
    config = {"monitor": monitor_of(callback, job), "mode": callback.mode}
    if isinstance(callback, keras.callbacks.ModelCheckpoint):
        config["save_best_only"] = True
        if callback.best is not None:
            config["initial_value_threshold"] = callback.best
        return {"class_name": "ModelCheckpoint", "config": config}
    config["min_delta"] = abs(callback.min_delta)  # Keras turns its sign where less is better
    for option in ("patience", "baseline", "restore_best_weights", "start_from_epoch"):
        config[option] = getattr(callback, option)
    return {"class_name": "EarlyStopping", "config": config}


def take_callbacks(callbacks, job):
    """Puts into `job` what callbacks have as counterparts; returns a line for each that has none."""
    unmatched = []
    for callback in callbacks:
        name = type(callback).__name__
        if getattr(keras.callbacks, name, None) is not type(callback):
            unmatched.append(f"{name}: is a callback of yours, which has no counterpart in a job, and was left out")
        elif isinstance(callback, keras.callbacks.TerminateOnNaN):
            job["stop_after_nan_steps"] = 1
        elif isinstance(callback, (keras.callbacks.EarlyStopping, keras.callbacks.ModelCheckpoint)) and follows_best(callback):
            if monitor_of(callback, job) not in figures_of(job):
                known = ", ".join(figures_of(job)) or "and it has none"
                unmatched.append(f"{name}: follows {callback.monitor}, and a job's callbacks figures of its test set alone ({known}); it was left out")
            elif getattr(callback, "save_freq", "epoch") != "epoch":
                unmatched.append(f"{name}: keeps the best of a job's epochs, not of every {callback.save_freq} steps, and was left out")
            else:
                job.setdefault("callbacks", []).append(best_field(callback, job))
        elif isinstance(callback, keras.callbacks.ModelCheckpoint):
            if callback.save_freq != "epoch":
                job["checkpoint"] = {"every_steps": callback.save_freq}
            elif "test" not in job["data"]:
                unmatched.append(f"{name}: without a test set there is no checkpoint after each epoch, but one every ten minutes; "
                                 "save_freq=STEPS has a counterpart")
        elif isinstance(callback, EVERY_RUN_HAS):
            pass
        elif isinstance(callback, (keras.callbacks.ReduceLROnPlateau, keras.callbacks.LearningRateScheduler)):
            unmatched.append(f"{name}: was left out; in a job the learning rate follows a schedule that the optimizer is given: {', '.join(SCHEDULES)}")
        else:
            unmatched.append(f"{name}: has no counterpart in a job and was left out")
    return unmatched


SCHEDULES = [name for name, each in sorted(vars(keras.optimizers.schedules).items())
             if isinstance(each, type) and each is not keras.optimizers.schedules.LearningRateSchedule]


# Checkpoints and resuming, history.csv, and what is printed.
EVERY_RUN_HAS = (keras.callbacks.BackupAndRestore, keras.callbacks.CSVLogger, keras.callbacks.History, keras.callbacks.ProgbarLogger)


def data_source(given, folder):
    """A data source of docs/job-file.md; paths of `given` start from here, those of the job from its folder."""
    here = lambda path: os.path.relpath(os.path.abspath(path), os.path.abspath(folder))
    if isinstance(given, dict):
        return given
    if any(hasattr(part, "shape") for part in [given, *(given if isinstance(given, (list, tuple)) else ())]):
        raise ValueError("arrays: a job reads files; numpy.save() them, and give the paths of two (examples and labels)")
    if isinstance(given, (list, tuple)) and len(given) == 2:
        return {"images": here(given[0]), "labels": here(given[1])}
    path = given[0] if isinstance(given, (list, tuple)) and len(given) == 1 else given
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"{len(path)} paths: give a folder of pictures, two files (examples and labels), or a data source as an object")
    if isinstance(path, str) and path.lstrip().startswith("{"):
        return json.loads(path)
    if not os.path.isdir(path):
        raise ValueError(f"{path}: is no folder of pictures; give two files (examples and labels), or a data source as an object, such as "
                         f'{{"format": "csv", "path": "{os.path.abspath(path)}", "labels": "price"}} (docs/job-file.md, Data)')
    return {"format": "image_folder", "path": here(path)}


def lacking(folder, job, model):
    """Lines of `shoal` that name what it lacks of `model` and the job in `folder`, at once; None where it is not on PATH."""
    shoal = shutil.which("shoal")
    if shoal is None:
        return None
    shoal = os.path.abspath(shoal)
    # Data that are on other machines are not looked at, and this is about what Keras was told.
    absent = {"images": "absent.npy", "labels": "absent.npy"}
    if len(model.inputs) > 1:
        # By their layers, as the tensors' own names change when the model is stored.
        names = [each._keras_history.operation.name for each in model.inputs]
        absent = {"features": {name: "absent.npy" for name in names}, "labels": "absent.npy"}
    (folder / "job.json").write_text(json.dumps(job | {"data": {part: absent for part in job["data"]}}))
    lines = []
    for command in (["model", "summary", job["model"]], ["validate", "job.json"]):
        environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
        done = subprocess.run([shoal, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines += done.stderr.removeprefix("shoal: ").replace(f"{folder}/", "").splitlines()
    return list(dict.fromkeys(lines))


def same_file(path, other):
    """Whether both hold the same. An archive says when it was saved, which does not count."""
    if not (zipfile.is_zipfile(path) and zipfile.is_zipfile(other)):
        return path.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(path) as one, zipfile.ZipFile(other) as two:
        names = [sorted(set(archive.namelist()) - {"metadata.json"}) for archive in (one, two)]
        return names[0] == names[1] and all(one.read(name) == two.read(name) for name in names[0])


def put_in_place(new, folder, force):
    """Moves the files `new` into `folder`. None is where one that is there says otherwise, which nobody shall lose without a word."""
    replaced = [path.name for path in new if (folder / path.name).exists() and not same_file(path, folder / path.name)]
    if replaced and not force:
        raise ValueError(f"{' and '.join(str(folder / name) for name in replaced)}: is there already, and not what would be written; force=True, or "
                         "--force, replaces it, or give another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path in new:
        shutil.move(path, folder / path.name)
    where = " and ".join(str(folder / path.name) + (" (replaced)" if path.name in replaced else "") for path in new)
    job = shlex.quote(str(folder / "job.json"))
    print(f"from_keras: wrote {where}. Next:\n  shoal validate {job}\n  shoal train {job}")


class Problems:
    """What is wrong with parts of a job, told at once."""

    def __init__(self):
        self.lines = []

    def of(self, field, *arguments, otherwise):
        """What `field` makes of `arguments`, or, where that is a ValueError, what can stand for it while other parts are looked at."""
        try:
            return field(*arguments)
        except ValueError as error:
            self.lines.append(str(error))
            return otherwise


# A function of these is Keras's, or computes what Keras's of its name does.
KERAS_AND_BACKENDS = ("keras", "jax", "tensorflow", "torch")


def no_functions_of_yours(model):
    """Keras writes an activation by its name alone where it has one of that name, whoever's function it is."""
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            no_functions_of_yours(layer)
        function = getattr(layer, "activation", None)
        if isinstance(function, types.FunctionType) and function.__module__.split(".")[0] not in KERAS_AND_BACKENDS:
            raise ValueError(f"{layer.name}: its activation {function.__name__} is a function of yours; Shoal has Keras's own: "
                             f"give one of keras.activations, or its name")


def no_loss_weights(model):
    if model.get_compile_config()["loss_weights"] is not None:
        raise ValueError("loss_weights: a job has one loss, which counts once")


def write_job(model, folder, training, test=None, *, epochs=None, steps=None, batch_size=32, callbacks=(), class_weight=None, seed=0,
              name=None, fresh=False, force=False):
    """Writes `folder`/model.keras and `folder`/job.json, says so, and returns the lines it also prints on stderr: what has no counterpart.

    `training` and `test` are data sources: the path of a folder of pictures, two paths (examples, labels) or a dict, as in
    docs/job-file.md, whose paths start from `folder`. `epochs` or `steps`, one of the two, is how long to train; the other arguments
    are those of `model.fit`. The variables begin as they are in `model`; with `fresh` the model is written as model.json, without
    them, and they begin as its initializers draw them from `seed`. Files that are there and say otherwise are replaced with `force`
    alone.
    """
    if (epochs is None) == (steps is None):
        raise ValueError("give epochs or steps, one of the two")
    if not model.compiled:
        raise ValueError("the model is not compiled: call model.compile(optimizer, loss) first")
    if isinstance(model, keras.Sequential) and not model.built:
        raise ValueError("the model is not built, so that nobody knows the shape of its input: call model.build(shape), or begin it with keras.Input")
    if getattr(model, "inputs", None) is None:
        raise ValueError(f"{type(model).__name__}: is a subclassed model, whose layers only its own code connects; a job takes a Sequential or functional one")
    folder = pathlib.Path(folder)
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise ValueError(f"{place}: is a file; the job is written into a folder")
    problems = Problems()
    job = {
        "name": name or re.sub(r"[^A-Za-z0-9_.-]", "_", model.name),
        "model": "model.json" if fresh else "model.keras",
        "data": {"training": problems.of(data_source, training, folder, otherwise={})},
        "loss": problems.of(loss_field, model, otherwise="mse"),
        "metrics": problems.of(metric_fields, model, otherwise=[]),
        "optimizer": problems.of(optimizer_field, model, otherwise="sgd"),
        "batch_size": batch_size,
        **({"epochs": epochs} if steps is None else {"steps": steps}),
        "seed": seed,
    }
    if test is not None:
        job["data"]["test"] = problems.of(data_source, test, folder, otherwise={})
    weighted = problems.of(metric_fields, model, "weighted_metrics", otherwise=[])
    job["metrics"], weighted = name_accuracy(job["metrics"], weighted)
    if weighted:
        job["weighted_metrics"] = weighted
    if class_weight:
        job["class_weight"] = {str(number): float(weight) for number, weight in class_weight.items()}
    problems.of(no_loss_weights, model, otherwise=None)
    problems.of(no_functions_of_yours, model, otherwise=None)
    unmatched = take_callbacks([callbacks] if isinstance(callbacks, keras.callbacks.Callback) else callbacks, job)
    if own_optimizer(model) is not model.optimizer:
        unmatched.append(f"LossScaleOptimizer: was left out, and {type(own_optimizer(model)).__name__} taken alone; workers that compute in "
                         "float16 scale the loss themselves, by the same rules")
    if not fresh and (done := int(own_optimizer(model).iterations)) > 0:
        unmatched.append(f"{type(own_optimizer(model)).__name__}: has made {done} steps, and what it keeps of them was left out, its place in a learning rate "
                         "schedule too; a job begins at step 0 with a new one")
    with tempfile.TemporaryDirectory() as beside:
        beside = pathlib.Path(beside)
        if fresh:
            (beside / "model.json").write_text(json.dumps(json.loads(model.to_json()), indent=1) + "\n")
        else:
            model.save(beside / "model.keras")
        found = lacking(beside, job, model)
        problems.lines += found or []
        if problems.lines:
            raise ValueError("\n".join(problems.lines))
        (beside / "job.json").write_text(json.dumps(job, indent=2) + "\n")
        put_in_place([beside / job["model"], beside / "job.json"], folder, force)
    if found is None:
        print(f"from_keras: shoal is not on PATH; whether it has all of this, `shoal validate {folder}/job.json` says", file=sys.stderr)
    for line in unmatched:
        print("from_keras:", line, file=sys.stderr)
    return unmatched


def main():
    parser = argparse.ArgumentParser(description="Writes the job file of a compiled Keras 3 model.")
    parser.add_argument("model", help="what model.save() wrote: model.keras")
    parser.add_argument("folder", help="where model.keras and job.json go")
    for source, required in (("--training", True), ("--test", False)):
        parser.add_argument(source, required=required, nargs="+", metavar="PATH",
                            help="a folder of pictures, two files (examples and labels), or a data source as JSON, whose paths start from FOLDER")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--epochs", type=int)
    length.add_argument("--steps", type=int)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", help="the job's; the model's unless it is given")
    parser.add_argument("--fresh", action="store_true", help="begin with variables drawn anew, not with those of the model")
    parser.add_argument("--force", action="store_true", help="replace what is in the folder and says otherwise")
    given = vars(parser.parse_args())
    try:
        model = keras.models.load_model(given.pop("model"))
    except (TypeError, ValueError) as error:  # TypeError: of a class that Keras does not know
        sys.exit(f"from_keras: {error}")
    try:
        write_job(model, **given)
    except ValueError as error:
        sys.exit(f"from_keras: {error}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures training steps of image models beside Keras on JAX: the gradients of a batch, with the new statistics of every
BatchNormalization, on the same model, batch size and cores, in turns within one run.

    build/venv/bin/python tests/with_keras/step_benchmark.py                        all models, some ten minutes
    build/venv/bin/python tests/with_keras/step_benchmark.py --cores 1 mobilenet_v2_96     one of them on one core

Of each side the least of all turns is shown, by the clock and as CPU time of all threads: what else runs on the machine only ever
makes a step slower. JAX compiles before its first turn; that time is not counted. SHOAL_BIN names the directory of the programs,
build/release/bin if it is not set.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SHOAL = pathlib.Path(os.environ.get("SHOAL_BIN", SOURCE / "build/release/bin")) / "shoal"

# The function of keras.applications and its options, the side of the pictures, how many.
MODELS = {
    "mobilenet_v2_035_96": ("MobileNetV2", {"alpha": 0.35}, 96, 32),
    "mobilenet_v2_96": ("MobileNetV2", {}, 96, 32),
    "mobilenet_v2_035_224": ("MobileNetV2", {"alpha": 0.35}, 224, 16),
    "mobilenet_v2_224": ("MobileNetV2", {}, 224, 16),
    "resnet50_224": ("ResNet50", {}, 224, 8),
}


def keras_step(model, batch_size):
    """A function that computes one step and waits for it."""
    import jax
    import keras
    import numpy as np

    loss_of = keras.losses.SparseCategoricalCrossentropy()
    random = np.random.default_rng(0)
    x = jax.numpy.asarray(random.random((batch_size, *model.input_shape[1:]), dtype=np.float32))
    y = jax.numpy.asarray(random.integers(0, model.output_shape[-1], batch_size))
    trained = [variable.value for variable in model.trainable_variables]
    others = [variable.value for variable in model.non_trainable_variables]

    def loss(trained, others, x, y):
        predictions, others = model.stateless_call(trained, others, x, training=True)
        return loss_of(y, predictions), others

    compiled = jax.jit(jax.value_and_grad(loss, has_aux=True))
    return lambda: jax.block_until_ready(compiled(trained, others, x, y))


def keras_turn(step, seconds):
    """The least of steps begun for some seconds: by the clock, and of CPU time."""
    clock, cpu, end = [], [], time.monotonic() + seconds
    while not clock or time.monotonic() < end:
        began = time.monotonic(), time.process_time()
        step()
        clock.append(time.monotonic() - began[0])
        cpu.append(time.process_time() - began[1])
    return min(clock), min(cpu)


def shoal_turn(path, batch_size, cores, seconds):
    command = [SHOAL, "bench", "model", path, "--batch_size", batch_size, "--threads", cores, "--seconds", seconds, "--json"]
    result = json.loads(subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE).stdout)
    return min(result["step_seconds"]), min(result["step_cpu_seconds"]), result["activation_bytes"]


def measure(name, options):
    import keras

    function, configuration, side, batch_size = MODELS[name]
    batch_size = options.batch_size or batch_size
    model = getattr(keras.applications, function)(weights=None, input_shape=(side, side, 3), **configuration)
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / f"{name}.json"
        path.write_text(model.to_json())
        step = keras_step(model, batch_size)
        step()
        turns = [(keras_turn(step, options.seconds), shoal_turn(path, batch_size, len(options.cores), options.seconds))
                 for _ in range(options.turns)]
    theirs = [min(keras[i] for keras, _ in turns) for i in range(2)]
    ours = [min(shoal[i] for _, shoal in turns) for i in range(2)]
    print(f"| {name} | {batch_size} | {1e3 * theirs[0]:.0f} | {1e3 * ours[0]:.0f} | {theirs[0] / ours[0]:.2f} | "
          f"{1e3 * theirs[1]:.0f} | {1e3 * ours[1]:.0f} | {theirs[1] / ours[1]:.2f} | {turns[0][1][2] / 2**20:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(MODELS)} [all]")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="both sides compute on so many")
    parser.add_argument("--batch_size", type=int, help="of all models [what suits each]")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="of each turn")
    options = parser.parse_args()
    for name in options.models:
        if name not in MODELS:
            sys.exit(f"there is no model {name!r}; there are {', '.join(MODELS)}")
    # Before JAX counts the cores. Programs that are started inherit it.
    options.cores = sorted(os.sched_getaffinity(0))[:options.cores]
    os.sched_setaffinity(0, options.cores)
    os.environ["KERAS_BACKEND"] = "jax"
    print(f"{len(options.cores)} cores; milliseconds a step, ratios Keras / Shoal; load average {os.getloadavg()[0]:.1f}\n")
    print("| model | batch | Keras + JAX | Shoal | ratio | CPU time: Keras + JAX | Shoal | ratio | activations, MiB |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for name in options.models or MODELS:
        measure(name, options)


if __name__ == "__main__":
    main()

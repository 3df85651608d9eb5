"""Golden cases of whole models, as keras.applications writes them: one training step, with every gradient, for `shoal model verify`.

    build/venv/bin/python tests/with_keras/applications.py OUT_DIR [case ...]

writes them (the larger have 100 MB of weights, so none is kept in the repository) and prints how far JAX in float32 is from float64.

Weights drawn alone would show nothing: in float64 and in float32 a few of a million values lie on different sides of a ReLU's kink, and
behind fifty batch normalizations each of these changes gradients by a hundredth. So each channel of a BatchNormalization before a ReLU
has its beta moved into the widest gap between the values that lie near the kink: then none does, and rounding is all that differs.
"""
import os
import pathlib
import sys

# XLA compiles for longer than it computes here.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
import make_golden  # noqa: E402  first: it chooses Keras's backend and type
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402
from undrawn import undrawn_weights  # noqa: E402

CLASSES = 7
REACH = 0.5  # how far a beta may be moved


# Case: the function of keras.applications and its options, the side of the pictures, how many.
CASES = {
    "mobilenet_v2_035": ("MobileNetV2", {"alpha": 0.35}, 65, 4),
    "mobilenet_v2": ("MobileNetV2", {}, 71, 3),
    "resnet50": ("ResNet50", {}, 65, 5),
    "mobilenet": ("MobileNet", {}, 65, 4),
    "resnet50_v2": ("ResNet50V2", {}, 65, 4),
    "densenet121": ("DenseNet121", {}, 65, 4),
    "efficientnet_b0": ("EfficientNetB0", {}, 65, 4),
}


def build(name):
    function, options, size, _ = CASES[name]
    model = getattr(keras.applications, function)(weights=None, input_shape=(size, size, 3), classes=CLASSES, **options)
    for layer in model.layers:
        if isinstance(layer, keras.layers.Dropout):
            layer.rate = 0.0  # random streams differ
    return model


def is_relu(layer):
    return isinstance(layer, keras.layers.ReLU) or getattr(layer, "activation", None) is keras.activations.relu


def normalization_before(layer):
    """The BatchNormalization whose beta moves what `layer` gets, all else being as it is."""
    before = layer.input._keras_history.operation
    sources = [i._keras_history.operation for i in before.input] if isinstance(before, keras.layers.Add) else [before]
    return next(s for s in sources if isinstance(s, keras.layers.BatchNormalization))


def kink_distances(model, x):
    """What is to be added to betas, by their paths, and how near to a kink the values of each ReLU then still come."""
    def walk(trained, other, x):
        moves, distances = {}, []

        def operation(layer):
            def call(*arguments, **options):
                if isinstance(layer, keras.layers.BatchNormalization):
                    options["training"] = True
                if is_relu(layer):
                    values = arguments[0]
                    near = jnp.sort(jnp.clip(values.reshape(-1, values.shape[-1]), -REACH, REACH), axis=0)
                    near = jnp.pad(near, ((1, 1), (0, 0)), constant_values=((-REACH, REACH), (0, 0)))
                    widest = jnp.argmax(jnp.diff(near, axis=0), axis=0)[None]
                    middle = (jnp.take_along_axis(near, widest, 0) + jnp.take_along_axis(near, widest + 1, 0))[0] / 2
                    moves[normalization_before(layer).beta.path] = -middle
                    values = values - middle
                    for kink in [0.0, getattr(layer, "max_value", None)]:
                        if kink is not None:
                            distances.append(jnp.abs(values - kink).min())
                    arguments = (values, *arguments[1:])
                return layer(*arguments, **options)
            return call

        state = [*zip(model.trainable_variables, trained), *zip(model.non_trainable_variables, other)]
        with keras.StatelessScope(state_mapping=state):
            model._run_through_graph(x, operation_fn=operation)
        return moves, distances

    return jax.jit(walk)(values_of(model.trainable_variables), values_of(model.non_trainable_variables), x)


def values_of(variables):
    return [jnp.asarray(v.numpy()) for v in variables]


def draw_beside_kinks(x):
    def draw(model, rng):
        make_golden.randomize(model, rng)
        moves, distances = kink_distances(make_golden.as_float64(model), x.astype(np.float64))
        for v in model.trainable_variables:
            if v.path in moves:
                v.assign(v.numpy() + np.float32(moves[v.path]))
        nearest = min(distances, default=np.inf)
        assert nearest > 1e-4, f"a value is {nearest} from a kink: draw others"
    return draw


def write_case(folder, name):
    """Writes `folder`/`name`."""
    _, _, size, pictures = CASES[name]
    rng = np.random.default_rng(20261122)
    if name.startswith("efficientnet"):  # it begins by dividing by 255
        x = rng.integers(0, 256, (pictures, size, size, 3)).astype(np.float32)
    else:
        x = rng.normal(0, 1, (pictures, size, size, 3)).astype(np.float32)
    y = rng.integers(0, CLASSES, pictures)
    with undrawn_weights():  # they are drawn by draw_beside_kinks
        make_golden.run_case(str(folder), name, build(name), x, y, make_golden.SCCE, {}, steps=1, draw=draw_beside_kinks(x))


def float32_error(folder):
    """The largest relative error of a gradient where JAX computes in float32, measured as `shoal model verify` does."""
    case = load_file(folder / "case.safetensors")
    model = keras.models.model_from_json((folder / "model.json").read_text())
    path = make_golden.paths(model)
    model.set_weights([case["weights/" + path[id(v)]] for v in model.weights])
    loss = make_golden.make_loss(make_golden.SCCE)

    def value(trained, other):
        output, _ = model.stateless_call(trained, other, case["input/x"], training=True)
        return loss(case["target"], output)

    found = jax.jit(jax.grad(value))(values_of(model.trainable_variables), values_of(model.non_trainable_variables))
    expected = [case["gradient/" + path[id(v)]] for v in model.trainable_variables]
    least = 0.01 * max(np.abs(e).max() for e in expected)
    return max(np.abs(np.asarray(f) - e).max() / max(np.abs(e).max(), least) for f, e in zip(found, expected))


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1])
    for each in sys.argv[2:] or CASES:
        keras.utils.clear_session()
        write_case(out, each)
        print(f"{each}: JAX in float32 {float32_error(out / each):.1e}", flush=True)

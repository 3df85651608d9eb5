"""Writes golden cases: what Keras computes, for Shoal to be compared with.

Keras 3 on JAX in float64 is the reference; a case of Keras 2 has the same numbers and a Keras 2 model.json.
A case is a folder: model.json (Keras), case.json (loss, optimizers, tolerances), case.safetensors (README.md has the names).

    pip install keras==3.15.1 jax safetensors "numpy>=2"
    KERAS_BACKEND=jax python make_golden.py OUT_DIR [case ...]
"""
import json, os, sys
os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_ENABLE_X64"] = "1"
import jax
import jax.numpy as jnp
import keras
import numpy as np
from keras.src.trainers.data_adapters.data_adapter_utils import class_weight_to_sample_weights
from safetensors.numpy import save_file

L = keras.layers


def as_float64(model):
    text = model.to_json()
    for dtype in ("float32", "mixed_bfloat16", "mixed_float16"):
        text = text.replace(f'"{dtype}"', '"float64"')
    m64 = keras.models.model_from_json(text)
    m64.set_weights([w.astype(np.float64) if w.dtype == np.float32 else w for w in model.get_weights()])
    return m64


def randomize(model, rng):
    """Weights that leave no term of any gradient at zero: biases, gammas and moving statistics too."""
    out = []
    for v in model.weights:
        shape, leaf = tuple(v.shape), v.path.split("/")[-1]
        if leaf in ("mean", "variance", "count"):  # of Normalization, which reads them only once
            out.append(v.numpy())
            continue
        if leaf in ("gamma", "moving_variance"):
            w = rng.uniform(0.5, 1.5, shape)
        elif leaf in ("bias", "beta", "moving_mean"):
            w = rng.normal(0, 0.2, shape)
        else:
            fan = max(1, int(np.prod(shape[:-1])))
            w = rng.normal(0, 1.0 / np.sqrt(fan), shape)
        out.append(w.astype(np.float32))
    model.set_weights(out)


def paths(model, before=""):
    """{id of a variable: its path} as Shoal and a reader of model.json see it. Keras's own v.path leaves out the models
    around a layer where those were built before they were nested; then two variables can have one path."""
    found = {}
    for layer in model.layers:
        if isinstance(layer, keras.Model):
            found.update(paths(layer, before + layer.name + "/"))
        else:
            for v in layer.weights:
                found[id(v)] = before + layer.name + "/" + v.name
    return found


def make_loss(spec):
    return getattr(keras.losses, spec["class_name"])(**spec["config"])


def make_optimizer(spec, model):
    config = dict(spec["config"])
    if isinstance(config.get("learning_rate"), dict):
        schedule = config["learning_rate"]
        config["learning_rate"] = getattr(keras.optimizers.schedules, schedule["class_name"])(**schedule["config"])
    excluded = config.pop("exclude_from_weight_decay", None)  # no argument of Keras's classes
    optimizer = getattr(keras.optimizers, spec["class_name"])(**config)
    if excluded is not None:
        path = paths(model)
        optimizer.exclude_from_weight_decay(var_list=[v for v in model.trainable_variables if path[id(v)] in excluded],
                                            var_names=[pattern for pattern in excluded if "/" not in pattern])
    return optimizer


def run_case(out, name, model, x, y, loss, optimizers, steps=3, seed=1, draw=randomize, sample_weight=None, class_weight=None):
    rng = np.random.default_rng(seed)
    draw(model, rng)
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.json"), "w") as f:
        f.write(json.dumps(json.loads(model.to_json()), indent=1))
    m = as_float64(model)
    loss_fn = make_loss(loss)
    xs = x if isinstance(x, dict) else {"x": x}
    xin = [xs[k].astype(np.float64) if xs[k].dtype == np.float32 else xs[k] for k in xs]
    xin = xin[0] if len(xin) == 1 else xin
    t = {f"input/{k}": v for k, v in xs.items()}
    t["target"] = y
    weights = None if sample_weight is None else sample_weight.astype(np.float64)
    if sample_weight is not None:
        t["sample_weight"] = sample_weight
    if class_weight is not None:  # what fit() makes of it
        weights = class_weight_to_sample_weights(y, class_weight).astype(np.float64)
    path = paths(m)
    names = [path[id(v)] for v in m.weights]
    assert len(set(names)) == len(names), names
    for n, v in zip(names, model.weights):
        t["weights/" + n] = np.asarray(v.numpy())
    tn = [path[id(v)] for v in m.trainable_variables]
    nn = [path.get(id(v), "seed") for v in m.non_trainable_variables]  # those of random streams have no path

    def f(tv, ntv):
        yp, ntv2, penalties = m.stateless_call(tv, ntv, xin, training=True, return_losses=True)
        return sum(penalties, loss_fn(jnp.asarray(y), yp, weights)), (yp, ntv2)

    tv = [jnp.asarray(v.numpy()) for v in m.trainable_variables]
    ntv = [jnp.asarray(v.numpy()) for v in m.non_trainable_variables]
    inf, _ = jax.jit(lambda tv, ntv: m.stateless_call(tv, ntv, xin, training=False))(tv, ntv)
    t["output/inference"] = np.asarray(inf, np.float32)
    step = jax.jit(jax.value_and_grad(f, has_aux=True))
    (l, (yp, _)), g = step(tv, ntv)
    t["output/training"] = np.asarray(yp, np.float32)
    t["loss"] = np.asarray([l], np.float32)
    for n, gi in zip(tn, g):
        t["gradient/" + n] = np.asarray(gi, np.float32)
    for oname, cfg in optimizers.items():
        mm = as_float64(model)
        opt = make_optimizer(cfg, mm)
        opt.build(mm.trainable_variables)
        tvv, ntvv = tv, ntv
        ov = [jnp.asarray(v.numpy()) for v in opt.variables]
        losses = []
        for s in range(steps):
            (l, (_, ntv2)), g = step(tvv, ntvv)
            losses.append(float(l))
            tvv, ov = opt.stateless_apply(ov, g, tvv)
            ntvv = ntv2
        t[f"after/{oname}/loss"] = np.asarray(losses, np.float32)
        for n, v in list(zip(tn, tvv)) + list(zip(nn, ntvv)):
            if "seed" in n:
                continue
            t[f"after/{oname}/{n}"] = np.asarray(v, np.float32)
    save_file({k: np.ascontiguousarray(v).reshape(np.shape(v)) for k, v in t.items()}, os.path.join(folder, "case.safetensors"))
    with open(os.path.join(folder, "case.json"), "w") as fh:
        of_class = {} if class_weight is None else {"class_weight": {str(k): v for k, v in class_weight.items()}}
        json.dump({"keras": keras.__version__, "loss": loss, **of_class, "steps": steps, "optimizers": optimizers,
                   "relative_tolerance": 1e-4, "after_tolerance": 1e-3}, fh, indent=1)
    print(f"{name}: {len(names)} variables, loss {float(t['loss'][0]):.6f}, {os.path.getsize(os.path.join(folder, 'case.safetensors')) / 1e3:.0f} kB")


def opt(cls, **kw):
    return {"class_name": cls, "config": kw}


SGD = {"sgd": opt("SGD", learning_rate=0.05)}
MOMENTUM = {"momentum": opt("SGD", learning_rate=0.05, momentum=0.9)}
FEW = {"momentum": opt("SGD", learning_rate=0.05, momentum=0.9), "adam": opt("Adam", learning_rate=0.01)}
SCCE = {"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": False}}
SCCE_LOGITS = {"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": True}}
MSE = {"class_name": "MeanSquaredError", "config": {}}
BCE = {"class_name": "BinaryCrossentropy", "config": {"from_logits": False}}


def images(rng, n, h, w, c):
    return rng.normal(0, 1, (n, h, w, c)).astype(np.float32)


def cases(out, only=()):
    rng = np.random.default_rng(20261121)

    def case(name, build, x, y, loss, optimizers=SGD, **kw):
        if only and name not in only:
            return
        keras.utils.clear_session()
        run_case(out, name, build(), x, y, loss, optimizers, **kw)

    labels = lambda n, k: rng.integers(0, k, n).astype(np.int64)

    case("mlp", lambda: keras.Sequential([keras.Input((20,)), L.Dense(16, activation="relu"), L.Dense(12, activation="tanh"),
         L.Dense(5, activation="softmax")]), rng.normal(0, 1, (9, 20)).astype(np.float32), labels(9, 5), SCCE, FEW)

    case("fashion_cnn", lambda: keras.Sequential([keras.Input((28, 28, 1)), L.Rescaling(1 / 255.0), L.Conv2D(8, 3, activation="relu"),
         L.MaxPooling2D(), L.Conv2D(12, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), L.Dropout(0.0),
         L.Dense(24, activation="relu"), L.Dense(10)]), rng.integers(0, 256, (6, 28, 28, 1)).astype(np.float32), labels(6, 10),
         SCCE_LOGITS, FEW)

    def odd_conv():
        i = keras.Input((13, 11, 3))
        x = L.Conv2D(6, (3, 5), strides=2, padding="same", use_bias=False)(i)
        x = L.BatchNormalization(momentum=0.9, epsilon=1e-3)(x)
        x = L.ReLU(6.0)(x)
        x = L.Conv2D(7, 3, dilation_rate=2, padding="same", activation="swish")(x)
        x = L.AveragePooling2D(3, strides=2, padding="same")(x)
        x = L.GlobalAveragePooling2D()(x)
        return keras.Model(i, L.Dense(4, activation="softmax")(x))
    case("odd_conv", odd_conv, images(rng, 5, 13, 11, 3), labels(5, 4), SCCE, FEW)

    def inverted_residual():
        """One MobileNetV2 block with stride 2 on an odd size, one with a residual."""
        i = keras.Input((15, 15, 4))
        x = L.Conv2D(12, 1, padding="same", use_bias=False, name="expand")(i)
        x = L.BatchNormalization(epsilon=1e-3, momentum=0.999, name="expand_bn")(x)
        x = L.ReLU(6.0, name="expand_relu")(x)
        x = L.ZeroPadding2D(((0, 1), (0, 1)), name="pad")(x)
        x = L.DepthwiseConv2D(3, strides=2, padding="valid", use_bias=False, name="depthwise")(x)
        x = L.BatchNormalization(epsilon=1e-3, momentum=0.999, name="depthwise_bn")(x)
        x = L.ReLU(6.0, name="depthwise_relu")(x)
        x = L.Conv2D(8, 1, use_bias=False, name="project")(x)
        a = L.BatchNormalization(epsilon=1e-3, momentum=0.999, name="project_bn")(x)
        x = L.Conv2D(16, 1, use_bias=False, name="expand2")(a)
        x = L.BatchNormalization(epsilon=1e-3, momentum=0.999, name="expand2_bn")(x)
        x = L.ReLU(6.0, name="expand2_relu")(x)
        x = L.DepthwiseConv2D(3, padding="same", use_bias=False, name="depthwise2")(x)
        x = L.BatchNormalization(epsilon=1e-3, momentum=0.999, name="depthwise2_bn")(x)
        x = L.ReLU(6.0, name="depthwise2_relu")(x)
        x = L.Conv2D(8, 1, use_bias=False, name="project2")(x)
        x = L.BatchNormalization(epsilon=1e-3, momentum=0.999, name="project2_bn")(x)
        x = L.Add(name="add")([a, x])
        x = L.GlobalAveragePooling2D(name="pool")(x)
        return keras.Model(i, L.Dense(3, activation="softmax", name="predictions")(x))
    case("inverted_residual", inverted_residual, images(rng, 6, 15, 15, 4), labels(6, 3), SCCE, FEW)

    def bottleneck():
        """A ResNet v1 bottleneck with a projection shortcut, after a padded 7x7 stem and a padded max pool."""
        i = keras.Input((19, 19, 3))
        x = L.ZeroPadding2D(3)(i)
        x = L.Conv2D(8, 7, strides=2)(x)
        x = L.BatchNormalization(epsilon=1.001e-5)(x)
        x = L.Activation("relu")(x)
        x = L.ZeroPadding2D(1)(x)
        p = L.MaxPooling2D(3, strides=2)(x)
        s = L.BatchNormalization(epsilon=1.001e-5)(L.Conv2D(16, 1, strides=1)(p))
        x = L.Activation("relu")(L.BatchNormalization(epsilon=1.001e-5)(L.Conv2D(4, 1)(p)))
        x = L.Activation("relu")(L.BatchNormalization(epsilon=1.001e-5)(L.Conv2D(4, 3, padding="same")(x)))
        x = L.BatchNormalization(epsilon=1.001e-5)(L.Conv2D(16, 1)(x))
        x = L.Activation("relu")(L.Add()([s, x]))
        x = L.GlobalAveragePooling2D()(x)
        return keras.Model(i, L.Dense(5)(x))
    # No Adam here: a bias before BatchNormalization has gradient zero, and Adam would make rounding noise into steps.
    case("bottleneck", bottleneck, images(rng, 4, 19, 19, 3), labels(4, 5), SCCE_LOGITS, MOMENTUM)

    def branches():
        i = keras.Input((9, 10, 3))
        a = L.Conv2D(4, 3, padding="same", activation="relu")(i)
        b = L.SeparableConv2D(5, 3, padding="same", depth_multiplier=2, activation="elu")(i)
        c = L.MaxPooling2D(3, strides=1, padding="same")(i)
        x = L.Concatenate()([a, b, c])
        x = L.UpSampling2D(2)(x)
        x = L.Conv2DTranspose(4, 3, strides=2, padding="same", activation="leaky_relu")(x)
        x = L.GlobalMaxPooling2D()(x)
        g = L.Dense(4, activation="sigmoid")(x)
        x = L.Multiply()([x, g])
        return keras.Model(i, L.Dense(2)(x))
    case("branches", branches, images(rng, 4, 9, 10, 3), rng.normal(0, 1, (4, 2)).astype(np.float32), MSE, FEW)

    def recommender():
        u, v = keras.Input((1,), dtype="int32", name="user"), keras.Input((6,), dtype="int32", name="items")
        a = L.Flatten()(L.Embedding(50, 8, name="user_embedding")(u))
        b = L.GlobalAveragePooling1D()(L.Embedding(80, 8, name="item_embedding")(v))
        x = L.Concatenate()([a, b, L.Multiply()([a, b])])
        x = L.LayerNormalization()(x)
        return keras.Model([u, v], L.Dense(1, activation="sigmoid")(L.Dense(8, activation="gelu")(x)))
    case("recommender", recommender, {"user": rng.integers(0, 50, (7, 1)).astype(np.int32), "items": rng.integers(0, 80, (7, 6)).astype(np.int32)},
         rng.integers(0, 2, (7, 1)).astype(np.float32), BCE, FEW)

    many = {
        "sgd": opt("SGD", learning_rate=0.05), "momentum": opt("SGD", learning_rate=0.05, momentum=0.9),
        "nesterov": opt("SGD", learning_rate=0.05, momentum=0.9, nesterov=True),
        "sgd_decay": opt("SGD", learning_rate=0.05, momentum=0.9, weight_decay=0.01),
        "adam": opt("Adam", learning_rate=0.01), "amsgrad": opt("Adam", learning_rate=0.01, amsgrad=True),
        "adamw": opt("AdamW", learning_rate=0.01, weight_decay=0.02), "adamax": opt("Adamax", learning_rate=0.01),
        "nadam": opt("Nadam", learning_rate=0.01), "adagrad": opt("Adagrad", learning_rate=0.05),
        "adadelta": opt("Adadelta", learning_rate=0.5), "rmsprop": opt("RMSprop", learning_rate=0.01),
        "rmsprop_centered": opt("RMSprop", learning_rate=0.01, momentum=0.5, centered=True),
        "ftrl": opt("Ftrl", learning_rate=0.05, l1_regularization_strength=0.001, l2_regularization_strength=0.002, beta=0.1),
        "lion": opt("Lion", learning_rate=0.001), "lamb": opt("Lamb", learning_rate=0.01),
        "clipnorm": opt("SGD", learning_rate=0.05, clipnorm=0.05), "clipvalue": opt("SGD", learning_rate=0.05, clipvalue=0.01),
        "global_clipnorm": opt("Adam", learning_rate=0.01, global_clipnorm=0.05),
        "ema": opt("SGD", learning_rate=0.05, use_ema=True, ema_momentum=0.9),
        "exponential_decay": opt("SGD", learning_rate=opt("ExponentialDecay", initial_learning_rate=0.1, decay_steps=2, decay_rate=0.5)),
        "cosine_warmup": opt("SGD", learning_rate=opt("CosineDecay", initial_learning_rate=0.0, decay_steps=4, warmup_target=0.1, warmup_steps=2)),
        "piecewise": opt("SGD", learning_rate=opt("PiecewiseConstantDecay", boundaries=[1, 3], values=[0.1, 0.05, 0.01])),
        "polynomial": opt("SGD", learning_rate=opt("PolynomialDecay", initial_learning_rate=0.1, decay_steps=4, end_learning_rate=0.01, power=2.0)),
    }
    case("optimizers", lambda: keras.Sequential([keras.Input((6,)), L.Dense(5, activation="tanh"), L.Dense(3)]),
         rng.normal(0, 1, (8, 6)).astype(np.float32), rng.normal(0, 1, (8, 3)).astype(np.float32), MSE, many, steps=6)

    def schedule(cls, **kw):
        return opt("SGD", learning_rate=opt(cls, **kw))

    own = np.random.default_rng(12)  # cases above keep their numbers
    options = {  # what "optimizers" does not reach
        "adam_options": opt("Adam", learning_rate=0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-3, weight_decay=0.1),
        "amsgrad_options": opt("Adam", learning_rate=0.02, beta_1=0.5, beta_2=0.5, amsgrad=True, weight_decay=0.1),
        "adamw_default": opt("AdamW", learning_rate=0.05),
        "adamw_options": opt("AdamW", learning_rate=0.02, weight_decay=0.2, beta_1=0.8, beta_2=0.95, epsilon=1e-3, amsgrad=True),
        "adamax_options": opt("Adamax", learning_rate=0.02, beta_1=0.8, beta_2=0.6, epsilon=1e-3, weight_decay=0.1),
        "nadam_options": opt("Nadam", learning_rate=0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-3, weight_decay=0.1),
        "adagrad_options": opt("Adagrad", learning_rate=0.05, initial_accumulator_value=0.02, epsilon=1e-2, weight_decay=0.1),
        "adadelta_options": opt("Adadelta", learning_rate=0.5, rho=0.8, epsilon=1e-3, weight_decay=0.1),
        "rmsprop_momentum": opt("RMSprop", learning_rate=0.01, rho=0.8, momentum=0.7, epsilon=1e-3, weight_decay=0.1),
        "rmsprop_centered_only": opt("RMSprop", learning_rate=0.01, rho=0.8, epsilon=1e-2, centered=True),
        "ftrl_power": opt("Ftrl", learning_rate=0.05, learning_rate_power=-0.3, initial_accumulator_value=0.3,
                          l1_regularization_strength=0.01, l2_shrinkage_regularization_strength=0.02, weight_decay=0.1),
        "ftrl_shrinkage": opt("Ftrl", learning_rate=0.05, l2_shrinkage_regularization_strength=0.2, beta=0.3),
        "lion_options": opt("Lion", learning_rate=0.003, beta_1=0.7, beta_2=0.8, weight_decay=0.1),
        "lamb_options": opt("Lamb", learning_rate=0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-3, weight_decay=0.1),
        "clipnorm_adam": opt("Adam", learning_rate=0.01, clipnorm=0.05, weight_decay=0.1),
        "clipvalue_momentum": opt("SGD", learning_rate=0.05, momentum=0.9, nesterov=True, clipvalue=0.02),
        "global_clipnorm_sgd": opt("SGD", learning_rate=0.05, global_clipnorm=0.3),
        "clips_that_do_not_reach": opt("SGD", learning_rate=0.05, global_clipnorm=1000.0),
        "ema_overwrite": opt("Adam", learning_rate=0.02, use_ema=True, ema_momentum=0.7, ema_overwrite_frequency=3),
        "exponential_staircase": schedule("ExponentialDecay", initial_learning_rate=0.1, decay_steps=3, decay_rate=0.5, staircase=True),
        "inverse_time": schedule("InverseTimeDecay", initial_learning_rate=0.1, decay_steps=2, decay_rate=0.7),
        "inverse_time_staircase": schedule("InverseTimeDecay", initial_learning_rate=0.1, decay_steps=3, decay_rate=0.7, staircase=True),
        "polynomial_cycle": schedule("PolynomialDecay", initial_learning_rate=0.1, decay_steps=3, end_learning_rate=0.02, power=1.5, cycle=True),
        "polynomial_default": schedule("PolynomialDecay", initial_learning_rate=0.1, decay_steps=4),
        "cosine_alpha": schedule("CosineDecay", initial_learning_rate=0.1, decay_steps=5, alpha=0.2),
        "cosine_restarts": schedule("CosineDecayRestarts", initial_learning_rate=0.1, first_decay_steps=2, t_mul=1.5, m_mul=0.8, alpha=0.1),
        "cosine_restarts_equal": schedule("CosineDecayRestarts", initial_learning_rate=0.1, first_decay_steps=3, t_mul=1.0, m_mul=0.5),
        "piecewise_three": schedule("PiecewiseConstantDecay", boundaries=[2, 4, 6], values=[0.1, 0.05, 0.02, 0.01]),
        "decay_by_schedule": opt("Adam", learning_rate=opt("CosineDecay", initial_learning_rate=0.01, decay_steps=4, warmup_target=0.05, warmup_steps=3),
                                 weight_decay=0.2),
    }
    case("optimizer_options", lambda: keras.Sequential([keras.Input((6,)), L.Dense(5, activation="tanh"), L.Dense(3)]),
         own.normal(0, 1, (8, 6)).astype(np.float32), own.normal(0, 1, (8, 3)).astype(np.float32), MSE, options, steps=9)

    own = np.random.default_rng(14)
    without = {  # some variables decay and some do not, by their names, by their paths, by both
        "sgd_without_biases": opt("SGD", learning_rate=0.05, weight_decay=0.5, exclude_from_weight_decay=["bias"]),
        "momentum_without_a_kernel": opt("SGD", learning_rate=0.05, momentum=0.9, weight_decay=0.5, exclude_from_weight_decay=["second/kernel"]),
        "adamw_without_several": opt("AdamW", learning_rate=0.02, weight_decay=0.5, exclude_from_weight_decay=["^(b|g)", "first/kernel"]),
        "lamb_without_gammas": opt("Lamb", learning_rate=0.02, weight_decay=0.5, exclude_from_weight_decay=["am+a$"]),
        "ema_without_kernels": opt("Adam", learning_rate=0.02, weight_decay=0.5, use_ema=True, ema_momentum=0.7, ema_overwrite_frequency=3,
                                   exclude_from_weight_decay=["kernel"]),
    }
    case("decay_exclusions", lambda: keras.Sequential([keras.Input((6,)), L.Dense(5, use_bias=False, name="first"), L.BatchNormalization(name="norm"),
         L.Activation("tanh"), L.Dense(3, name="second")]),
         own.normal(0, 1, (8, 6)).astype(np.float32), own.normal(0, 1, (8, 3)).astype(np.float32), MSE, without, steps=6)

    lx, ly = rng.normal(0, 1, (6, 5)).astype(np.float32), rng.uniform(0.05, 0.95, (6, 4)).astype(np.float32)
    onehot = np.eye(4, dtype=np.float32)[rng.integers(0, 4, 6)]
    for lname, spec, act, yy in [
            ("loss_mae", {"class_name": "MeanAbsoluteError", "config": {}}, None, ly),
            ("loss_huber", {"class_name": "Huber", "config": {"delta": 0.5}}, None, ly),
            ("loss_log_cosh", {"class_name": "LogCosh", "config": {}}, None, ly),
            ("loss_hinge", {"class_name": "Hinge", "config": {}}, None, onehot * 2 - 1),
            ("loss_kl", {"class_name": "KLDivergence", "config": {}}, "softmax", ly),
            ("loss_poisson", {"class_name": "Poisson", "config": {}}, "softplus", ly),
            ("loss_cosine", {"class_name": "CosineSimilarity", "config": {"axis": -1}}, None, ly),
            ("loss_categorical_smooth", {"class_name": "CategoricalCrossentropy", "config": {"from_logits": True, "label_smoothing": 0.1}}, None, onehot),
            ("loss_binary_logits", {"class_name": "BinaryCrossentropy", "config": {"from_logits": True, "label_smoothing": 0.05}}, None, onehot),
            ("loss_focal", {"class_name": "BinaryFocalCrossentropy", "config": {"gamma": 2.0}}, "sigmoid", onehot)]:
        case(lname, lambda: keras.Sequential([keras.Input((5,)), L.Dense(4, activation=act)]), lx, yy, spec)

    case("prelu", lambda: keras.Sequential([keras.Input((6,)), L.Dense(5, activation="selu"), L.PReLU(), L.Dense(3)]), rng.normal(0, 1, (8, 6)).astype(np.float32), rng.normal(0, 1, (8, 3)).astype(np.float32), MSE, FEW)

    def transformer_block():
        i = keras.Input((7,), dtype="int32", name="tokens")
        x = L.Embedding(30, 12, name="embedding")(i)
        a = L.MultiHeadAttention(3, 4, name="attention")(x, x)
        x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, a]))
        h = L.Dense(12)(L.Dense(24, activation="gelu")(x))
        x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, h]))
        return keras.Model(i, L.Dense(4)(L.GlobalAveragePooling1D()(x)))
    case("transformer_block", transformer_block, rng.integers(0, 30, (5, 7)).astype(np.int32), labels(5, 4), SCCE_LOGITS, MOMENTUM)  # the key bias has gradient zero

    def nested():
        """Functional and Sequential models in one another, layers of one name; one is called twice, one has two inputs, one is frozen."""
        i = keras.Input((6, 7, 2))
        side = keras.Input((5,), name="side")
        inner = keras.Sequential([keras.Input((6, 7, 2)), L.Conv2D(3, 3, padding="same", activation="relu", name="conv"),
                                  keras.Sequential([L.Conv2D(2, 1, name="conv")], name="deep")], name="features")
        a, b = keras.Input((2,), name="a"), keras.Input((5,), name="b")
        join = keras.Model([a, b], L.Add(name="sum")([L.Dense(4, name="dense")(a), L.Dense(4, name="other")(b)]), name="join")
        frozen = keras.Sequential([keras.Input((4,)), L.Dense(4, activation="tanh", name="dense")], name="frozen")
        frozen.trainable = False
        once = inner(i)
        x = L.GlobalAveragePooling2D(name="pool")(inner(L.Activation("tanh", name="tanh")(once)))
        x = frozen(join([x, side]))
        return keras.Model([i, side], L.Dense(3, name="dense")(x), name="outer")
    case("nested", nested, {"input_layer": images(rng, 4, 6, 7, 2), "side": rng.normal(0, 1, (4, 5)).astype(np.float32)}, labels(4, 3), SCCE_LOGITS, FEW)

    def merging():
        """Merging layers with shapes that broadcast, global pooling of images and sequences, ReLU and its kin with their options."""
        i = keras.Input((4, 5, 3), name="image")
        w = keras.Input((3,), name="weights")
        x = L.Conv2D(3, 1, name="conv")(i)
        x = L.Multiply(name="scaled")([x, L.Reshape((1, 1, 3))(w)])   # squeeze and excitation
        x = L.Subtract(name="less")([x, w])                             # a rank is missing behind the batch
        a = L.LeakyReLU(negative_slope=0.1, name="leaky")(x)
        b = L.ELU(alpha=0.7, name="elu")(x)
        c = L.ReLU(max_value=1.5, negative_slope=0.2, threshold=0.3, name="relu")(x)
        x = L.Maximum(name="largest")([a, L.Minimum(name="smallest")([b, c, i]), L.Average(name="mean")([i, a, c])])
        s = L.Reshape((20, 3), name="sequence")(x)
        x = L.Add(name="sum")([L.GlobalMaxPooling2D(name="max2")(x), L.GlobalMaxPooling1D(name="max1")(L.Activation("tanh")(s)),
                               L.GlobalAveragePooling1D(name="mean1")(s), L.Flatten()(L.GlobalMaxPooling1D(keepdims=True, name="keep1")(s)),
                               L.Flatten()(L.GlobalAveragePooling1D(keepdims=True, name="keep_mean1")(s)),
                               L.Flatten()(L.GlobalMaxPooling2D(keepdims=True, name="keep2")(b))])
        return keras.Model([i, w], L.Dense(2, activation=L.LeakyReLU(negative_slope=0.4), name="dense")(x))
    case("merging", merging, {"image": images(rng, 3, 4, 5, 3), "weights": rng.normal(0, 1, (3, 3)).astype(np.float32)},
         rng.normal(0, 1, (3, 2)).astype(np.float32), MSE, FEW)

    def margins():
        """Padding and cropping in each form of their option, and concatenation along each axis."""
        i = keras.Input((5, 6, 2))
        x = L.Conv2D(2, 2, name="conv")(L.ZeroPadding2D(((1, 0), (2, 3)), name="sides")(i))
        x = L.Concatenate(axis=1, name="rows")([L.ZeroPadding2D((1, 2), name="axes")(x), L.ZeroPadding2D(((0, 1), (2, 2)), name="more")(x)])
        x = L.Concatenate(axis=-2, name="columns")([x, L.Cropping2D(((0, 0), (1, 4)), name="crop")(x)])
        x = L.Concatenate(name="channels")([x, L.Activation("tanh")(x), x])
        x = L.Cropping2D((2, 1), name="crop_axes")(L.Cropping2D(1, name="crop_all")(x))
        return keras.Model(i, L.Dense(2, name="dense")(L.Flatten()(x)))
    case("margins", margins, images(rng, 3, 5, 6, 2), rng.normal(0, 1, (3, 2)).astype(np.float32), MSE, FEW)

    def sequences():
        """Convolution and pooling over sequences, with each padding."""
        i = keras.Input((23, 4))
        x = L.Conv1D(6, 3, strides=2, padding="same", activation="relu", name="same")(i)
        x = L.Conv1D(6, 3, dilation_rate=2, padding="causal", use_bias=False, name="causal")(x)
        x = L.MaxPooling1D(3, strides=1, padding="same", name="max")(x)
        x = L.Conv1D(4, [2], groups=2, name="groups")(x)
        x = L.AveragePooling1D(2, name="average")(x)
        return keras.Model(i, L.Dense(2, name="dense")(L.Flatten()(x)))
    case("sequences", sequences, rng.normal(0, 1, (3, 23, 4)).astype(np.float32), rng.normal(0, 1, (3, 2)).astype(np.float32), MSE, FEW)

    def normalized():
        """BatchNormalization without scale, without center and frozen; depthwise and separable convolutions of sequences and images with a bias."""
        i = keras.Input((12, 10, 3))
        x = L.DepthwiseConv2D((3, 2), strides=2, padding="same", depth_multiplier=2, activation="relu", name="depthwise")(i)
        x = L.BatchNormalization(scale=False, momentum=0.8, name="no_scale")(x)
        x = L.SeparableConv2D(4, 3, dilation_rate=2, padding="same", use_bias=False, name="separable")(x)
        x = L.BatchNormalization(center=False, epsilon=0.01, name="no_center")(x)
        frozen = L.BatchNormalization(name="frozen")
        frozen.trainable = False
        x = L.Reshape((30, 4), name="sequence")(frozen(x))
        x = L.SeparableConv1D(5, 3, strides=2, depth_multiplier=2, activation="tanh", name="separable1")(x)
        x = L.DepthwiseConv1D(3, padding="same", activation="tanh", name="depthwise1")(x)
        x = L.BatchNormalization(name="of_sequence")(x)
        return keras.Model(i, L.Dense(2, name="dense")(L.GlobalAveragePooling1D(name="pool")(x)))
    case("normalized", normalized, images(rng, 4, 12, 10, 3), rng.normal(0, 1, (4, 2)).astype(np.float32), MSE, MOMENTUM)

    def resized():
        """Up-sampling and resizing, nearest and bilinear, and transposed convolutions of every padding, with strides above the kernel too."""
        i = keras.Input((4, 5, 2))
        a = L.UpSampling2D((2, 3), interpolation="bilinear", name="up")(i)
        b = L.Resizing(8, 15, interpolation="nearest", name="nearest")(L.UpSampling2D(name="twice")(i))
        c = L.Resizing(8, 15, name="bilinear")(L.Conv2DTranspose(2, (3, 2), strides=(2, 3), padding="valid", activation="tanh", name="valid")(i))
        d = L.Resizing(8, 15, name="small")(L.Conv2DTranspose(2, 1, strides=2, padding="same", use_bias=False, name="holes")(i))
        e = L.Resizing(8, 15, name="large")(L.Conv2DTranspose(2, 3, dilation_rate=2, name="dilated")(i))
        x = L.Concatenate(name="all")([a, b, c, d, e])
        x = L.SpatialDropout2D(0.0, name="channels")(L.Dropout(0.0, noise_shape=(None, 1, 1, 1), name="examples")(x))
        return keras.Model(i, L.Dense(2, name="dense")(L.GlobalAveragePooling2D(name="pool")(L.Conv2D(3, 2, activation="tanh", name="conv")(x))))
    case("resized", resized, images(rng, 3, 4, 5, 2), rng.normal(0, 1, (3, 2)).astype(np.float32), MSE, FEW)

    def preprocessed():
        """Normalization with statistics given, one and many, and with those that are variables; PReLU with shared axes."""
        i = keras.Input((4, 3, 2))
        x = L.Normalization(mean=[0.5, -1.0], variance=[2.0, 0.25], name="given")(i)
        x = L.Rescaling([0.5, 2.0], offset=[0.1, 0.2], name="rescaling")(L.Normalization(name="learnt")(x))
        x = L.Normalization(mean=0.1, variance=4.0, name="one")(x)
        x = L.PReLU(shared_axes=[1, 2], name="channels")(L.Conv2D(3, 2, name="conv")(x))
        x = L.PReLU(alpha_initializer="ones", name="all")(x)
        return keras.Model(i, L.Dense(2, name="dense")(L.Flatten(name="flatten")(x)))
    case("preprocessed", preprocessed, images(rng, 3, 4, 3, 2), rng.normal(0, 1, (3, 2)).astype(np.float32), MSE, FEW)

    def embedded():
        """Two integer inputs, a table that is shared, and LayerNormalization with and without scale and center."""
        a, b = keras.Input((5,), dtype="int32", name="a"), keras.Input((3,), dtype="int64", name="b")
        table = L.Embedding(11, 4, name="table")
        x = L.Concatenate(axis=1, name="both")([L.LayerNormalization(scale=False, name="no_scale")(table(a)),
                                                L.LayerNormalization(center=False, epsilon=0.1, name="no_center")(table(b))])
        x = L.Conv1D(3, 2, activation="gelu", name="conv")(x)
        return keras.Model([a, b], L.Dense(2, name="dense")(L.LayerNormalization(name="both_on")(L.Flatten(name="flatten")(x))))
    case("embedded", embedded, {"a": rng.integers(0, 11, (4, 5)).astype(np.int32), "b": rng.integers(0, 11, (4, 3)).astype(np.int64)},
         rng.normal(0, 1, (4, 2)).astype(np.float32), MSE, FEW)

    def regularized():
        """Each regularizer, of each kind of variable, a shared layer's once, and not of a frozen layer's."""
        R = keras.regularizers
        i = keras.Input((6, 5, 2))
        x = L.Conv2D(3, 3, kernel_regularizer=R.L2(0.02), bias_regularizer="l1", name="conv")(i)
        x = L.BatchNormalization(beta_regularizer=R.L1(0.03), gamma_regularizer=R.L2(0.05), name="normalization")(x)
        x = L.SeparableConv2D(4, 2, depthwise_regularizer=R.L1L2(0.01, 0.02), pointwise_regularizer=R.L1L2(l2=0.04), name="separable")(x)
        x = L.DepthwiseConv2D(2, depthwise_regularizer=R.L1(0.01), activation="tanh", name="depthwise")(x)
        x = L.Flatten(name="flatten")(L.PReLU(alpha_regularizer="l2", name="prelu")(x))
        shared = L.Dense(x.shape[-1], kernel_regularizer=R.OrthogonalRegularizer(0.1), activation="tanh", name="shared")
        x = L.LayerNormalization(gamma_regularizer="l1", name="layer_normalization")(shared(shared(x)))
        frozen = L.Dense(3, kernel_regularizer=R.L2(10.0), name="frozen")
        frozen.trainable = False
        x = L.Dense(4, kernel_regularizer=R.OrthogonalRegularizer(0.2, mode="columns"), name="columns")(x)
        return keras.Model(i, frozen(x))
    case("regularized", regularized, images(rng, 4, 6, 5, 2), rng.normal(0, 1, (4, 3)).astype(np.float32), MSE, FEW)

    def regularized_table():
        i = keras.Input((3,), dtype="int32")
        x = L.Embedding(7, 4, embeddings_regularizer=keras.regularizers.L2(0.1), name="table")(i)
        return keras.Model(i, L.Dense(3, activation="softmax", kernel_regularizer="l1l2", name="dense")(L.Flatten(name="flatten")(x)))
    case("regularized_table", regularized_table, rng.integers(0, 7, (4, 3)).astype(np.int32), labels(4, 3), SCCE, FEW)

    augment = np.random.default_rng(13)  # cases above keep their numbers

    def augmented():
        """Layers that augment images, each with ranges of one number, so that there is nothing to draw: every fill mode and both
        interpolations, on images that a convolution made, and on the input."""
        i = keras.Input((7, 6, 2))
        fills = ["constant", "nearest", "reflect", "wrap"]
        x = L.RandomBrightness((0.2, 0.2), value_range=(-1, 1.5), name="brightness")(L.RandomContrast((-0.4, 0.4), value_range=(-2, 2), name="contrast")(i))
        x = L.Conv2D(2, 2, padding="same", activation="tanh", name="conv")(x)
        bilinear = dict(interpolation="bilinear", fill_value=0.4)
        nearest = dict(interpolation="nearest", fill_value=-0.3)
        all = [x]
        for k, fill in enumerate(fills):
            all.append(L.RandomTranslation((0.83, 0.83), (-0.4, -0.4), fill_mode=fill, **bilinear, name="move_" + fill)(x))
            all.append(L.RandomRotation((0.13, 0.13), fill_mode=fill, **bilinear, name="turn_" + fill)(x))
            all.append(L.RandomRotation((-0.31, -0.31), fill_mode=fill, **nearest, name="turn_near_" + fill)(x))
            all.append(L.RandomZoom((0.77, 0.77), (-0.6, -0.6), fill_mode=fill, **bilinear, name="zoom_" + fill)(x))
            all.append(L.RandomZoom((0.41, 0.41), fill_mode=fill, **nearest, name="zoom_near_" + fill)(x))
        all.append(L.RandomContrast((-0.3, 0.3), value_range=(-0.8, 0.7), name="contrast_of_conv")(x))
        all.append(L.RandomBrightness((-0.1, -0.1), value_range=(-0.7, 0.9), name="brightness_of_conv")(x))
        all.append(L.RandomCrop(7, 6, name="whole")(x))
        x = L.Concatenate(name="all")(all)
        return keras.Model(i, L.Dense(2, name="dense")(L.Flatten(name="flatten")(L.Conv2D(3, 3, activation="tanh", name="last")(x))))
    case("augmented", augmented, images(augment, 3, 7, 6, 2), augment.normal(0, 1, (3, 2)).astype(np.float32), MSE, MOMENTUM)

    def activations():
        """Every activation that the cases before lack, and merging layers with one input. Keras takes the output of glu for as wide as
        its input while it builds a model, so that nothing but the end can have it."""
        i = keras.Input((12,))
        names = ["celu", "exponential", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "linear", "log_sigmoid", "log_softmax", "mish", "relu6",
                 "selu", "soft_shrink", "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "squareplus", "tanh_shrink"]
        all = [L.Activation(name, name="of_" + name)(L.Dense(6, name="before_" + name)(i)) for name in names]
        for k, merge in enumerate([L.Add, L.Multiply, L.Average, L.Maximum, L.Minimum, L.Concatenate]):
            all[k] = merge(name=f"one_{k}")([all[k]])
        return keras.Model(i, L.Dense(4, activation="glu", name="dense")(L.Concatenate(name="all")(all)))
    case("activations", activations, augment.normal(0, 1.5, (4, 12)).astype(np.float32), augment.normal(0, 1, (4, 2)).astype(np.float32), MSE, MOMENTUM)

    def sparsemax():
        """Rows of small numbers, of which several are in the support, and of large ones, of which one is; of an image's channels too."""
        i = keras.Input((2, 3, 4))
        x = L.Conv2D(5, 1, activation="sparsemax", name="pixels")(i)
        x = L.Add(name="sum")([L.Activation("sparsemax", name="of_half")(L.Rescaling(0.5, name="half")(x)), L.Conv2D(5, 1, activation="tanh", name="beside")(i)])
        return keras.Model(i, L.Dense(4, activation="sparsemax", name="dense")(L.Flatten(name="flatten")(x)))
    sparse = np.random.default_rng(13)
    sizes = np.array([0.1, 0.3, 0.6, 1, 2, 4], np.float32)[:, None, None, None]
    case("sparsemax", sparsemax, images(sparse, 6, 2, 3, 4) * sizes, sparse.uniform(0, 1, (6, 4)).astype(np.float32), MSE, MOMENTUM)

    def shared_normalization():
        """BatchNormalization that is called three times, and one in a nested model that is called twice."""
        i = keras.Input((5, 4, 3))
        shared = L.BatchNormalization(momentum=0.7, name="shared")
        inner = keras.Sequential([keras.Input((5, 4, 3)), L.Conv2D(3, 2, padding="same", name="conv"), L.BatchNormalization(momentum=0.9, name="norm")], name="inner")
        x = shared(inner(L.Activation("tanh", name="tanh")(shared(i))))
        return keras.Model(i, L.Dense(2, name="dense")(L.Flatten(name="flatten")(shared(inner(L.Activation("tanh", name="again")(x))))))
    case("shared_normalization", shared_normalization, images(augment, 4, 5, 4, 3), augment.normal(0, 1, (4, 2)).astype(np.float32), MSE, MOMENTUM)

    # Each loss, and each way to take it, that the cases before do not reach; batches in which no value lies where a derivative jumps.
    loss_rng = np.random.default_rng(12)
    ox = loss_rng.normal(0, 1, (6, 5)).astype(np.float32)
    real = loss_rng.uniform(0.05, 0.95, (6, 4)).astype(np.float32)
    hot = np.eye(4, dtype=np.float32)[loss_rng.integers(0, 4, 6)]
    several = (loss_rng.uniform(0, 1, (6, 4)) < 0.5).astype(np.float32)
    for lname, spec, act, yy in [
            ("loss_binary", opt("BinaryCrossentropy", label_smoothing=0.1), "hard_sigmoid", several),
            ("loss_binary_after_sigmoid", opt("BinaryCrossentropy"), "sigmoid", several),
            ("loss_binary_focal_logits", opt("BinaryFocalCrossentropy", from_logits=True, apply_class_balancing=True, alpha=0.3, gamma=1.5, label_smoothing=0.1), None, several),
            ("loss_categorical_focal", opt("CategoricalFocalCrossentropy", alpha=0.5, gamma=1.5), "softmax", hot),
            ("loss_categorical_focal_logits", opt("CategoricalFocalCrossentropy", from_logits=True, label_smoothing=0.1), None, hot),
            ("loss_categorical_hinge", opt("CategoricalHinge"), None, hot),
            ("loss_hinge_of_zeros_and_ones", opt("Hinge"), None, several),
            ("loss_squared_hinge", opt("SquaredHinge"), None, several * 2 - 1),
            ("loss_mape", opt("MeanAbsolutePercentageError"), None, real),
            ("loss_msle", opt("MeanSquaredLogarithmicError"), "softplus", real),
            ("loss_dice", opt("Dice"), "sigmoid", several),
            ("loss_tversky", opt("Tversky", alpha=0.3, beta=0.8), "sigmoid", several)]:
        case(lname, lambda: keras.Sequential([keras.Input((5,)), L.Dense(4, activation=act)]), ox, yy, spec)

    pixels = images(loss_rng, 3, 5, 6, 2)
    masks = (loss_rng.uniform(0, 1, (3, 5, 6, 3)) < 0.4).astype(np.float32)
    for lname, spec in [("loss_dice_of_pictures", opt("Dice", axis=[1, 2, 3])), ("loss_tversky_of_classes", opt("Tversky", axis=[0, 1, 2])),
                        ("loss_huber_of_pixels", opt("Huber", delta=0.3)), ("loss_kl_of_pixels", opt("KLDivergence"))]:
        case(lname, lambda: keras.Sequential([keras.Input((5, 6, 2)), L.Conv2D(3, 3, padding="same", activation="sigmoid")]), pixels, masks, spec)

    # What examples count: by themselves, and by their class, which is a number, one of many, or yes or no.
    uneven = loss_rng.uniform(0, 3, 6).astype(np.float32)
    uneven[2] = 0
    dense = lambda n, act: lambda: keras.Sequential([keras.Input((5,)), L.Dense(n, activation=act, kernel_regularizer="l2")])
    numbers = loss_rng.integers(0, 4, 6)
    yes = (loss_rng.uniform(0, 1, (6, 1)) < 0.5).astype(np.float32)
    case("weighted_sparse", dense(4, "softmax"), ox, numbers, SCCE, sample_weight=uneven)
    case("weighted_huber", dense(4, None), ox, real, opt("Huber", delta=0.3), sample_weight=uneven)
    case("weighted_dice", dense(4, "sigmoid"), ox, several, opt("Dice"), sample_weight=uneven)
    case("weighted_pixels", lambda: keras.Sequential([keras.Input((5, 6, 2)), L.Conv2D(3, 3, padding="same")]), pixels,
         loss_rng.integers(0, 3, (3, 5, 6)), SCCE_LOGITS, sample_weight=uneven[:3].reshape(3, 1, 1))
    case("class_weight_sparse", dense(4, "softmax"), ox, numbers, SCCE, class_weight={0: 0.5, 1: 2.0, 3: 3.0})
    case("class_weight_categorical", dense(4, None), ox, hot, opt("CategoricalCrossentropy", from_logits=True), class_weight={1: 2.0, 2: 0.25})
    case("class_weight_binary", dense(1, "sigmoid"), ox, yes, opt("BinaryCrossentropy"), class_weight={0: 0.5, 1: 4.0})

    # Cases above keep their numbers.
    own_rng = np.random.default_rng(14)

    def mixed_precision():
        """Dtype policies, a layer's own and a nested model's; what the layers compute in float32 is what they ask for and more exact."""
        i = keras.Input((8, 8, 2))
        x = L.Conv2D(4, 3, use_bias=False, dtype="mixed_bfloat16", name="conv")(i)
        x = L.ReLU(dtype="mixed_bfloat16", name="relu")(L.BatchNormalization(dtype="mixed_bfloat16", name="norm")(x))
        inner = keras.Sequential([keras.Input((6, 6, 4)), L.Conv2D(3, 2, activation="tanh", dtype="mixed_float16", name="deep"), L.Flatten(dtype="mixed_float16")], name="inner")
        return keras.Model(i, L.Dense(3, activation="softmax", dtype="float32", name="last")(inner(x)))
    case("mixed_precision", mixed_precision, images(own_rng, 4, 8, 8, 2), own_rng.integers(0, 3, 4), SCCE, FEW)

    def activity():
        """Penalties of what layers put out: of a convolution whose border a pooling discards, a frozen layer's, a nested one's, of
        a layer of its own and of the model's output. No shared layer's: Keras on JAX forgets those of all its calls but the last."""
        R = keras.regularizers
        i = keras.Input((8, 8, 2))
        x = L.Conv2D(3, 2, activation="tanh", activity_regularizer=R.L1L2(0.01, 0.02), name="conv")(i)
        x = L.Flatten(name="flatten")(L.MaxPooling2D(3, name="pool")(x))
        hidden = L.Dense(x.shape[-1], activation="tanh", activity_regularizer="l2", name="hidden")
        inner = keras.Sequential([keras.Input(x.shape[1:]), L.Dense(5, activity_regularizer=R.L1(0.05), name="deep")], name="inner")
        x = L.ActivityRegularization(l1=0.02, l2=0.03, name="activity")(inner(hidden(x)))
        frozen = L.Dense(4, activity_regularizer=R.L2(0.1), trainable=False, name="frozen")
        return keras.Model(i, L.Dense(3, activation="sigmoid", activity_regularizer=R.L2(0.3), name="last")(L.Dropout(0.0, name="drop")(frozen(x))))
    case("activity", activity, images(own_rng, 4, 8, 8, 2), (own_rng.uniform(0, 1, (4, 3)) < 0.5).astype(np.float32), opt("BinaryCrossentropy"), FEW,
         sample_weight=own_rng.uniform(0.5, 2, 4).astype(np.float32))

    def whole_numbers():
        """Inputs of whole numbers that layers compute with: cast by Rescaling, moved and chosen from before a convolution casts them."""
        a, b = keras.Input((6, 6, 2), dtype="uint8", name="a"), keras.Input((3,), dtype="int32", name="b")
        x = L.Conv2D(3, 2, activation="tanh", name="conv")(L.Rescaling(1 / 127.5, offset=-1, name="rescaling")(L.MaxPooling2D(2, 1, name="pool")(L.ZeroPadding2D(1, name="pad")(a))))
        y = L.Dense(4, activation="tanh", name="of_b")(b)
        return keras.Model([a, b], L.Dense(2, name="dense")(L.Concatenate(name="both")([L.Flatten(name="flatten")(x), y])))
    case("whole_numbers", whole_numbers, {"a": own_rng.integers(0, 256, (4, 6, 6, 2)).astype(np.uint8), "b": own_rng.integers(-3, 4, (4, 3)).astype(np.int32)},
         own_rng.normal(0, 1, (4, 2)).astype(np.float32), MSE, FEW)

    option_rng = np.random.default_rng(15)  # cases above keep their numbers

    def options_of_images():
        """Options of layers of images that no case before has, regularizers of what those are not of, and Softmax as a layer."""
        R = keras.regularizers
        i = keras.Input((11, 9, 4))
        x = L.Conv2D(6, 3, groups=2, activation="tanh", name="groups")(i)
        x = L.DepthwiseConv2D(2, dilation_rate=2, activation="tanh", depthwise_regularizer=R.L2(0.02), bias_regularizer=R.L1(0.03), name="dilated")(x)
        x = L.SeparableConv2D(5, 3, strides=2, padding="same", bias_regularizer=R.L2(0.02), name="strides")(x)
        x = L.Conv2DTranspose(4, 2, strides=2, activation="tanh", kernel_regularizer=R.L1L2(0.01, 0.02), bias_regularizer="l2", name="transpose")(x)
        x = L.LayerNormalization(beta_regularizer=R.L2(0.05), name="layer_normalization")(x)
        x = L.Flatten(name="flatten")(L.GlobalAveragePooling2D(keepdims=True, name="keep")(L.Softmax(name="of_channels")(x)))
        return keras.Model(i, L.Softmax(axis=1, name="softmax")(L.Dense(3, use_bias=False, name="no_bias")(x)))
    case("options_of_images", options_of_images, images(option_rng, 4, 11, 9, 4), np.eye(3, dtype=np.float32)[option_rng.integers(0, 3, 4)],
         opt("CategoricalCrossentropy", reduction="mean_with_sample_weight"), FEW)

    def options_of_sequences():
        """The same of layers of sequences."""
        R = keras.regularizers
        i = keras.Input((21, 3))
        x = L.DepthwiseConv1D(3, strides=2, depth_multiplier=2, use_bias=False, activation="tanh", depthwise_regularizer=R.L1(0.02), name="strides")(i)
        x = L.DepthwiseConv1D(2, dilation_rate=3, padding="same", activation="tanh", bias_regularizer="l2", name="dilated")(x)
        x = L.SpatialDropout1D(0.0, name="channels")(x)
        x = L.SeparableConv1D(5, 3, dilation_rate=2, padding="same", use_bias=False, depthwise_regularizer=R.L2(0.01), pointwise_regularizer=R.L1(0.01), name="separable")(x)
        x = L.Conv1D(4, 2, activation="tanh", kernel_regularizer=R.L2(0.02), bias_regularizer=R.L1L2(0.01, 0.02), name="conv")(x)
        return keras.Model(i, L.Dense(2, name="dense")(L.Flatten(name="flatten")(L.Softmax(name="softmax")(x))))
    case("options_of_sequences", options_of_sequences, option_rng.normal(0, 1, (4, 21, 3)).astype(np.float32), option_rng.normal(0, 1, (4, 2)).astype(np.float32),
         opt("MeanSquaredError", reduction="mean"), FEW, sample_weight=option_rng.uniform(0.2, 2, 4).astype(np.float32))

    def options_of_numbers():
        """The way back of Normalization, NumPy arrays in a config, a constant that is a list of one, and a noise shape with an extent."""
        i = keras.Input((4, 3))
        x = L.Normalization(mean=[0.5, -1.0, 2.0], variance=[2.0, 0.25, 0.0], invert=True, name="given")(i)
        x = L.Rescaling(np.array([0.5, 2.0, 1.5]), offset=np.array([0.1, 0.2, -0.3]), name="rescaling")(x)
        x = L.Normalization(mean=0.1, variance=4.0, invert=True, name="one")(L.Normalization(invert=True, name="learnt")(x))
        x = L.Dropout(0.0, noise_shape=(None, 1, 3), name="drop")(x)
        return keras.Model(i, L.Dense(1, activation="sigmoid", bias_initializer=keras.initializers.Constant(np.log([0.2])), name="dense")(L.Flatten(name="flatten")(x)))
    case("options_of_numbers", options_of_numbers, option_rng.normal(0, 0.5, (4, 4, 3)).astype(np.float32), (option_rng.uniform(0, 1, (4, 1)) < 0.5).astype(np.float32), BCE, FEW)

    tuning_rng = np.random.default_rng(15)

    case("prelu_axes", lambda: keras.Sequential([keras.Input((4, 5, 3)), L.PReLU(shared_axes=[1, 2], name="pixels"), L.PReLU(shared_axes=[-1], name="columns"),
         L.PReLU(shared_axes=[0, -2], name="rest"), L.Flatten(name="flatten"), L.Dense(2, name="top")]),
         images(tuning_rng, 6, 4, 5, 3), tuning_rng.normal(0, 1, (6, 2)).astype(np.float32), MSE, FEW)

    def operations():
        """keras.ops between layers: those that a layer computes too."""
        i, ops = keras.Input((5, 6)), keras.ops
        x = L.Dense(6, activation="tanh", name="a")(i)
        x = ops.subtract(ops.add(x, L.Dense(6, name="b")(i)), ops.multiply(i, L.Dense(1, name="c")(i)))
        x = ops.concatenate([ops.softmax(x), ops.maximum(x, i), ops.minimum(x, L.Dense(6, name="d")(x))], axis=1)
        return keras.Model(i, L.Dense(2, name="top")(L.Flatten(name="flatten")(x)))
    case("operations", operations, tuning_rng.normal(0, 1, (6, 5, 6)).astype(np.float32), tuning_rng.normal(0, 1, (6, 2)).astype(np.float32), MSE, FEW)

    def fine_tuned():
        """A frozen model of which some layers are trained again, one of a model in it too, and one BatchNormalization of two."""
        i = keras.Input((8, 8, 2))
        deep = keras.Sequential([keras.Input((6, 6, 4)), L.BatchNormalization(name="norm"), L.Conv2D(3, 2, activation="tanh", name="conv")], name="deep")
        x = L.Conv2D(4, 3, kernel_regularizer="l2", name="conv")(i)
        x = L.GlobalAveragePooling2D(name="pool")(deep(L.ReLU(name="relu")(L.BatchNormalization(name="norm")(x))))
        base = keras.Model(i, L.Dense(5, activation="tanh", kernel_regularizer="l2", name="last")(x), name="base")
        base.trainable = False
        for layer in (base.get_layer("last"), base.get_layer("norm"), deep.get_layer("conv")):
            layer.trainable = True
        return keras.Sequential([keras.Input((8, 8, 2)), base, L.Dense(3, name="top")])
    case("fine_tuned", fine_tuned, images(tuning_rng, 5, 8, 8, 2), tuning_rng.integers(0, 3, 5), SCCE_LOGITS, FEW)

    def flipped():
        """RandomFlip in each mode, averaged over what it turns around, so that the numbers are the same whatever was drawn."""
        i = keras.Input((7, 6, 2))
        x = L.Conv2D(3, 2, padding="same", activation="tanh", name="conv")(i)
        rows = L.AveragePooling2D((1, 6), name="rows")(L.RandomFlip("horizontal", name="sideways")(x))
        columns = L.AveragePooling2D((7, 1), name="columns")(L.RandomFlip("vertical", name="upside_down")(x))
        all = L.GlobalAveragePooling2D(name="all")(L.RandomFlip(name="both")(x))
        x = L.Concatenate(name="joined")([L.Flatten(name="flat_rows")(rows), L.Flatten(name="flat_columns")(columns), all])
        return keras.Model(i, L.Dense(2, name="dense")(x))
    case("flipped", flipped, images(tuning_rng, 5, 7, 6, 2), tuning_rng.normal(0, 1, (5, 2)).astype(np.float32), MSE, FEW)

if __name__ == "__main__":
    cases(sys.argv[1], sys.argv[2:])

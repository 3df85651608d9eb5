"""Writes the model.json of each example, as Keras 3.15.1 does.

    pip install keras==3.15.1 jax   # in a venv; any backend of Keras will do
    KERAS_BACKEND=jax python examples/make_models.py [example ...]
"""
import json
import pathlib
import sys

import keras
from keras import layers

EXAMPLES = pathlib.Path(__file__).resolve().parent


def fashion_mnist():
    return keras.Sequential([
        keras.Input((28, 28, 1)),
        layers.Rescaling(1 / 255.0),
        layers.Conv2D(32, 3, activation="relu", kernel_initializer="he_normal"), layers.MaxPooling2D(2),
        layers.Conv2D(64, 3, activation="relu", kernel_initializer="he_normal"), layers.MaxPooling2D(2),
        layers.Flatten(),
        layers.Dense(128, activation="relu", kernel_initializer="he_normal"),
        layers.Dense(10, kernel_initializer="he_normal"),
    ], name="fashion_mnist")


def fashion_mnist_mlp():
    return keras.Sequential([
        keras.Input((28, 28, 1)), layers.Rescaling(1 / 255.0), layers.Flatten(),
        *(layers.Dense(2048, activation="relu") for _ in range(3)),
        layers.Dense(10),
    ], name="fashion_mnist_mlp")


def fashion_mnist_resnet():
    """ResNet-14 in the form He et al. gave it for CIFAR-10: three stages of two blocks, 16, 32 and 64 channels."""
    def convolution(x, filters, kernel, strides=1):
        x = layers.Conv2D(filters, kernel, strides=strides, padding="same", use_bias=False, kernel_initializer="he_normal")(x)
        return layers.BatchNormalization(momentum=0.9)(x)

    image = keras.Input((28, 28, 1))
    x = layers.ReLU()(convolution(layers.Rescaling(1 / 255.0)(image), 16, 3))
    for filters, first_strides in ((16, 1), (32, 2), (64, 2)):
        for strides in (first_strides, 1):
            shortcut = x if x.shape[-1] == filters else convolution(x, filters, 1, strides)
            x = layers.ReLU()(convolution(x, filters, 3, strides))
            x = layers.ReLU()(layers.Add()([convolution(x, filters, 3), shortcut]))
    return keras.Model(image, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)), name="fashion_mnist_resnet")


def cifar10():
    """The network of TensorFlow's CIFAR-10 tutorial, without its local response normalization, which Keras does not have."""
    def weights(deviation):
        return keras.initializers.TruncatedNormal(stddev=deviation)

    tenth = keras.initializers.Constant(0.1)
    return keras.Sequential([
        keras.Input((32, 32, 3)),
        layers.Rescaling(1 / 127.5, offset=-1.0),
        layers.Conv2D(64, 5, padding="same", activation="relu", kernel_initializer=weights(0.05)),
        layers.MaxPooling2D(3, strides=2, padding="same"),
        layers.Conv2D(64, 5, padding="same", activation="relu", kernel_initializer=weights(0.05), bias_initializer=tenth),
        layers.MaxPooling2D(3, strides=2, padding="same"),
        layers.Flatten(),
        layers.Dense(384, activation="relu", kernel_initializer=weights(0.04), bias_initializer=tenth),
        layers.Dense(192, activation="relu", kernel_initializer=weights(0.04), bias_initializer=tenth),
        layers.Dense(10, kernel_initializer=weights(1 / 192)),
    ], name="cifar10")


def mobilenet_v2_of(scaled, alpha, classes):
    model = keras.applications.MobileNetV2(input_tensor=scaled, alpha=alpha, weights=None, classes=classes)
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.momentum = 0.9  # 0.999, as it comes, takes thousands of steps before the statistics mean something
    return model


def mobilenet_v2(size=224, alpha=1.0, classes=5):
    image = keras.Input((size, size, 3))
    return mobilenet_v2_of(layers.Rescaling(1 / 127.5, offset=-1.0)(image), alpha, classes)


def fashion_mnist_mobilenet():
    """The narrowest MobileNetV2 of its paper, for the smallest pictures that keras.applications makes it for: 32 x 32."""
    image = keras.Input((28, 28, 1))
    return mobilenet_v2_of(layers.ZeroPadding2D(2)(layers.Rescaling(1 / 127.5, offset=-1.0)(image)), alpha=0.35, classes=10)


def resnet50():
    image = keras.Input((224, 224, 3))
    means, deviations = [123.68, 116.779, 103.939], [58.393, 57.12, 57.375]  # of ImageNet's red, green and blue
    scaled = layers.Normalization(mean=means, variance=[d * d for d in deviations])(image)
    return keras.applications.ResNet50(input_tensor=scaled, weights=None, classes=1000, name="resnet50")


MODELS = {make.__name__: make for make in (fashion_mnist, fashion_mnist_mlp, fashion_mnist_mobilenet, fashion_mnist_resnet, cifar10, mobilenet_v2, resnet50)}


def model_text(name):
    keras.utils.clear_session()  # names of layers begin anew
    return json.dumps(json.loads(MODELS[name]().to_json()), indent=1) + "\n"


if __name__ == "__main__":
    for each in sys.argv[1:] or MODELS:
        (EXAMPLES / each).mkdir(exist_ok=True)
        (EXAMPLES / each / "model.json").write_text(model_text(each))
        print(EXAMPLES / each / "model.json")

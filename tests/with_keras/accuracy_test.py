"""A small turn of accuracy.py."""
import accuracy


def test_fashion_mnist_learns_as_much_as_in_keras(tmp_path):
    """A tenth of the images for three epochs. Gradients of four workers are three versions old, which costs much in so few steps:
    0.05 to 0.09 where that was measured."""
    means = accuracy.Comparison(tmp_path, epochs=3, examples=6000).means([1], print)
    assert means["Keras"] > 0.78
    assert abs(means["Shoal, 1 worker"] - means["Keras"]) < 0.03, means
    assert means["Shoal, 4 workers"] > means["Keras"] - 0.2, means

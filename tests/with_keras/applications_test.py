"""A training step of models as keras.applications writes them: every gradient is that of Keras."""
import shutil

import pytest

import applications
from real_cluster import shoal


@pytest.mark.parametrize("name", applications.CASES)
def test_every_gradient_is_that_of_keras(tmp_path, name):
    applications.write_case(tmp_path, name)
    done = shoal("model", "verify", tmp_path / name)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(tmp_path / name)  # of ResNet-50 nearly 200 MB

"""The image whose workers compute on GPUs is built, and runs without one. A lane of scripts/check-lanes; half an hour on two cores.

NVIDIA's libraries come from its Python packages, as deploy/docker/install-cuda says. Where PIP_CERT names certificates, they are pip's
in the image that builds, too.
"""
import os
import pathlib
import shutil

import pytest

from debian_root import SOURCE
from docker_engine import BASE, Engine, building, directory, reason  # noqa: F401 (a fixture)
from version import VERSION

pytestmark = pytest.mark.skipif(bool(reason()), reason=str(reason()))
IMAGE = f"shoal-cuda:{VERSION}"


def base_for_pip(engine, directory):
    certificates = os.environ.get("PIP_CERT")
    if not certificates:
        return BASE
    (directory / "base").mkdir()
    shutil.copy(certificates, directory / "base/certificates.crt")
    (directory / "base/Dockerfile").write_text(
        f"FROM {BASE}\nCOPY certificates.crt /etc/pip-certificates.crt\nENV PIP_CERT=/etc/pip-certificates.crt\n")
    engine.docker("build", "--tag", "base-for-pip", directory / "base")
    return "base-for-pip"


@pytest.fixture(scope="module")
def run_in_image(directory):
    """Runs a script by sh in the image, without a network, and gives its output."""
    with building(directory) as engine:
        engine.docker("build", "--network=host", "--file", SOURCE / "deploy/docker/Dockerfile", "--build-arg", "PRESET=cuda",
                      "--build-arg", f"BASE={base_for_pip(engine, directory)}", "--target", "shoal", "--tag", IMAGE, SOURCE)
    with Engine(directory, isolated=True) as engine:
        yield lambda script: engine.docker("run", "--rm", "--network=none", "--entrypoint", "sh", IMAGE, "-c", script)


def test_it_holds_what_workers_load_and_no_tools(run_in_image):
    assert run_in_image("for tool in gcc c++ nvcc cmake ninja python3 pip; do command -v $tool || true; done").strip() == ""
    libraries = {pathlib.Path(line.split()[0]).name for line in run_in_image("ldconfig -p").splitlines() if "=>" in line}
    for name in ("libcublasLt.so.13", "libcudnn.so.9", "libcudnn_engines_precompiled.so.9", "libnvrtc.so.13", "libnccl.so.2"):
        assert name in libraries
    # Whatever these need is there, but for the driver, which they load when there is a GPU.
    assert run_in_image("for library in /usr/local/lib/lib*.so.*; do ldd $library | grep 'not found' || true; done").strip() == ""


def test_without_a_gpu_it_computes_on_the_cpu_and_says_so(run_in_image):
    model = "/usr/share/shoal/examples/fashion_mnist/model.json"
    asked = run_in_image(f"shoal bench model {model} --device cuda:0 --seconds 0.1 2>&1; echo exit code $?")
    assert "NVIDIA driver" in asked and "exit code 78" in asked
    assert "examples/s" in run_in_image(f"shoal bench model {model} --seconds 0.1 --batch_size 2")
    assert run_in_image("shoal-worker --version").strip() == f"shoal-worker {VERSION}"

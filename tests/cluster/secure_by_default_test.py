"""A port beyond loopback has TLS, or its daemon is told to serve plain traffic."""
import re
import ssl
import urllib.request

import pytest

from real_cluster import Cluster, free_ports, shoal


@pytest.fixture
def cluster(tmp_path):
    """A cluster spec whose coordinator and ps have names that are no loopback addresses; nobody looks them up."""
    ports = free_ports(3)
    spec = {kind: [f"{kind}.invalid:{port}"] for kind, port in zip(("chief", "ps", "worker"), ports)}
    with Cluster(tmp_path / "logs", spec=spec) as cluster:
        yield cluster


@pytest.fixture
def certificates(tmp_path):
    """What makes a TLS directory for a role."""
    made = shoal("cert", "ca", tmp_path / "ca", "--job", "small")
    assert made.returncode == 0, made.stderr

    def issue(role):
        directory = tmp_path / role.replace("/", "-")
        issued = shoal("cert", "issue", tmp_path / "ca", role, directory)
        assert issued.returncode == 0, issued.stderr
        return directory
    return issue


def insecure_metric(ps, context=None):
    """shoal_rpc_insecure, as the ps shows it."""
    ps.wait_for_output("serving /metrics")
    port = re.search(r"serving /metrics.* address=\S*:(\d+)", ps.own_output())[1]
    scheme = "https" if context else "http"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with opener.open(f"{scheme}://127.0.0.1:{port}/metrics", timeout=60) as answer:
        return re.search(r"^shoal_rpc_insecure (\S+)$", answer.read().decode(), re.M)[1]


def test_an_address_beyond_loopback_is_refused(cluster):
    ps = cluster.start("ps", 0)
    assert ps.wait() == 78
    for words in (cluster.spec["ps"][0], "--tls_dir=DIR", "`shoal cert`", "docs/security.md", "--insecure"):
        assert words in ps.output(), ps.output()
    assert "listening" not in ps.output()


def test_insecure_is_a_warning_at_every_start_and_a_metric(cluster):
    for _ in range(2):
        ps = cluster.start("ps", 0, ["--http_port=0"], SHOAL_INSECURE="1")
        assert insecure_metric(ps) == "1"
        assert " W ps-0 insecure: " in ps.own_output()
        ps.kill()


def test_loopback_stays_plain_and_is_not_called_insecure(tmp_path):
    with Cluster(tmp_path) as cluster:
        ps = cluster.start("ps", 0, ["--http_port=0", "--insecure"])
        assert insecure_metric(ps) == "0"
        assert "insecure: " not in ps.output()


def test_tls_needs_no_warning(cluster, certificates):
    ps = cluster.start("ps", 0, ["--http_port=0", f"--tls_dir={certificates('ps/0')}"])
    viewer = certificates("viewer")
    context = ssl.create_default_context(cafile=viewer / "ca.crt")
    context.check_hostname = False  # the certificate names a task, not a host
    context.load_cert_chain(viewer / "tls.crt", viewer / "tls.key")
    assert insecure_metric(ps, context) == "0"
    assert "insecure: " not in ps.output()


def test_insecure_with_tls_is_a_contradiction(cluster, certificates):
    ps = cluster.start("ps", 0, ["--insecure", f"--tls_dir={certificates('ps/0')}"])
    assert ps.wait() == 78
    assert "leave one out" in ps.output()

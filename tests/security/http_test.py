"""Who sees which page of the HTTP port over TLS."""
import json
import ssl
import urllib.error
import urllib.request

import pytest

from certificates import Authority, identity
from real_cluster import shoal, wait_for, write_job
from secure_cluster import SecureCluster
from tls_client import call
from watched_cluster import ENDLESS, parse

# What /metrics answers.
METRICS = {"operator": 200, "viewer": 200,
           "coordinator": 403, "ps/0": 403, "worker/0": 403, "worker/1": 403, "worker": 403, "evaluator": 403}
DAEMONS = ["coordinator", "ps/0", "worker/0"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A job that trains; ps 0 takes a token, too."""
    directory = tmp_path_factory.mktemp("cluster")
    authority = Authority(directory / "tls")
    with SecureCluster(directory / "logs", authority) as cluster:
        cluster.authority = authority
        for role in set(METRICS) - set(cluster.tls):
            cluster.tls[role] = authority.issue(role)
        cluster.token = directory / "token"
        cluster.token.write_text("open sesame\n")
        cluster.token.chmod(0o600)
        job = write_job(directory / "job", **ENDLESS)
        daemons = {
            "ps/0": cluster.start("ps", 0, ["--http_port=0", f"--metrics_token_file={cluster.token}"]),
            "coordinator": cluster.start("chief", 0, [f"--job={job}", f"--run_dir={directory / 'run'}", "--http_port=0"]),
            "worker/0": cluster.start("worker", 0, ["--threads=1", "--http_port=0"])}
        cluster.urls = {}
        for role, process in daemons.items():
            process.wait_for_output("serving /metrics")
            port = process.output().split("serving /metrics")[1].split("address=")[1].split()[0].rpartition(":")[2]
            cluster.urls[role] = f"https://localhost:{port}"
        daemons["worker/0"].wait_for_output("working in timeline")
        yield cluster
        assert all(process.popen.poll() is None for process in daemons.values())


def get(cluster, daemon, path, certificate=None, **headers):
    """(status, text) of a page for who shows the certificate in this TLS directory. The server is checked as a browser does."""
    context = ssl.create_default_context(cafile=cluster.tls["viewer"] / "ca.crt")
    if certificate is not None:
        context.load_cert_chain(certificate / "tls.crt", certificate / "tls.key")
    try:
        request = urllib.request.Request(cluster.urls[daemon] + path, headers=headers)
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("daemon", DAEMONS)
def test_health_is_open(cluster, daemon):
    for path, text in (("/healthz", "ok\n"), ("/readyz", "ready\n")):
        assert get(cluster, daemon, path) == (200, text)
        assert get(cluster, daemon, path, cluster.tls["worker/1"]) == (200, text)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_metrics_are_for_operators_and_viewers(cluster, daemon):
    assert get(cluster, daemon, "/metrics")[0] == 401
    for role, wanted in METRICS.items():
        status, text = get(cluster, daemon, "/metrics", cluster.tls[role])
        assert status == wanted, (role, status, text[:300])
        if wanted == 200:
            assert ("process_threads", ()) in parse(text)
        else:
            assert identity(role) in text and "operator or viewer" in text, text


@pytest.mark.parametrize("daemon", DAEMONS)
def test_metrics_are_not_for_bad_certificates(cluster, daemon, tmp_path):
    forge = Authority(tmp_path / "other").forge
    stranger = forge("viewer", [identity("viewer")])
    assert get(cluster, daemon, "/metrics", stranger)[0] == 403
    name = f"{daemon.replace('/', '-')}-"
    for each in (cluster.authority.forge(name + "expired", [identity("viewer")], begin=-3, end=-1),
                 cluster.authority.forge(name + "job", [identity("viewer", job="large")]),
                 cluster.authority.forge(name + "domain", [identity("viewer", trust_domain="lab")]),
                 cluster.authority.forge(name + "two", [identity("viewer"), identity("operator")]),
                 cluster.authority.forge(name + "none", [])):
        status, text = get(cluster, daemon, "/metrics", each)
        assert status == 403, (each.name, status, text[:300])


def test_a_revoked_viewer_sees_no_metrics(cluster):
    lost = cluster.authority.issue("viewer", "lost")
    serial = json.loads(shoal("cert", "show", "--json", lost / "tls.crt").stdout)[0]["serial"]
    assert get(cluster, "coordinator", "/metrics", lost)[0] == 200
    (cluster.tls["coordinator"] / "revoked").write_text(serial + "\n")
    wait_for(lambda: get(cluster, "coordinator", "/metrics", lost)[0] == 403, "the viewer is revoked")
    assert get(cluster, "coordinator", "/metrics", cluster.tls["viewer"])[0] == 200


def test_a_token_opens_the_metrics_where_there_is_one(cluster):
    def with_token(daemon, token, certificate=None):
        return get(cluster, daemon, "/metrics", certificate, Authorization=f"Bearer {token}")
    assert with_token("ps/0", "open sesame")[0] == 200
    assert with_token("ps/0", "open sesame", cluster.tls["worker/0"])[0] == 200
    assert with_token("ps/0", "sesame")[0] == 401
    assert with_token("ps/0", "")[0] == 401
    assert with_token("ps/0", "sesame", cluster.tls["worker/0"])[0] == 403
    assert with_token("ps/0", "sesame", cluster.tls["viewer"])[0] == 200
    assert with_token("coordinator", "open sesame")[0] == 401


def test_the_port_is_not_plain(cluster):
    for url in cluster.urls.values():
        with pytest.raises((OSError, ValueError)):
            urllib.request.urlopen(url.replace("https", "http") + "/healthz", timeout=60)


@pytest.mark.parametrize("daemon", ["coordinator", "ps/0"])
def test_refused_streams_are_counted(cluster, daemon):
    address = {"coordinator": cluster.chief, "ps/0": cluster.spec["ps"][0]}[daemon]

    def refused():
        return parse(get(cluster, daemon, "/metrics", cluster.tls["viewer"])[1])["shoal_rpc_unauthorized_streams_total", ()]
    before = refused()
    call(address, "shoal.proto.Cluster/Drain", cluster.tls["viewer"])
    call(address, "shoal.proto.ParameterServer/Control", cluster.tls["worker/0"])
    wait_for(lambda: refused() == before + 2, "two more refused streams")  # figures may be those of some moments ago

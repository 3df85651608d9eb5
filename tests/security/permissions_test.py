"""Every method of every daemon, called with the certificate of every role."""
import re
import socket
import ssl

import grpc
import pytest

from certificates import Authority, identity
from real_cluster import SOURCE, write_job
from secure_cluster import SecureCluster
from tls_client import call

# yes: the daemon answers the call. no: PERMISSION_DENIED. "-": UNIMPLEMENTED, as the daemon does not serve the method.
TABLE = """
daemon       method                                coordinator  ps/0  ps/1  worker/0  worker  evaluator  operator  viewer
coordinator  shoal.proto.Coordinator/Work          no           no    no    yes       yes     no         no        no
coordinator  shoal.proto.Evaluation/Evaluate       no           no    no    no        no      yes        no        no
coordinator  shoal.proto.Cluster/Status            no           no    no    no        no      no         yes       yes
coordinator  shoal.proto.Cluster/Drain             no           no    no    no        no      no         yes       no
coordinator  shoal.proto.Cluster/Checkpoint        no           no    no    no        no      no         yes       no
coordinator  shoal.proto.ParameterServer/Exchange  -            -     -     -         -       -          -         -
coordinator  shoal.proto.ParameterServer/Control   -            -     -     -         -       -          -         -
coordinator  grpc.health.v1.Health/Check           yes          yes   yes   yes       yes     yes        yes       yes
ps/0         shoal.proto.Coordinator/Work          -            -     -     -         -       -          -         -
ps/0         shoal.proto.Evaluation/Evaluate       -            -     -     -         -       -          -         -
ps/0         shoal.proto.Cluster/Status            -            -     -     -         -       -          -         -
ps/0         shoal.proto.Cluster/Drain             -            -     -     -         -       -          -         -
ps/0         shoal.proto.Cluster/Checkpoint        -            -     -     -         -       -          -         -
ps/0         shoal.proto.ParameterServer/Exchange  no           no    no    yes       yes     no         no        no
ps/0         shoal.proto.ParameterServer/Control   yes          no    no    no        no      no         no        no
ps/0         grpc.health.v1.Health/Check           yes          yes   yes   yes       yes     yes        yes       yes
"""
(_, _, *ROLES), *ROWS = [line.split() for line in TABLE.strip().splitlines()]
REFUSALS = {grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNAUTHENTICATED,
            grpc.StatusCode.UNAVAILABLE}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A coordinator and a ps that wait for workers, and the certificates of all roles."""
    directory = tmp_path_factory.mktemp("cluster")
    authority = Authority(directory / "tls")
    with SecureCluster(directory / "logs", authority, workers=1) as cluster:
        for role in set(ROLES) - set(cluster.tls):
            cluster.tls[role] = authority.issue(role)
        cluster.start("ps")
        cluster.start_chief(write_job(directory / "job"), directory / "run").wait_for_output("a timeline begins")
        cluster.addresses = {"coordinator": cluster.chief, "ps/0": cluster.spec["ps"][0]}
        yield cluster
        for process in cluster.processes:
            assert process.popen.poll() is None, process.output()[-3000:]


def test_the_table_has_every_method():
    methods = set()
    for path in (SOURCE / "proto").glob("*.proto"):
        for service, body in re.findall(r"^service (\w+) \{\n(.*?)^\}", path.read_text(), re.M | re.S):
            methods |= {f"shoal.proto.{service}/{name}" for name in re.findall(r"^ *rpc (\w+)\(", body, re.M)}
    assert len(methods) >= 7
    for daemon in ("coordinator", "ps/0"):
        assert {row[1] for row in ROWS if row[0] == daemon} == methods | {"grpc.health.v1.Health/Check"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_a_daemon_answers_whom_the_table_lets_in(cluster, row):
    daemon, method, *cells = row
    allowed = {role.split("/")[0] for role, cell in zip(ROLES, cells, strict=True) if cell == "yes"}
    for role, cell in zip(ROLES, cells, strict=True):
        code, words = call(cluster.addresses[daemon], method, cluster.tls[role])
        if cell == "-":
            assert code == grpc.StatusCode.UNIMPLEMENTED, (role, code, words)
            assert identity(daemon) in words and method in words, (role, words)
        elif cell == "no":
            assert code == grpc.StatusCode.PERMISSION_DENIED, (role, code, words)
            assert identity(role) in words and method in words, (role, words)
            needed = words.rpartition(";")[2].split()
            assert {name for name in needed if name in {each.split("/")[0] for each in ROLES}} == allowed, (role, words)
        elif method.endswith("Cluster/Checkpoint"):
            # Past the gate: there is no worker that could do a step.
            assert code == grpc.StatusCode.UNAVAILABLE and "waiting for a worker" in words, (role, code, words)
        else:
            assert code not in REFUSALS, (role, code, words)


@pytest.mark.parametrize("daemon", ["coordinator", "ps/0"])
def test_a_client_without_a_certificate_gets_no_answer(cluster, daemon):
    address, trusted = cluster.addresses[daemon], cluster.tls["operator"]
    anonymous = grpc.ssl_channel_credentials((trusted / "ca.crt").read_bytes())
    for method in ("shoal.proto.Cluster/Status", "grpc.health.v1.Health/Check"):
        for credentials in (anonymous, None):
            code, words = call(address, method, credentials=credentials)
            assert code == grpc.StatusCode.UNAVAILABLE, words
        assert call(address, method, trusted)[0] != grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("daemon", ["coordinator", "ps/0"])
def test_tls_1_2_is_refused(cluster, daemon):
    host, port = cluster.addresses[daemon].split(":")
    directory = cluster.tls["operator"]

    def version(newest):
        context = ssl.create_default_context(cafile=directory / "ca.crt")
        context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
        context.maximum_version = newest
        context.set_alpn_protocols(["h2"])
        with socket.create_connection((host, int(port))) as plain, context.wrap_socket(plain, server_hostname="localhost") as secure:
            return secure.version()
    assert version(ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        version(ssl.TLSVersion.TLSv1_2)

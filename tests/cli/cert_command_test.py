"""`shoal cert`, and what the `openssl` program says about the files that it writes."""
import datetime
import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SHOAL_BIN", SOURCE / "build/release/bin"))
ROLES = ["coordinator", "ps/0", "worker/3", "worker", "evaluator", "operator", "viewer"]


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def shoal(*arguments):
    return run(BIN / "shoal", "cert", *arguments)


def done(result):
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def openssl(*arguments):
    return run("openssl", *arguments)


def mode(path):
    return path.stat().st_mode & 0o777


@pytest.fixture
def authority(tmp_path):
    done(shoal("ca", tmp_path / "ca", "--job", "mnist", "--trust_domain", "lab.example"))
    return tmp_path / "ca"


@pytest.fixture
def tls(authority, tmp_path):
    done(shoal("issue", authority, "ps/0", tmp_path / "tls"))
    return tmp_path / "tls"


def test_the_files_are_private(authority, tls):
    assert {path.name: mode(path) for path in authority.iterdir()} == {"ca.crt": 0o600, "ca.key": 0o600}
    assert {path.name: mode(path) for path in tls.iterdir()} == {"ca.crt": 0o600, "tls.crt": 0o600, "tls.key": 0o600}
    assert (mode(authority), mode(tls)) == (0o700, 0o700)
    assert (tls / "ca.crt").read_bytes() == (authority / "ca.crt").read_bytes()


@pytest.mark.parametrize("role", ROLES)
def test_openssl_accepts_what_is_issued(authority, tmp_path, role):
    output = tmp_path / "tls"
    done(shoal("issue", authority, role, output, "--address", "10.0.0.1", "--address", "ps0.lan"))
    for purpose in "sslserver", "sslclient":
        done(openssl("verify", "-x509_strict", "-CAfile", authority / "ca.crt", "-purpose", purpose, output / "tls.crt"))
    done(openssl("verify", "-CAfile", authority / "ca.crt", "-verify_ip", "10.0.0.1", output / "tls.crt"))
    done(openssl("verify", "-CAfile", authority / "ca.crt", "-verify_hostname", "ps0.lan", output / "tls.crt"))
    text = done(openssl("x509", "-in", output / "tls.crt", "-noout", "-text"))
    assert f"URI:spiffe://lab.example/job/mnist/{role}, IP Address:10.0.0.1, DNS:ps0.lan" in text
    assert "ecdsa-with-SHA256" in text and "NIST CURVE: P-256" in text and "Version: 3" in text
    keys = done(openssl("pkey", "-in", output / "tls.key", "-pubout")), done(openssl("x509", "-in", output / "tls.crt", "-noout", "-pubkey"))
    assert keys[0] == keys[1]
    assert f"spiffe://lab.example/job/mnist/{role}" in done(shoal("check", output))


def test_the_ca_signs_itself_and_no_other_ca(authority):
    done(openssl("verify", "-x509_strict", "-CAfile", authority / "ca.crt", authority / "ca.crt"))
    text = done(openssl("x509", "-in", authority / "ca.crt", "-noout", "-text"))
    assert "CA:TRUE, pathlen:0" in text and "URI:spiffe://lab.example\n" in text and "CN = mnist" in text


def test_another_ca_is_not_taken(tls, tmp_path):
    done(shoal("ca", tmp_path / "other", "--job", "mnist", "--trust_domain", "lab.example"))
    shutil.copy(tmp_path / "other/ca.crt", tls / "ca.crt")
    assert openssl("verify", "-CAfile", tls / "ca.crt", tls / "tls.crt").returncode != 0
    checked = shoal("check", tls)
    assert checked.returncode == 78 and str(tls / "ca.crt") in checked.stderr


def test_days_are_those_that_were_asked_for(authority, tmp_path):
    done(shoal("issue", authority, "viewer", tmp_path / "tls", "--days", "30"))
    shown, = json.loads(done(shoal("show", "--json", tmp_path / "tls/tls.crt")))
    begin, end = (datetime.datetime.fromisoformat(shown[name]) for name in ("not_before", "not_after"))
    assert datetime.timedelta(days=30) < end - begin < datetime.timedelta(days=30, hours=1)
    longer = shoal("issue", authority, "viewer", tmp_path / "longer", "--days", "36500")
    assert longer.returncode == 78 and not (tmp_path / "longer").exists()


def test_a_file_is_shown(authority, tls):
    shown, = json.loads(done(shoal("show", tls / "tls.crt", "--json")))
    assert shown["identity"] == {"trust_domain": "lab.example", "job": "mnist", "role": "ps", "index": 0}
    assert shown["uris"] == ["spiffe://lab.example/job/mnist/ps/0"]
    assert (shown["is_ca"], shown["problem"], shown["key"]) == (False, None, "EC 256 bits")
    serial = done(openssl("x509", "-in", tls / "tls.crt", "-noout", "-serial")).strip().removeprefix("serial=")
    assert shown["serial"] == serial.lower().lstrip("0")
    text = done(shoal("show", tls / "tls.crt"))
    for value in (shown["serial"], shown["sha256"], shown["uris"][0]):
        assert value in text
    assert "problem" not in text
    ca, = json.loads(done(shoal("show", authority / "ca.crt", "--json")))
    assert (ca["is_ca"], ca["identity"], ca["problem"]) == (True, None, None)


def test_no_key_is_shown(tls):
    result = shoal("show", tls / "tls.key")
    assert result.returncode == 65 and str(tls / "tls.key") in result.stderr
    assert "PRIVATE" not in result.stdout + result.stderr


def test_nothing_is_overwritten(authority, tls):
    before = (authority / "ca.key").read_bytes(), (tls / "tls.key").read_bytes()
    assert shoal("ca", authority, "--job", "mnist").returncode == 78
    again = shoal("issue", authority, "ps/0", tls)
    assert again.returncode == 78 and str(tls / "tls.key") in again.stderr
    assert before == ((authority / "ca.key").read_bytes(), (tls / "tls.key").read_bytes())
    done(shoal("check", tls))


@pytest.mark.parametrize("arguments, words", [
    (["ca", "DIR"], ["--job"]),
    (["ca", "DIR", "--job", "a b"], ["--job", "a b"]),
    (["ca", "DIR", "--job", "a", "--trust_domain", "Lab"], ["--trust_domain", "Lab"]),
    (["ca", "DIR", "--job", "a", "--days", "0"], ["--days"]),
    (["issue", "DIR", "ps", "OUT"], ["ps/N"]),
    (["issue", "DIR", "chief", "OUT"], ["chief", "coordinator"]),
    (["issue", "DIR", "worker/-1", "OUT"], ["worker/-1"]),
    (["issue", "DIR", "ps/0", "OUT", "--address", "ps0:2222"], ["ps0:2222"]),
    (["issue", "DIR", "ps/0"], ["OUT_DIR"]),
    ([], []),
])
def test_mistakes_on_the_command_line(tmp_path, arguments, words):
    result = shoal(*(str(tmp_path / word) if word in ("DIR", "OUT") else word for word in arguments))
    assert result.returncode == 64, result.stdout + result.stderr
    for word in words:
        assert word in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_named(tmp_path):
    for arguments in (["issue", tmp_path / "ca", "ps/0", tmp_path / "out"], ["show", tmp_path / "tls.crt"], ["check", tmp_path / "tls"]):
        result = shoal(*arguments)
        assert result.returncode == 78 and str(arguments[1]) in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_bad_data(tls):
    certificate = tls / "tls.crt"
    text = certificate.read_text()
    certificate.write_text(text[:len(text) // 2])
    result = shoal("show", certificate)
    assert result.returncode == 65 and str(certificate) in result.stderr
    result = shoal("check", tls)
    assert result.returncode == 78 and str(certificate) in result.stderr


def test_check_says_what_a_daemon_would(authority, tls, tmp_path):
    (tls / "tls.key").chmod(0o644)
    readable = shoal("check", tls)
    assert readable.returncode == 78 and f"chmod 600 {tls}/tls.key" in readable.stderr
    (tls / "tls.key").chmod(0o600)

    (tls / "revoked").write_text("# left\nbob\n")
    wrong = shoal("check", tls)
    assert wrong.returncode == 78 and f"{tls}/revoked:2" in wrong.stderr
    (tls / "revoked").write_text("spiffe://lab.example/job/mnist/worker/7\n4f2a\n")
    assert "2 entries" in done(shoal("check", tls))
    shown, = json.loads(done(shoal("show", tls / "tls.crt", "--json")))
    (tls / "revoked").write_text(shown["serial"] + "\n")
    revoked = shoal("check", tls)
    assert revoked.returncode == 78 and shown["serial"] in revoked.stderr
    (tls / "revoked").unlink()

    done(shoal("issue", authority, "ps/0", tmp_path / "other"))
    shutil.copy(tmp_path / "other/tls.key", tls / "tls.key")
    mismatch = shoal("check", tls)
    assert mismatch.returncode == 78 and str(tls / "tls.key") in mismatch.stderr


def test_a_server_without_tls_is_one_line_of_ours_a_cause(authority, tmp_path):
    """Not a raw line of gRPC's log, as `E1128 19:06:59.970 20221 ssl_transport_security.cc:1501] ...`."""
    done(shoal("issue", authority, "operator", tmp_path / "operator"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        def answer():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:  # the test has ended
                    return
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        asked = run(BIN / "shoal", "status", "--chief", f"127.0.0.1:{server.getsockname()[1]}",
                    "--tls_dir", tmp_path / "operator")
        server.shutdown(socket.SHUT_RDWR)
    assert asked.returncode == 138, asked.stderr
    assert all(line.startswith("shoal: ") for line in asked.stderr.splitlines()), asked.stderr


def test_the_commands_of_the_document(tmp_path):
    page = (SOURCE / "docs/security.md").read_text()
    block = page.split("<!-- cert_command_test.py runs this block. -->\n```\n")[1].split("```")[0]
    renewal = page.split("To renew a certificate")[1].split("```\n")[1]
    move = "mv tls/ps-0 tls/ps-0.2026 && ln -s ps-0.2026 tls/ps-0\n"
    result = subprocess.run(["bash", "-euc", block + move + renewal + "shoal cert check tls/ps-0\n"], cwd=tmp_path, capture_output=True,
                            text=True, check=False, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})
    assert result.returncode == 0, result.stdout + result.stderr
    assert os.readlink(tmp_path / "tls/ps-0") == "ps-0.2027"


def test_certificates_of_openssl_are_taken(tmp_path):
    """As another PKI issues them: RSA, an intermediate CA, no subject."""
    tls = tmp_path / "tls"
    tls.mkdir(0o700)
    ca = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"]
    # An empty configuration: the distribution's adds extensions of its own.
    config = tmp_path / "openssl.cnf"
    config.write_text("[req]\ndistinguished_name=dn\n[dn]\n")
    new = ["req", "-config", config, "-newkey", "rsa:2048", "-nodes", "-batch"]
    done(openssl(*new, "-x509", "-subj", "/CN=root", "-keyout", tmp_path / "root.key", "-out", tls / "ca.crt", *ca))
    done(openssl(*new, "-x509", "-subj", "/CN=between", "-keyout", tmp_path / "between.key", "-out", tmp_path / "between.crt",
                 "-CA", tls / "ca.crt", "-CAkey", tmp_path / "root.key", *ca))
    done(openssl(*new, "-x509", "-subj", "/", "-keyout", tls / "tls.key", "-out", tmp_path / "leaf.crt",
                 "-CA", tmp_path / "between.crt", "-CAkey", tmp_path / "between.key",
                 "-addext", "keyUsage=critical,digitalSignature,keyEncipherment", "-addext", "extendedKeyUsage=serverAuth,clientAuth",
                 "-addext", "subjectAltName=critical,URI:spiffe://lab/job/mnist/worker"))
    (tls / "tls.key").chmod(0o600)
    (tls / "tls.crt").write_text((tmp_path / "leaf.crt").read_text())
    assert shoal("check", tls).returncode == 78
    (tls / "tls.crt").write_text((tmp_path / "leaf.crt").read_text() + (tmp_path / "between.crt").read_text())
    assert "spiffe://lab/job/mnist/worker" in done(shoal("check", tls))
    assert len(json.loads(done(shoal("show", tls / "tls.crt", "--json")))) == 2

"""Certificates of `shoal cert`, and such as break a rule, of the `openssl` program."""
import datetime
import subprocess

from real_cluster import shoal

JOB, TRUST_DOMAIN = "small", "shoal"

# What `openssl ca` signs with; the identity is put in by hand.
CONFIGURATION = """
[ca]
default_ca = authority
[authority]
new_certs_dir = {directory}
database = {directory}/index.txt
certificate = {ca}/ca.crt
private_key = {ca}/ca.key
rand_serial = yes
default_md = sha256
policy = policy
unique_subject = no
[policy]
commonName = optional
[req]
distinguished_name = name
[name]
[leaf]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
subjectAltName = {names}
"""


def identity(role, job=JOB, trust_domain=TRUST_DOMAIN):
    return f"spiffe://{trust_domain}/job/{job}/{role}"


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, stdin=subprocess.DEVNULL)


def days_from_now(days):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")


class Authority:
    """A CA in `directory`, and the TLS directories that it issues beside it."""

    def __init__(self, directory, name="ca"):
        self.directory, self.ca = directory, directory / name
        directory.mkdir(parents=True, exist_ok=True)
        made = shoal("cert", "ca", self.ca, "--job", JOB, "--trust_domain", TRUST_DOMAIN)
        assert made.returncode == 0, made.stderr

    def issue(self, role, name=None):
        """A TLS directory for this role."""
        output = self.directory / (name or role.replace("/", "-"))
        made = shoal("cert", "issue", self.ca, role, output, "--address", "localhost", "--address", "127.0.0.1")
        assert made.returncode == 0, made.stderr
        return output

    def forge(self, name, uris, begin=-1, end=1):
        """A TLS directory with these URIs, valid between these days from now, whatever the rules say."""
        output, work = self.directory / name, self.directory / f"{name}.work"
        for each in (output, work):
            each.mkdir(0o700)
        (work / "index.txt").touch()
        configuration = work / "openssl.cnf"
        names = ",".join(["DNS:localhost", *(f"URI:{uri}" for uri in uris)])
        configuration.write_text(CONFIGURATION.format(directory=work, ca=self.ca, names=names))
        key = output / "tls.key"
        openssl("req", "-config", configuration, "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-batch",
                "-subj", "/CN=forged", "-keyout", key, "-out", work / "request")
        openssl("ca", "-config", configuration, "-batch", "-notext", "-in", work / "request", "-extensions", "leaf",
                "-startdate", days_from_now(begin), "-enddate", days_from_now(end), "-out", output / "tls.crt")
        key.chmod(0o600)
        (output / "ca.crt").write_bytes((self.ca / "ca.crt").read_bytes())
        return output

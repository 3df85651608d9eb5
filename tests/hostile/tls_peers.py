"""Clients that misuse TLS: handshakes that stop in the middle, certificates of any size, keys that change without end."""
import ctypes
import select
import socket
import ssl
import subprocess

from foreign_client import Connections
from real_cluster import PATIENCE_SECONDS, allow_open_files
from tls_mode import client_context, tls_dir


def connected(address, source="127.0.0.1"):
    """A TCP connection from this address of the loopback network."""
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS, source_address=(source, 0))


def first_flight():
    """The bytes of a ClientHello."""
    sent = ssl.MemoryBIO()
    client = client_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()


class HalfHandshakes(Connections):
    """Connections from many addresses, each of which has sent `content` and then waits."""

    def __init__(self, address, count, content):
        super().__init__()
        allow_open_files(4096)
        for i in range(count):
            each = connected(address, f"127.0.{1 + i // 250}.{1 + i % 250}")
            each.sendall(content)
            self._sockets.append(each)

    def open(self):
        """How many the server has not closed."""
        for each in list(self._sockets):
            if closed(each):
                self._sockets.remove(each)
                each.close()
        return len(self._sockets)


def closed(connection):
    """Whether the server has closed a plain connection. Reads what it has sent before."""
    try:
        while select.select([connection], [], [], 0)[0]:
            if not connection.recv(1 << 16):
                return True
    except OSError:
        return True
    return False


def shows(address, directory):
    """The error that ends a connection with the certificate in this TLS directory, or None if the server speaks HTTP/2 to it."""
    try:
        with client_context(directory).wrap_socket(connected(address), server_hostname="localhost") as client:
            return None if client.recv(9) else ConnectionResetError()
    except OSError as error:
        return error


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, stdin=subprocess.DEVNULL)


class OwnAuthority:
    """A stranger's certificates, in TLS directories. One key serves for all."""

    def __init__(self, directory):
        self.directory, self._path = directory, []
        directory.mkdir()
        self.key = directory / "key.pem"
        openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", self.key)

    def _issue(self, name, issuer, *options):
        output = self.directory / f"{name}.crt"
        signed_by = () if issuer is None else ("-CA", issuer, "-CAkey", self.key)
        openssl("req", "-x509", "-new", "-key", self.key, "-subj", f"/CN={name}", "-days", 1, *signed_by, *options, "-out", output)
        return output

    def _tls_dir(self, name, chain):
        output = self.directory / name
        output.mkdir()
        (output / "tls.crt").write_text("".join(path.read_text() for path in chain))
        (output / "tls.key").write_bytes(self.key.read_bytes())
        return output

    def large(self, size_bytes):
        """A certificate with a comment of this size."""
        name = f"large-{size_bytes}"
        configuration = self.directory / f"{name}.cnf"
        configuration.write_text("[req]\ndistinguished_name=name\nx509_extensions=large\n[name]\n[large]\nnsComment=" + "x" * size_bytes)
        return self._tls_dir(name, [self._issue(f"{name}-leaf", None, "-config", configuration)])

    def chain(self, intermediates):
        """A certificate below this many others, which it shares with longer chains."""
        while len(self._path) <= intermediates:
            issuer = self._path[-1] if self._path else None
            self._path.append(self._issue(f"ca-{len(self._path)}", issuer))
        above = self._path[:intermediates + 1]
        leaf = self._issue(f"leaf-{intermediates}", above[-1], "-addext", "basicConstraints=critical,CA:FALSE")
        return self._tls_dir(f"chain-{intermediates}", [leaf, *above[::-1]])


class ChangingKeys:
    """A client with the certificate of `role` that asks for new keys again and again. Calls OpenSSL itself: Python's ssl has no such
    function."""

    REQUESTED = 1  # asks the other end to change its key, too

    def __init__(self, address, role):
        self._library = library = ctypes.CDLL("libssl.so.3")
        for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
            getattr(library, name).restype = ctypes.c_void_p
        self._socket = connected(address)
        self._socket.settimeout(None)  # OpenSSL reads it, and does not wait where it cannot
        self._context = ctypes.c_void_p(library.SSL_CTX_new(ctypes.c_void_p(library.TLS_client_method())))
        directory = tls_dir(role)
        assert library.SSL_CTX_use_certificate_chain_file(self._context, bytes(directory / "tls.crt")) == 1
        assert library.SSL_CTX_use_PrivateKey_file(self._context, bytes(directory / "tls.key"), 1) == 1
        protocols = b"\x02h2"
        assert library.SSL_CTX_set_alpn_protos(self._context, protocols, len(protocols)) == 0
        self._connection = ctypes.c_void_p(library.SSL_new(self._context))
        assert library.SSL_set_fd(self._connection, self._socket.fileno()) == 1
        assert library.SSL_connect(self._connection) == 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._library.SSL_free(self._connection)
        self._library.SSL_CTX_free(self._context)
        self._socket.close()

    def change(self):
        """Returns whether the connection can still be written to."""
        return (self._library.SSL_key_update(self._connection, self.REQUESTED) == 1 and
                self._library.SSL_do_handshake(self._connection) == 1)

"""A client that keeps to no custom: it reads when it likes, half-closes, cancels, sends what is no message, or frames that no
gRPC library would send."""
import queue
import selectors
import socket
import ssl
import struct
import threading

import grpc

from messages import METHODS
from real_cluster import PATIENCE_SECONDS, allow_open_files
from tls_mode import open_channel, role_for, wrap

CHANNEL_OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
                   ("grpc.use_local_subchannel_pool", 1)]  # each channel has a connection of its own


def channel(address, role="operator"):
    return open_channel(address, role, CHANNEL_OPTIONS)


class ForeignStream:
    """A two-way stream, driven by hand: gRPC takes a message from the connection only when one is read here, so what is not read
    stays with the server once the window of the stream is full."""

    def __init__(self, address, method, seconds=PATIENCE_SECONDS):
        request_type, self.reply_type = METHODS[method]
        self.channel = channel(address, role_for(method))
        self._requests = queue.SimpleQueue()
        call = self.channel.stream_stream(f"/shoal.proto.{method}", request_type.SerializeToString, self.reply_type.FromString)
        self.call = call(iter(self._requests.get, None), timeout=seconds, wait_for_ready=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, message):
        self._requests.put(message)

    def half_close(self):
        self._requests.put(None)

    def cancel(self):
        self.call.cancel()
        self._requests.put(None)

    def read(self, kind=None):
        """The next message, or the next one of this kind; the status that ended the stream is raised."""
        for message in self.call:
            if kind is None or message.WhichOneof("kind") == kind:
                return message if kind is None else getattr(message, kind)
        raise AssertionError(f"the stream has ended without {kind or 'a message'}")

    def ended(self):
        """The status code that ended the stream; what came before it is passed over."""
        try:
            for _ in self.call:
                pass
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    def close(self):
        self.cancel()
        self.channel.close()


class RawHttp2:
    """A connection on which HTTP/2 frames are written one by one."""

    HEADERS, SETTINGS, PING, CONTINUATION = 1, 4, 6, 9
    END_HEADERS, ACK = 4, 1

    def __init__(self, address, role="worker"):
        host, port = address.split(":")
        self.socket = wrap(socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS), role)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self.frame(self.SETTINGS, b"", stream=0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def frame(self, kind, payload, flags=0, stream=1):
        self.socket.sendall(struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload)

    def head(self, method, flags, stream=1):
        """The head of a request to `method`."""
        def literal(name, value):  # HPACK: not indexed, no Huffman code, lengths below 127
            return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
        self.frame(self.HEADERS, literal(b":method", b"POST") + literal(b":scheme", b"http") +
                   literal(b":path", method.encode()) + literal(b":authority", b"x") + literal(b"te", b"trailers") +
                   literal(b"content-type", b"application/grpc"), flags, stream)

    def headers_without_end(self, method):
        """The head of a request to `method`, to be continued."""
        self.head(method, 0)


class SilentStreams:
    """Many connections of many streams that say nothing, and are kept alive: whoever is pinged answers."""

    def __init__(self, address, method, connections, streams, role=None):
        allow_open_files(4096)
        self._ending, self._selector = threading.Event(), selectors.DefaultSelector()
        self._clients = []
        for _ in range(connections):
            client = RawHttp2(address, role or role_for(method))
            for i in range(streams):
                client.head(f"/shoal.proto.{method}", RawHttp2.END_HEADERS, 2 * i + 1)
            client.socket.setblocking(False)
            self._selector.register(client.socket, selectors.EVENT_READ, (client, bytearray()))
            self._clients.append(client)
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ending.set()
        self._thread.join()
        for client in self._clients:
            client.socket.close()

    def _answer(self):
        while not self._ending.is_set():
            for key, _ in self._selector.select(0.1):
                client, received = key.data
                try:
                    while data := client.socket.recv(1 << 16):
                        received += data
                        self._answer_pings(client, received)
                except (BlockingIOError, ssl.SSLWantReadError):
                    continue  # that was all
                except OSError:
                    pass
                self._selector.unregister(client.socket)

    @staticmethod
    def _answer_pings(client, received):
        """Takes the whole frames from the beginning of `received`."""
        while len(received) >= 9 and len(received) >= 9 + int.from_bytes(received[:3], "big"):
            end = 9 + int.from_bytes(received[:3], "big")
            if received[3] == RawHttp2.PING and received[4] != RawHttp2.ACK:
                client.frame(RawHttp2.PING, received[9:end], RawHttp2.ACK, stream=0)
            del received[:end]


class Connections:
    """Sockets that are closed at the end. Subclasses add them."""

    def __init__(self):
        self._sockets = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self._sockets:
            each.close()


class IdleConnections(Connections):
    """Many connections that say nothing."""

    def __init__(self, address, count):
        super().__init__()
        host, port = address.split(":")
        for _ in range(count):
            each = socket.socket()
            each.setblocking(False)
            each.connect_ex((host, int(port)))
            self._sockets.append(each)

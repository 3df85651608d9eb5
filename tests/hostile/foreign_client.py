"""A client that keeps to no custom: it reads when it likes, half-closes, cancels, sends what is no message, or frames that no
gRPC library would send."""
import queue
import socket
import struct

import grpc

from messages import METHODS
from real_cluster import PATIENCE_SECONDS

CHANNEL_OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
                   ("grpc.use_local_subchannel_pool", 1)]  # each channel has a connection of its own


def channel(address):
    return grpc.insecure_channel(address, options=CHANNEL_OPTIONS)


class ForeignStream:
    """A two-way stream, driven by hand: gRPC takes a message from the connection only when one is read here, so what is not read
    stays with the server once the window of the stream is full."""

    def __init__(self, address, method, seconds=PATIENCE_SECONDS):
        request_type, self.reply_type = METHODS[method]
        self.channel = channel(address)
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

    HEADERS, SETTINGS, CONTINUATION = 1, 4, 9
    END_HEADERS = 4

    def __init__(self, address):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self.frame(self.SETTINGS, b"", stream=0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def frame(self, kind, payload, flags=0, stream=1):
        self.socket.sendall(struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload)

    def headers_without_end(self, method):
        """The head of a request to `method`, to be continued."""
        def literal(name, value):  # HPACK: not indexed, no Huffman code, lengths below 127
            return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
        self.frame(self.HEADERS, literal(b":method", b"POST") + literal(b":scheme", b"http") +
                   literal(b":path", method.encode()) + literal(b":authority", b"x") +
                   literal(b"content-type", b"application/grpc"))


class IdleConnections:
    """Many connections that say nothing."""

    def __init__(self, address, count):
        host, port = address.split(":")
        self._sockets = []
        for _ in range(count):
            each = socket.socket()
            each.setblocking(False)
            each.connect_ex((host, int(port)))
            self._sockets.append(each)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self._sockets:
            each.close()

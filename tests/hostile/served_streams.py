"""What fake servers share: a gRPC server whose streams a test drives by hand."""
import concurrent.futures
import queue
import threading

import grpc

from messages import METHODS
from real_cluster import PATIENCE_SECONDS
from tls_mode import add_port


class ServedStream:
    """A stream that a client has opened. What the client says is read at once, by a thread that ends with the stream."""

    def __init__(self, requests):
        self._requests, self._replies = queue.SimpleQueue(), queue.SimpleQueue()
        threading.Thread(target=self._read, args=[requests], daemon=True).start()

    def _read(self, requests):
        try:
            for message in requests:
                self._requests.put(message)
        except Exception:  # grpc raises a bare one when the client is gone
            pass
        self._requests.put(None)

    def send(self, message):
        self._replies.put(message)

    def end(self):
        self._replies.put(None)

    def next(self):
        """The next message; None when the client has ended the stream."""
        return self._requests.get(timeout=PATIENCE_SECONDS)

    def receive(self, kind):
        """The next message of this kind; those before it are passed over."""
        while (message := self.next()) is not None:
            if message.WhichOneof("kind") == kind:
                return getattr(message, kind)
        raise AssertionError(f"the client has ended the stream without {kind}")

    def __iter__(self):
        return iter(self._requests.get, None)

    def replies(self):
        return iter(self._replies.get, None)


class FakeServer:
    """Serves these methods at a free port, as `role`. `accept(method)` returns the next stream that a client opens; `on_stream` may take
    them instead, each on a thread of its own."""

    def __init__(self, methods, role, on_stream=None, address="127.0.0.1:0"):
        self._streams = {method: queue.SimpleQueue() for method in methods}
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(32), options=[("grpc.so_reuseport", 0)])
        self._on_stream = on_stream
        handlers = {}
        for method in methods:
            service, name = method.split("/")
            request_type, reply_type = METHODS[method]
            handlers.setdefault(service, {})[name] = grpc.stream_stream_rpc_method_handler(
                lambda requests, context, method=method: self._serve(method, requests, context), request_type.FromString,
                reply_type.SerializeToString)
        for service, its_methods in handlers.items():
            self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(f"shoal.proto.{service}", its_methods)])
        port = add_port(self._server, address, role)
        self.address = f"127.0.0.1:{port}"
        self._server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.stop(0).wait()  # ends all streams

    def _serve(self, method, requests, context):
        stream = ServedStream(requests)
        if not context.add_callback(stream.end):  # the thread of a client that is gone would wait for ever
            stream.end()
        if self._on_stream is None:
            self._streams[method].put(stream)
        else:
            threading.Thread(target=self._on_stream, args=[method, stream], daemon=True).start()
        return stream.replies()

    def accept(self, method):
        return self._streams[method].get(timeout=PATIENCE_SECONDS)

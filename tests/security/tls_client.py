"""A gRPC client with any certificate, which sends one empty message."""
import grpc

from real_cluster import PATIENCE_SECONDS

OPTIONS = [("grpc.ssl_target_name_override", "localhost"), ("grpc.enable_http_proxy", 0),
           ("grpc.use_local_subchannel_pool", 1)]  # each channel has a handshake of its own


def shown(directory):
    """The credentials of a channel that shows the certificate of a TLS directory."""
    return grpc.ssl_channel_credentials(*((directory / name).read_bytes() for name in ("ca.crt", "tls.key", "tls.crt")))


def channel(address, credentials):
    """Plain where `credentials` is None."""
    return grpc.secure_channel(address, credentials, OPTIONS) if credentials else grpc.insecure_channel(address, OPTIONS)


def call(address, method, directory=None, credentials=None, messages=(b"",)):
    """(code, words) that end a call of `method` with the certificate in `directory`, or with `credentials`. `messages` are bytes."""
    with channel(address, shown(directory) if directory else credentials) as connection:
        # A method with one request looks like a stream with one message.
        stream = connection.stream_stream(f"/{method}")(iter(messages), timeout=PATIENCE_SECONDS)
        try:
            for _ in stream:
                pass
        except grpc.RpcError as error:
            return error.code(), error.details()
        return grpc.StatusCode.OK, ""

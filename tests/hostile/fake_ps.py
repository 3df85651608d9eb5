"""A ps without variables: it answers as a test tells it to."""
import random

from messages import VERSION, parameter_server
from served_streams import FakeServer


class FakePs(FakeServer):
    """Greets whoever dials. A command of the coordinator is answered by the function in `answers` of its kind, from the command
    and its term to a ControlReply or None; without one, a claim and a load are answered as an honest ps would. `received` counts
    the commands by kind."""

    def __init__(self, index=0, timeline=0, **answers):
        self.index, self.answers = index, {"claim": self._claimed, "load": self._loaded, "stop": self._stopping, **answers}
        self.received = {}
        self.incarnation, self.promised, self.timeline = random.getrandbits(63) | 1, 0, timeline
        super().__init__(["ParameterServer/Control", "ParameterServer/Exchange"], f"ps/{index}", self._serve_stream)

    def _serve_stream(self, method, stream):
        reply_type = parameter_server.ControlReply if method.endswith("Control") else parameter_server.ExchangeReply
        stream.send(reply_type(hello=parameter_server.ServerHello(
            incarnation=self.incarnation, promised_term=self.promised, timeline=self.timeline, version=VERSION,
            index=self.index)))
        for request in stream:
            kind = request.WhichOneof("kind")
            self.received[kind] = self.received.get(kind, 0) + 1
            if reply_type is parameter_server.ControlReply and kind in self.answers:
                reply = self.answers[kind](getattr(request, kind), request.term)
                if reply is not None:
                    stream.send(reply)

    def _claimed(self, _, term):
        self.promised = term
        return parameter_server.ControlReply(claimed=parameter_server.Claimed(
            incarnation=self.incarnation, timeline=self.timeline, promised_term=term))

    def _loaded(self, _, term):
        self.timeline = term
        return parameter_server.ControlReply(loaded=parameter_server.Loaded(timeline=term))

    def _stopping(self, *_):
        return parameter_server.ControlReply(stopping=parameter_server.Stopping())

"""A coordinator that orders what a test tells it to: to real ps, which it dials, and to real workers, which dial it."""
from foreign_client import ForeignStream
from messages import VERSION, parameter_server, worker
from served_streams import FakeServer


class ControlOfPs(ForeignStream):
    """The Control stream to a ps; what is sent carries `term`, at first the one that the ps has promised."""

    def __init__(self, address, term=None):
        super().__init__(address, "ParameterServer/Control")
        self.hello = self.read("hello")
        self.term = self.hello.promised_term if term is None else term

    def order(self, **kind):
        self.send(parameter_server.ControlRequest(term=self.term, **kind))

    def claim(self, **fields):
        """A ps takes pushes once a claim has told it of training_examples."""
        self.order(claim=parameter_server.Claim(version=VERSION, **fields))
        return self.read("claimed")

    def claim_for(self, run):
        """Claims like a second coordinator of the run in this directory, whose id strangers do not know."""
        run_id = (run / ".run-id").read_text().strip()
        return self.claim(claimant=parameter_server.Claimant(run_id=run_id, run_directory=str(run)))

    def load_seed(self, job):
        """Has the ps, the only one, hold the first values of the variables of `job`, a text; the timeline is the term."""
        self.order(load=parameter_server.Load(incarnation=self.hello.incarnation, job=job, ps_count=1))
        self.read("loaded")

    def hold_cut(self, step):
        """Returns when the ps holds the values with all steps below `step`."""
        self.order(fence=parameter_server.Fence(timeline=self.term, cut_step=step, hold=True))
        self.read("cut_ready")


class FakeCoordinator(FakeServer):
    """Waits for workers."""

    def __init__(self):
        super().__init__(["Coordinator/Work"], "coordinator")

    def worker(self):
        """The next worker that dials, and its hello."""
        stream = self.accept("Coordinator/Work")
        return OrdersOfWorker(stream), stream.receive("hello")


class OrdersOfWorker:
    """The Work stream of one worker."""

    def __init__(self, stream):
        self.stream = stream

    def order(self, **kind):
        self.stream.send(worker.WorkerOrder(**kind))

    def take_on(self, job, ps):
        """Has the worker prepare `job`, a text."""
        self.order(welcome=worker.Welcome(index=0, job=job, ps=ps))

    def welcome(self, job, ps):
        """Likewise; returns what it finds."""
        self.take_on(job, ps)
        return self.stream.receive("ready")

    def open_timeline(self, timeline):
        self.order(timeline_opened=worker.TimelineOpened(timeline=timeline))

    def lease(self, timeline, first, count=1):
        self.order(lease=worker.Lease(timeline=timeline, first=first, count=count, timeout_ms=60000))

    def evaluate(self, timeline, cut_step, batch=0):
        self.order(evaluate=worker.Evaluate(timeline=timeline, cut_step=cut_step, batch=batch))

    def drain(self, reason):
        self.order(drain=worker.Drain(reason=reason))

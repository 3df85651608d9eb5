"""A worker that says what a test tells it to say."""
import os
import random

from foreign_client import ForeignStream
from messages import VERSION, coordinator


class FakeWorker(ForeignStream):
    """The Work stream of a worker. `hello` are fields of its WorkerHello, over those of an honest one."""

    def __init__(self, chief, **hello):
        super().__init__(chief, "Coordinator/Work")
        fields = {"version": VERSION, "host": "elsewhere", "pid": os.getpid(), "device": "cpu", "threads": 1,
                  "incarnation": random.getrandbits(64) | 1}
        self.send(coordinator.WorkerReport(hello=coordinator.WorkerHello(**{**fields, **hello})))

    def ready(self, training_examples, test_examples, shard_map_fingerprint, job_fingerprint):
        self.send(coordinator.WorkerReport(ready=coordinator.WorkerReady(
            training_examples=training_examples, test_examples=test_examples, shard_map_fingerprint=shard_map_fingerprint,
            job_fingerprint=job_fingerprint)))

    def done(self, timeline, steps, examples=16):
        self.send(coordinator.WorkerReport(steps_done=coordinator.StepsDone(
            timeline=timeline, steps=[coordinator.StepDone(step=step, examples=examples, loss_sum=1, metric_sums=[1])
                                      for step in steps])))

    def leave(self, reason):
        self.send(coordinator.WorkerReport(leaving=coordinator.Leaving(reason=reason)))

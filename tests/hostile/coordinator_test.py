"""Strangers at a coordinator: workers and ps that lie, operators' programs that leave."""
import contextlib

import grpc
import pytest

from fake_ps import FakePs
from fake_worker import FakeWorker
from foreign_client import ForeignStream, channel
from honest_cluster import HonestCluster, growth_below
from messages import VERSION, cluster, cluster_services, coordinator, parameter_server
from real_cluster import Cluster, shoal, wait_for, write_job
from tls_mode import on


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    with HonestCluster(tmp_path_factory.mktemp("honest"), workers=2).start_all() as running:
        yield running
        running.check_serves()


@contextlib.contextmanager
def stub(address):
    with channel(address) as open_channel:
        yield cluster_services.ClusterStub(open_channel)


def too_long():
    """The end of a stream whose client sends a message that is longer than any it may send."""
    return grpc.StatusCode.UNAVAILABLE if on() else grpc.StatusCode.RESOURCE_EXHAUSTED


def test_ordinary_stubs_get_the_real_answers(honest):
    with stub(honest.chief) as service:
        written = service.Checkpoint(cluster.CheckpointRequest(), timeout=60)
        assert written is not None and (honest.run / "checkpoints").as_posix() in written.directory
        drained = service.Drain(cluster.DrainRequest(type="worker", index=1), timeout=60)
        assert drained is not None and "has left" in drained.detail
        with pytest.raises(grpc.RpcError) as nobody:
            service.Drain(cluster.DrainRequest(type="worker", index=1), timeout=60)
        assert nobody.value.code() == grpc.StatusCode.NOT_FOUND
        assert service.Status(cluster.StatusRequest(version=VERSION), timeout=60).phase == "training"
    assert honest.workers[1].wait() == 143
    honest.workers[1] = honest.start_worker(1)
    honest.check_serves()


def test_a_cancelled_request_does_not_wait_for_a_checkpoint(honest):
    server = honest.ps[0]
    server.signal(19)
    try:
        for _ in range(70):
            with ForeignStream(honest.chief, "Cluster/Checkpoint") as asked:
                asked.send(cluster.CheckpointRequest())
                # What comes after it on the connection has been answered, so it has been heard.
                status = asked.channel.unary_unary("/shoal.proto.Cluster/Status", cluster.StatusRequest.SerializeToString,
                                                   cluster.StatusReply.FromString)
                status(cluster.StatusRequest(), timeout=60)
        with ForeignStream(honest.chief, "Cluster/Checkpoint") as asked:
            asked.send(cluster.CheckpointRequest())
            server.signal(18)
            assert next(asked.call).directory
    finally:
        server.signal(18)
    honest.check_serves()


def test_names_of_many_megabytes_are_rejected_and_long_ones_are_cut(honest):
    with growth_below(honest.coordinator, 150):
        for _ in range(4):
            with FakeWorker(honest.chief, host="h" * (50 << 20)) as worker:
                assert worker.ended() == too_long()
        with FakeWorker(honest.chief, host="h" * (3 << 20)) as one, FakeWorker(honest.chief, host="h" * (3 << 20)) as other:
            one.read("welcome"), other.read("welcome")
            assert len(shoal("status", "--chief", honest.chief).stdout) < 10000
            honest.check_serves()


def test_long_messages_are_rejected_before_they_are_in_memory(honest):
    with growth_below(honest.coordinator, 100), contextlib.ExitStack() as stack:
        for method, request in (("Cluster/Status", cluster.StatusRequest(version="v" * (50 << 20))),
                                ("Coordinator/Work", coordinator.WorkerReport(hello=coordinator.WorkerHello(host="h" * (50 << 20))))):
            streams = [stack.enter_context(ForeignStream(honest.chief, method)) for _ in range(6)]
            for each in streams:
                each.send(request)
            for each in streams:
                assert each.ended() == too_long()
    honest.check_serves()


ESCAPES = "\x1b[2J\x1b]0;owned\x07\r\nE0101 00:00:00 the disk is full\x9b31m"


def test_no_text_of_a_peer_moves_the_cursor(honest):
    with FakeWorker(honest.chief, host=ESCAPES, device=ESCAPES) as worker:
        worker.read("welcome")
        worker.leave(ESCAPES)
        worker.half_close()
        worker.ended()
    with FakeWorker(honest.chief, version=ESCAPES) as worker:
        worker.read("rejected")
    with stub(honest.chief) as service, pytest.raises(grpc.RpcError):
        service.Drain(cluster.DrainRequest(type=ESCAPES, index=1), timeout=60)
    log = honest.coordinator.log.read_bytes()
    status = shoal("status", "--chief", honest.chief).stdout.encode()
    for text in (log, status):
        assert not any(byte in text for byte in b"\x1b\x07\r"), text[-3000:]
        assert b"\nE0101 00:00:00 the disk" not in text, text[-3000:]
        assert "\x9b".encode() not in text, text[-3000:]
    honest.check_serves()


@pytest.mark.parametrize("window_steps", [64, 100000])
def test_steps_that_were_never_pushed_hold_up_no_checkpoint(tmp_path, window_steps):
    # Without a test set, or the liar would be given batches of it too, and waited for.
    data = {"training": {"images": "train-images.idx", "labels": "train-labels.idx"}}
    # A small window: the others come to its end before the ps is asked, once a second.
    strategy = {"name": "async", "window_steps": window_steps}
    with HonestCluster(tmp_path, data=data, strategy=strategy, checkpoint={"every_steps": 0}).start_all() as honest:
        fingerprint = honest.shard_map_fingerprint()
        with FakeWorker(honest.chief) as liar:
            liar.read("welcome")
            liar.ready(400, 0, fingerprint, honest.job_fingerprint())
            timeline = liar.read("timeline_opened").timeline
            lease = liar.read("lease")
            liar.done(timeline, range(lease.first, lease.first + lease.count))
            honest.check_serves()
            written = shoal("checkpoint", "now", "--chief", honest.chief)
            assert written.returncode == 0, written.stderr
            honest.check_serves()


def test_a_ps_at_the_last_step_of_all_is_not_asked_without_end(tmp_path):
    def too_late(fence, term):
        return parameter_server.ControlReply(fence_rejected=parameter_server.FenceRejected(
            cut_step=fence.cut_step, highest_step=2**64 - 1, reason="too late"))
    job = write_job(tmp_path / "job", examples=16, epochs=1000)  # each step ends an epoch, which must be cut
    with Cluster(tmp_path / "logs", workers=1) as honest, FakePs(fence=too_late) as liar:
        honest.spec["ps"] = [liar.address]
        chief = honest.start_chief(job, tmp_path / "run")
        honest.start_worker(0)
        wait_for(lambda: liar.received.get("fence", 0) > 0, "a fence")
        wait_for(lambda: chief.popen.poll() is not None or (honest.status() or {"uptime_seconds": 0})["uptime_seconds"] > 4,
                 "the coordinator to be old")
        assert liar.received["fence"] < 20, liar.received

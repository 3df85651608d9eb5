"""Strangers at a ps: workers that do not read, coordinators that nobody started."""
import contextlib
import csv
import json
import shutil

import grpc
import pytest

from fake_coordinator import ControlOfPs
from foreign_client import ForeignStream
from honest_cluster import HonestCluster, growth_below, resolved, wide_model
from messages import VERSION, parameter_server
from real_cluster import Cluster, wait_for, write_job
from tls_mode import on

WIDE = wide_model(30000)  # 8 MiB
STEPS_PER_EPOCH = 25  # of the small job


def exchange(address, job_fingerprint):
    """An Exchange stream that has said hello, and the timeline of the ps."""
    stream = ForeignStream(address, "ParameterServer/Exchange")
    hello = parameter_server.ExchangeHello(version=VERSION, worker=9, job_fingerprint=job_fingerprint)
    stream.send(parameter_server.ExchangeRequest(hello=hello))
    return stream, stream.read("hello").timeline


def pull_first_chunk(timeline):
    return parameter_server.ExchangeRequest(pull=parameter_server.Pull(timeline=timeline, first_chunk=0, chunk_count=1))


def pull_all(timeline):
    return parameter_server.ExchangeRequest(pull=parameter_server.Pull(timeline=timeline, first_chunk=0, chunk_count=8))


def test_pulls_that_are_not_read_pin_no_versions(tmp_path):
    with HonestCluster(tmp_path, model=WIDE, optimizer="sgd", checkpoint={"every_steps": 0}).start_all() as cluster:
        address = cluster.spec["ps"][0]
        job = cluster.job_fingerprint()
        reader, timeline = exchange(address, job)
        sleepers = [exchange(address, job)[0] for _ in range(16)]
        with growth_below(cluster.ps[0], 100):
            version = 0
            for _ in range(50):
                for each in sleepers:
                    each.send(pull_all(timeline))
                # Of another version the next time, so that what waits to be sent cannot be the same.
                for _ in range(1000):
                    reader.send(pull_first_chunk(timeline))
                    newest = reader.read("values").version
                    if newest > version:
                        break
                version = newest
            cluster.check_serves()
        for each in (reader, *sleepers):
            each.close()


def test_rows_of_a_cut_that_are_not_read_are_not_copied(tmp_path):
    job = write_job(tmp_path / "job", model=WIDE)
    with Cluster(tmp_path / "logs") as cluster:
        server = cluster.start("ps")
        with ControlOfPs(cluster.spec["ps"][0], term=1 << 32) as control:
            control.claim()
            control.load_seed(resolved(job))
            control.hold_cut(0)
            with growth_below(server, 100):
                for _ in range(600):
                    control.order(read_cut=parameter_server.ReadCut(cut_step=0, chunk=0, part=0))
                # It has heard them all when it has answered on another stream what came after them.
                with ControlOfPs(cluster.spec["ps"][0], term=1 << 32) as later:
                    later.claim()
        assert server.popen.poll() is None


def newest_step(run):
    """Of the newest checkpoint, by the steps that it has."""
    return max((json.loads(path.read_text())["cut_step"] for path in run.glob("checkpoints/*/manifest.json")), default=0)


def test_a_claim_of_the_highest_term_of_all_unseats_nobody(tmp_path):
    with HonestCluster(tmp_path).start_all() as cluster:
        for term in (2**64 - 1, (2**32 - 1) << 32, 1 << 63):
            with ControlOfPs(cluster.spec["ps"][0], term=term) as stranger:
                with pytest.raises(grpc.RpcError) as rejected:
                    stranger.claim()
                assert rejected.value.code() == grpc.StatusCode.FAILED_PRECONDITION
            cluster.check_serves()
        wait_for(lambda: newest_step(cluster.run), "a checkpoint")
        # What comes after the loss of the ps, and of the coordinator, goes on from the newest checkpoint, and not from an older
        # one that sorts above it.
        cluster.ps[0].kill()
        cluster.ps[0] = cluster.start("ps")
        cluster.check_serves()
        had = newest_step(cluster.run)
        wait_for(lambda: newest_step(cluster.run) > had, "another checkpoint")
        for process in (cluster.coordinator, *cluster.ps, *cluster.workers):
            process.kill()
        had = newest_step(cluster.run)
        cluster.start_all(name="again")
        assert cluster.status()["base_step"] >= had


def test_a_fence_at_the_last_step_of_all_holds_up_no_checkpoint(tmp_path):
    with HonestCluster(tmp_path).start_all() as cluster:
        with ControlOfPs(cluster.spec["ps"][0]) as second:
            timeline = second.claim_for(cluster.run).timeline
            second.order(fence=parameter_server.Fence(timeline=timeline, cut_step=2**64 - 1))
            assert not second.read("fence_rejected").superseded
            # As far ahead as a ps takes it: every cut of the coordinator's term is older from then on.
            second.order(fence=parameter_server.Fence(timeline=timeline, cut_step=2**31))
            second.read("fence_accepted")
        had = newest_step(cluster.run)
        wait_for(lambda: newest_step(cluster.run) > had, "another checkpoint")
        cluster.check_serves()


def test_a_fence_writes_into_no_directory_but_those_of_its_run(tmp_path):
    with HonestCluster(tmp_path).start_all() as cluster:
        wait_for(lambda: newest_step(cluster.run), "a checkpoint")
        committed = next(path.parent for path in cluster.run.glob("checkpoints/*/manifest.json"))
        other = tmp_path / "other" / "checkpoints" / committed.name
        shutil.copytree(committed, other)
        before = {path: path.read_bytes() for path in other.iterdir()}
        with ControlOfPs(cluster.spec["ps"][0]) as second:
            timeline = second.claim_for(cluster.run).timeline
            for directory, marker in ((other, "manifest.json"), (other, ".cut-1-1"), (committed / ".." / committed.name, "manifest.json"),
                                      (committed, "manifest.json")):
                step = second.claim_for(cluster.run).base + 1000
                second.order(fence=parameter_server.Fence(timeline=timeline, cut_step=step, directory=str(directory), marker=marker))
                assert second.read("fence_rejected").reason
        assert {path: path.read_bytes() for path in other.iterdir()} == before
        cluster.check_serves()


def test_a_claim_by_nobody_is_rejected_while_the_run_goes_on(tmp_path):
    with HonestCluster(tmp_path).start_all() as cluster:
        with ControlOfPs(cluster.spec["ps"][0]) as stranger:
            stranger.term += 1000 << 32
            stranger.order(claim=parameter_server.Claim(version=VERSION))
            rejected = stranger.read("claim_rejected")
            assert (rejected.holder.address, rejected.holder.pid) == (cluster.chief, cluster.coordinator.popen.pid)
            # Commands without a claim are rejected too.
            stranger.order(stop=parameter_server.Stop())
            stranger.read("claim_rejected")
            stranger.order(resign=parameter_server.Resign())
            stranger.read("claim_rejected")
        cluster.check_serves()


def test_a_stranger_with_the_promised_term_commands_nothing(tmp_path):
    with HonestCluster(tmp_path).start_all() as cluster:
        had = newest_step(cluster.run)
        with ControlOfPs(cluster.spec["ps"][0]) as stranger:
            for claims in (False, True):
                if claims:
                    stranger.claim(training_examples=1)
                load = parameter_server.Load(incarnation=stranger.hello.incarnation, job=resolved(cluster.job), ps_count=1)
                fence = parameter_server.Fence(timeline=stranger.hello.timeline, cut_step=2**31)
                for command in ({"stop": parameter_server.Stop()}, {"load": load}, {"fence": fence}):
                    stranger.order(**command)
                    rejected = stranger.read("claim_rejected")
                    assert (rejected.term, rejected.holder.pid) == (stranger.term, cluster.coordinator.popen.pid)
            stranger.order(resign=parameter_server.Resign())
            # The ps follows its run all the same.
            stranger.term += 1000 << 32
            stranger.order(claim=parameter_server.Claim(version=VERSION))
            assert stranger.read("claim_rejected").term == stranger.term
        wait_for(lambda: newest_step(cluster.run) > had, "another checkpoint")
        cluster.check_serves()


def epochs_evaluated(run):
    """As history.csv has them."""
    path = run / "history.csv"
    if not path.exists():
        return 0
    with open(path, newline="") as file:
        return sum(bool(row["val_loss"]) for row in csv.DictReader(file))


def test_a_release_by_a_stranger_ends_no_evaluation(tmp_path):
    with HonestCluster(tmp_path).start_all() as cluster:
        goal = epochs_evaluated(cluster.run) + 5
        with ControlOfPs(cluster.spec["ps"][0]) as stranger:
            def goal_reached_against_releases():
                epoch = max(1, cluster.steps_done() // STEPS_PER_EPOCH)
                for end in range(epoch - 1, epoch + 3):
                    stranger.order(release=parameter_server.Release(cut_step=end * STEPS_PER_EPOCH))
                    assert stranger.read("claim_rejected").term == stranger.term
                return epochs_evaluated(cluster.run) >= goal
            wait_for(goal_reached_against_releases, "5 more epochs to be evaluated")
        cluster.check_serves()


@pytest.mark.skipif(on(), reason="a coordinator's certificate is believed")
def test_long_claims_are_rejected_before_they_are_in_memory(tmp_path):
    with HonestCluster(tmp_path).start_all() as cluster:
        with growth_below(cluster.ps[0], 100), contextlib.ExitStack() as stack:
            streams = [stack.enter_context(ControlOfPs(cluster.spec["ps"][0])) for _ in range(6)]
            for each in streams:
                each.order(claim=parameter_server.Claim(version="v" * (50 << 20)))
            for each in streams:
                assert each.ended() == grpc.StatusCode.RESOURCE_EXHAUSTED
        cluster.check_serves()


def test_a_takeover_by_nobody_costs_the_coordinator_no_steps(tmp_path):
    with HonestCluster(tmp_path).start_all() as cluster:
        with ControlOfPs(cluster.spec["ps"][0]) as stranger:
            stranger.term += 1000 << 32
            timeline = stranger.claim(take_over=True).timeline
        assert cluster.coordinator.wait() == 77
        had = newest_step(cluster.run)
        cluster.coordinator = cluster.start_chief(cluster.job, cluster.run, name="heir")
        cluster.check_serves()
        assert cluster.status()["timeline"] == timeline, "it goes on with what the ps hold"
        wait_for(lambda: newest_step(cluster.run) > had, "another checkpoint")


def test_pushes_of_false_rounds_change_nothing(tmp_path):
    with HonestCluster(tmp_path, workers=2, strategy={"name": "sync", "gradients_per_update": 2}).start_all() as cluster:
        address = cluster.spec["ps"][0]
        job = cluster.job_fingerprint()
        for attempt in range(20):
            stream, timeline = exchange(address, job)
            stream.send(pull_first_chunk(timeline))
            reply = stream.read()
            # The first step of the round that the chunk is at, or will be: alone in it, or of a round of another number.
            first = reply.values.version
            count, number = (1, first // 2) if attempt % 2 else (2, first + 1)
            stream.send(parameter_server.ExchangeRequest(
                push=parameter_server.Push(timeline=timeline, step=first, chunk=0, pulled_version=first,
                                           round={"first": first, "count": count, "number": number}),
                payload=bytes(len(reply.payload))))
            assert stream.ended() == grpc.StatusCode.INVALID_ARGUMENT
            stream.close()
        cluster.check_serves()

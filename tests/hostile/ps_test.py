"""Strangers at a ps: workers that do not read, coordinators that nobody started."""
import json

from fake_coordinator import ControlOfPs
from honest_cluster import HonestCluster
from real_cluster import wait_for


def newest_step(run):
    """Of the newest checkpoint, by the steps that it has."""
    return max((json.loads(path.read_text())["cut_step"] for path in run.glob("checkpoints/*/manifest.json")), default=0)


def test_a_claim_by_nobody_costs_the_coordinator_its_office_and_no_steps(tmp_path):
    with HonestCluster(tmp_path).start_all() as cluster:
        with ControlOfPs(cluster.spec["ps"][0]) as stranger:
            stranger.term += 1000 << 32
            timeline = stranger.claim().timeline
        assert cluster.coordinator.wait() == 77
        had = newest_step(cluster.run)
        cluster.coordinator = cluster.start_chief(cluster.job, cluster.run, name="heir")
        cluster.check_serves()
        assert int(cluster.status()["timeline"]) == timeline, "it goes on with what the ps hold"
        wait_for(lambda: newest_step(cluster.run) > had, "another checkpoint")

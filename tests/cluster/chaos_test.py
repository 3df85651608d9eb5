"""Kills, freezes and restarts real processes at random; at the end everything must be as if nothing had happened.

    pytest chaos_test.py --rounds 20        more rounds, each with a seed that it prints
    pytest chaos_test.py --seed 12345       that round again, as far as real time allows
"""
import contextlib
import json
import os
import random
import re
import signal
import threading

import numpy as np
import pytest
from safetensors.numpy import load_file

from endless_job import EPOCHS, Ending
from real_cluster import BIN, Cluster, Process, children_of, finished_steps, free_ports, shoal, wait_for, write_job

# Small shards and chunks, so that both ps have several; short leases, so that those of a frozen worker end.
STRATEGY = {"name": "async", "min_shard_bytes": 256, "chunk_bytes": 1024, "lease_timeout_seconds": 2}
TIMELINE = re.compile(r"a timeline begins timeline=(\S+)")


class Chaos:
    """A cluster whose tasks are killed, frozen and started again."""

    def __init__(self, directory, cluster, job, seed):
        self.choose = random.Random(seed)
        self.cluster, self.job, self.run = cluster, job, directory / "run"
        self.records = directory / "records"
        self.records.mkdir()
        self.processes = {}
        self.killed_workers = 0
        print("seed", seed)

    def start_all(self, *kinds):
        for kind in kinds:
            for index in range(len(self.cluster.spec[kind])):
                self.start((kind, index))

    def start(self, task):
        kind, index = task
        if kind == "chief":
            process = self.cluster.start_chief(self.job, self.run)
        elif kind == "worker":
            process = self.cluster.start_worker(index, f"--step_records={self.records}", "--coordinator_timeout=30")
        else:
            process = self.cluster.start("ps", index)
        self.processes[task] = process

    @property
    def chief(self):
        return self.processes["chief", 0]

    def over(self):
        return self.chief.popen.poll() is not None

    def kill(self, *tasks):
        print("kill", *tasks)
        for task in tasks:
            self.processes[task].kill()
            self.killed_workers += task[0] == "worker"

    def pause(self, max_seconds):
        threading.Event().wait(self.choose.uniform(0, max_seconds))

    def kill_and_restart(self, tasks):
        self.kill(*tasks)
        tasks = list(tasks)
        self.choose.shuffle(tasks)
        for task in tasks:
            self.pause(0.4)
            self.start(task)

    def freeze(self, task, meanwhile):
        print("freeze", task)
        self.processes[task].signal(signal.SIGSTOP)
        try:
            meanwhile()
        finally:
            self.processes[task].signal(signal.SIGCONT)

    def tasks(self, *kinds):
        return [task for task in self.processes if task[0] in kinds]

    def await_steps(self, count):
        """Steps flow again, whatever was done to them."""
        goal = finished_steps(self.records) + count
        wait_for(lambda: self.over() or finished_steps(self.records) >= goal, f"{count} more steps")

    def one_fault(self, kinds):
        """`kinds`: of tasks that may be killed; any may be frozen."""
        fault = self.choose.choice(["kill", "kill", "kill", "kill two", "freeze", "freeze across", "kill all"])
        victim = self.choose.choice(self.tasks(*kinds))
        if fault == "kill":
            self.kill_and_restart([victim])
        elif fault == "kill two":
            self.kill_and_restart(self.choose.sample(self.tasks(*kinds), 2))
        elif fault == "kill all":
            self.kill_and_restart(self.tasks(*kinds))
        else:
            frozen = self.choose.choice([task for task in self.processes if task != victim])
            restart = fault == "freeze across"
            self.freeze(frozen, lambda: (self.kill_and_restart([victim]) if restart else None, self.pause(2.5)))

    @contextlib.contextmanager
    def held(self, *tasks):
        """They stand still meanwhile."""
        for task in tasks:
            self.processes[task].signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for task in tasks:
                self.processes[task].signal(signal.SIGCONT)

    def end(self, examples, former_logs=""):
        """Ends the job in order, and returns how many epochs it had: nothing was lost and nothing done twice. `former_logs`: text
        of the coordinators before."""
        ending = Ending(self.job, self.run, self.records, ps=2)
        self.chief.wait_for_output(" at their defaults")  # workers do the steps that they hold without it
        ending.stop(self.chief, [self.processes[task] for task in self.tasks("worker")])
        ending.finish()
        ending.check_updates()
        ending.check_lineage(former_logs + self.chief.output(), examples, self.killed_workers)
        return ending.epochs


def model_of(run):
    return load_file(run / "model/model.safetensors")


def assert_same_bits(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert np.array_equal(one[name].view(np.uint32), other[name].view(np.uint32)), name


LOCAL = {**STRATEGY, "name": "local", "batches_per_step": 3}


@pytest.mark.parametrize("strategy", [STRATEGY, LOCAL, {**LOCAL, "fragments": 3}], ids=["async", "local", "fragments"])
def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path, chaos_seed, strategy):
    examples = 8007
    job = write_job(tmp_path, examples, epochs=EPOCHS, strategy=strategy, checkpoint={"every_steps": 200, "keep": 2})
    with Cluster(tmp_path / "logs", ps=2, workers=3) as cluster:
        chaos = Chaos(tmp_path, cluster, job, chaos_seed)
        chaos.start_all("ps", "worker", "chief")
        chaos.await_steps(chaos.choose.randrange(1, 300))
        for _ in range(7):
            chaos.one_fault(("chief", "ps", "worker"))
            chaos.await_steps(chaos.choose.randrange(1, 600))
        chaos.end(examples)
        assert model_of(chaos.run)["dense/kernel"].shape == (64, 32)


SOLO = {"epochs": EPOCHS, "examples": 8007, "batch_size": 16, "strategy": STRATEGY, "checkpoint": {"every_steps": 150, "keep": 2}}


def write_solo(directory, payloads, **fields):
    """The job SOLO. Its `payloads` go with their messages, or are "shared": large enough to lie in memory that worker and ps share."""
    if payloads != "shared":
        return write_job(directory, **{**SOLO, **fields})
    job = write_job(directory, **{**SOLO, **fields, "strategy": {**STRATEGY, "chunk_bytes": 1 << 16}})
    model = json.loads((directory / "model.json").read_text())
    model["config"]["layers"][3]["config"]["units"] = 1024
    (directory / "model.json").write_text(json.dumps(model))
    return job


PAYLOADS = pytest.mark.parametrize("payloads", ["sent", "shared"])


def faultless_model(directory, payloads, epochs):
    """What one worker alone comes to when nothing happens."""
    job = write_solo(directory, payloads, epochs=epochs)
    done = shoal("train", job, "--run_dir", directory / "run", "--workers", 1, "--threads", 1, "--ps", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    return model_of(directory / "run")


@PAYLOADS
def test_one_worker_ends_with_the_bits_of_a_run_without_faults(tmp_path, chaos_seed, payloads):
    with Cluster(tmp_path / "logs", ps=2, workers=1) as cluster:
        chaos = Chaos(tmp_path, cluster, write_solo(tmp_path, payloads), chaos_seed)
        chaos.start_all("ps", "worker")
        # Before its first chunk is applied, the worker may die, too: without a coordinator there is none.
        chaos.kill_and_restart([("worker", 0)])
        chaos.start_all("chief")
        for _ in range(4):
            chaos.await_steps(chaos.choose.randrange(1, 600))
            chaos.one_fault(("chief", "ps"))
        epochs = chaos.end(SOLO["examples"])
        assert_same_bits(model_of(chaos.run), faultless_model(tmp_path / "faultless", payloads, epochs))


@PAYLOADS
def test_zombies_that_were_replaced_change_nothing(tmp_path, payloads):
    """A worker and a ps sleep while others take their places; when they wake, they still hold what they were doing."""
    with Cluster(tmp_path / "logs", ps=2, workers=2) as cluster:
        chaos = Chaos(tmp_path, cluster, write_solo(tmp_path, payloads), 1)
        chaos.start_all("ps", "chief")
        chaos.start(("worker", 0))
        chaos.await_steps(400)
        zombies = [chaos.processes.pop(("worker", 0)), chaos.processes["ps", 1]]
        for zombie in zombies:
            zombie.signal(signal.SIGSTOP)
        chaos.kill(("chief", 0), ("ps", 0))
        cluster.spec["ps"][1] = f"127.0.0.1:{free_ports(1)[0]}"
        chaos.start_all("ps", "chief")
        chaos.start(("worker", 1))
        chaos.await_steps(200)
        for zombie in reversed(zombies):
            zombie.signal(signal.SIGCONT)
        # The old worker finds the new coordinator, which has other ps than it knew.
        assert zombies[0].wait() == 138, zombies[0].output()[-3000:]
        assert zombies[1].popen.poll() is None
        chaos.killed_workers += 1
        chaos.await_steps(200)
        epochs = chaos.end(SOLO["examples"])
        assert_same_bits(model_of(chaos.run), faultless_model(tmp_path / "faultless", payloads, epochs))


@PAYLOADS
def test_gradients_of_a_former_timeline_change_no_bit(tmp_path, payloads):
    """Workers sleep in the middle of their steps; when they wake, one of the ps that they push to has gone back to the seed."""
    training = {"images": "train-images.idx", "labels": "train-labels.idx"}
    job = write_solo(tmp_path, payloads, data={"training": training}, checkpoint={})
    with Cluster(tmp_path / "logs", ps=2, workers=4) as cluster:
        chaos = Chaos(tmp_path, cluster, job, 1)
        chaos.start_all("ps", "chief")
        for i in range(3):
            chaos.start(("worker", i))
            chaos.processes["worker", i].wait_for_output("working in timeline")
        chaos.await_steps(800)
        sleepers = [chaos.processes.pop(("worker", i)) for i in range(3)]
        for sleeper in sleepers:
            sleeper.signal(signal.SIGSTOP)
        updates = finished_steps(chaos.records)
        former = chaos.chief
        chaos.kill(("chief", 0), ("ps", 0))
        # Somewhere else, so that the sleepers do not find it and take part: one worker alone makes the same bits.
        cluster.spec["chief"] = [f"127.0.0.1:{free_ports(1)[0]}"]
        chaos.start(("ps", 0))
        chaos.processes["chief", 0] = cluster.start("chief", 0, [f"--job={job}", f"--run_dir={chaos.run}"], name="new-chief")
        chaos.start(("worker", 3))
        # By now the chunks have had as many updates as those that the sleepers' gradients are of, but not yet all of their
        # steps, as those who held the later leases were ahead: nothing but the timeline tells their pushes from good ones.
        chaos.await_steps(updates + 10)
        with chaos.held(("worker", 3)):
            for sleeper in sleepers:
                sleeper.signal(signal.SIGCONT)
            for sleeper in sleepers:
                sleeper.wait_for_output("the timeline is over")
        assert len(TIMELINE.findall(former.output() + chaos.chief.output())) == 2
        epochs = chaos.end(SOLO["examples"], former.output())
        assert_same_bits(model_of(chaos.run), faultless_model(tmp_path / "faultless", payloads, epochs))


def test_sleepers_that_wake_in_another_timeline_join_it(tmp_path):
    examples = 8007
    job = write_job(tmp_path, examples, epochs=EPOCHS, strategy=STRATEGY, checkpoint={"every_steps": 200, "keep": 2})
    with Cluster(tmp_path / "logs", ps=2, workers=2) as cluster:
        chaos = Chaos(tmp_path, cluster, job, 1)
        chaos.start_all("ps", "worker", "chief")
        chaos.await_steps(500)
        worker, server = chaos.processes["worker", 0], chaos.processes["ps", 1]
        worker.signal(signal.SIGSTOP)
        server.signal(signal.SIGSTOP)
        chaos.kill_and_restart([("ps", 0)])
        # The coordinator can't open a timeline without ps 1, and says so.
        wait_for(lambda: any(cluster.spec["ps"][1] in line for line in (cluster.status() or {}).get("waiting", [])),
                 "ps 1 among those waited for")
        server.signal(signal.SIGCONT)
        chaos.await_steps(300)
        worker.signal(signal.SIGCONT)
        newest = TIMELINE.findall(chaos.chief.output())[-1]
        worker.wait_for_output(f"working in timeline {newest}")
        chaos.end(examples)


def test_a_coordinator_that_was_replaced_is_fenced_off(tmp_path):
    examples = 8007
    job = write_job(tmp_path, examples, epochs=EPOCHS, strategy=STRATEGY)
    with Cluster(tmp_path / "logs", ps=2, workers=2) as cluster:
        chaos = Chaos(tmp_path, cluster, job, 1)
        chaos.start_all("ps", "chief")
        chaos.start(("worker", 0))
        chaos.await_steps(300)
        old = chaos.chief
        old.signal(signal.SIGSTOP)
        # The new one is somewhere else, with a worker of its own, and goes on where the old one was.
        cluster.spec["chief"] = [f"127.0.0.1:{free_ports(1)[0]}"]
        chaos.processes["chief", 0] = cluster.start("chief", 0, [f"--job={job}", f"--run_dir={chaos.run}"], name="new-chief")
        chaos.start(("worker", 1))
        chaos.processes["worker", 1].wait_for_output("working in timeline")
        chaos.await_steps(300)
        old.signal(signal.SIGCONT)
        # Fenced off by the ps, or by the run lock: whichever it looks at first.
        assert old.wait() == 77, old.output()[-3000:]
        chaos.kill(("worker", 0))  # it looks for the old one
        del chaos.processes["worker", 0]
        chaos.end(examples, old.output())
        assert "adopted timeline" in chaos.chief.output()


def test_shoal_train_survives_whatever_is_killed(tmp_path, chaos_seed):
    examples = 8007
    job = write_job(tmp_path, examples, epochs=EPOCHS, strategy=STRATEGY, checkpoint={"every_steps": 200, "keep": 2})
    choose, records, run = random.Random(chaos_seed), tmp_path / "records", tmp_path / "run"
    records.mkdir()
    print("seed", chaos_seed)
    train = Process([BIN / "shoal", "train", job, "--run_dir", run, "--ps", 2, "--max_restarts", 1000], tmp_path / "train.log",
                    {"SHOAL_STEP_RECORDS": str(records)})
    killed = []
    try:
        for _ in range(6):
            goal = finished_steps(records) + choose.randrange(1, 500)
            wait_for(lambda: train.popen.poll() is not None or finished_steps(records) >= goal, f"step {goal}")
            children = children_of(train.popen.pid)
            pid = choose.choice(sorted(children))
            killed.append(children[pid])
            os.kill(pid, signal.SIGKILL)
        # What was killed last is back before all of it ends.
        goal = finished_steps(records) + 500
        wait_for(lambda: finished_steps(records) >= goal, f"step {goal}")
        ending = Ending(job, run, records, ps=2)
        ending.stop(train)
    finally:
        train.kill()
    for task in killed:
        assert f"{task} (pid" in train.output() and "SIGKILL" in train.output()
    ending.finish()
    ending.check_updates()
    ending.check_lineage("", examples, sum(task.startswith("worker") for task in killed))

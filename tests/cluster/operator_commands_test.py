"""What operators type while a job runs: shoal drain, shoal checkpoint now, signals."""
import os
import pathlib
import signal

from endless_job import EPOCHS, Ending
from real_cluster import BIN, PATIENCE_SECONDS, Cluster, Process, children_of, finished_steps, shoal, step_records, wait_for, write_job
from tls_mode import on, open_channel

EXAMPLES, BATCH_SIZE = 8007, 16


class Job:
    """A cluster in the middle of its work."""

    def __init__(self, directory, workers=2, **fields):
        self.records, self.run = directory / "records", directory / "run"
        self.records.mkdir()
        self.job = write_job(directory, EXAMPLES, BATCH_SIZE, epochs=EPOCHS, **fields)
        self.ending = Ending(self.job, self.run, self.records)
        self.cluster = Cluster(directory / "logs", workers=workers)

    def __enter__(self):
        self.server = self.cluster.start("ps")
        self.workers = [self.start_worker(i) for i in range(2)]
        self.chief = self.cluster.start_chief(self.job, self.run)
        for worker in self.workers:
            worker.wait_for_output("working in timeline")
        self.await_steps(200)
        return self

    def __exit__(self, *arguments):
        self.cluster.__exit__(*arguments)

    def start_worker(self, index, *arguments):
        return self.cluster.start_worker(index, f"--step_records={self.records}", *arguments)

    def await_steps(self, count):
        goal = finished_steps(self.records) + count
        wait_for(lambda: finished_steps(self.records) >= goal, f"{count} more steps")

    def check_end(self, *workers):
        """Those who are left go on, and nothing that they and others did is lost or done twice."""
        self.await_steps(50)
        for process in (self.chief, self.server, *workers):
            assert process.popen.poll() is None, process.output()[-3000:]
        self.ending.stop(self.chief, workers)
        self.ending.finish()
        self.ending.check_lineage(self.chief.output(), EXAMPLES, killed_workers=0)


def full_disk(directory, *command):
    """A command of `shoal` whose output cannot be written."""
    return Process(["sh", "-c", 'exec "$@" >/dev/full', "sh", BIN / "shoal", *command], directory / "full_disk.log")


def test_a_drained_worker_leaves_and_the_others_go_on(tmp_path):
    with Job(tmp_path) as job:
        drained = shoal("drain", "worker:1", "--run_dir", job.run)
        assert drained.returncode == 0, drained.stderr
        assert "worker 1" in drained.stdout and "has left" in drained.stdout
        assert job.workers[1].wait() == 143
        assert "an operator" in job.workers[1].output()
        job.chief.wait_for_output("worker 1 leaves")
        job.await_steps(200)

        again = shoal("drain", "worker/1", "--chief", job.cluster.chief)
        assert again.returncode == 78 and "worker 1" in again.stderr and ": 0" in again.stderr, again.stderr
        server = shoal("drain", "ps:0", "--chief", job.cluster.chief)
        assert server.returncode == 78 and "shoal drain chief" in server.stderr
        wrong = shoal("drain", "wroker:1", "--chief", job.cluster.chief)
        assert wrong.returncode == 78 and "worker:1 or chief" in wrong.stderr
        neither = shoal("drain", "worker:1")
        assert neither.returncode == 64 and "--help" in neither.stderr

        # Its place may be taken again.
        replacement = job.start_worker(1)
        replacement.wait_for_output("working in timeline")
        job.check_end(job.workers[0], replacement)


def test_sigterm_drains_a_worker(tmp_path):
    with Job(tmp_path) as job:
        job.workers[0].signal(signal.SIGTERM)
        assert job.workers[0].wait() == 143
        job.chief.wait_for_output("worker 0 leaves")
        job.check_end(job.workers[1])


def test_sigterm_to_a_ps_loses_nothing(tmp_path):
    with Job(tmp_path) as job:
        job.server.signal(signal.SIGTERM)
        assert job.server.wait() == 143
        job.chief.wait_for_output("ps 0 may leave")
        job.server = job.cluster.start("ps", name="ps-again")
        job.check_end(*job.workers)
        steps = [step for _, step, _ in step_records(job.records)]
        assert len(steps) == len(set(steps)), "a step was done again"


def test_sigterm_to_all_at_once_loses_nothing(tmp_path):
    with Job(tmp_path) as job:
        for worker in job.workers:
            worker.wait_for_output("working in timeline")
        everybody = [job.chief, job.server, *job.workers]
        for process in everybody:
            process.signal(signal.SIGTERM)
        for process in everybody:
            assert process.wait() == 143, process.output()[-3000:]
        job.server = job.cluster.start("ps", name="ps-again")
        job.workers = [job.start_worker(i) for i in range(2)]
        job.chief = job.cluster.start_chief(job.job, job.run)
        job.check_end(*job.workers)
        steps = [step for _, step, _ in step_records(job.records)]
        assert len(steps) == len(set(steps)), "a step was done again"


def test_a_second_sigterm_ends_a_coordinator_whose_ps_does_not_answer(tmp_path):
    with Job(tmp_path) as job:
        job.server.signal(signal.SIGSTOP)
        job.chief.signal(signal.SIGTERM)
        job.chief.wait_for_output("stopping: ")
        # Too soon, it is the first one told twice.
        wait_for(lambda: "a second signal: " in job.chief.output() or job.chief.signal(signal.SIGTERM),
                 "the end without a checkpoint")
        assert job.chief.wait() == 143


def test_a_stop_that_is_told_twice_loses_nothing(tmp_path):
    with Job(tmp_path) as job:
        # As timeout(1) does; two that are equal, and pending, would come as one.
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
            job.chief.signal(number)
        assert job.chief.wait() == 143
        assert "checkpoint is written" in job.chief.output(), job.chief.output()


def test_a_hangup_ends_a_daemon_in_order_unless_it_is_ignored(tmp_path):
    with Job(tmp_path, workers=3) as job:
        late = job.cluster.start("worker", 2, ["--threads=1"], prefix=["sh", "-c", 'trap "" HUP; exec "$@"', "sh"])
        late.wait_for_output("working in timeline")
        late.signal(signal.SIGHUP)
        job.workers[0].signal(signal.SIGHUP)
        assert job.workers[0].wait() == 143, job.workers[0].output()[-3000:]
        assert "by a signal" in job.workers[0].output()
        assert late.popen.poll() is None, late.output()[-3000:]
        job.chief.signal(signal.SIGHUP)
        assert job.chief.wait() == 143, job.chief.output()[-3000:]
        assert "checkpoint is written" in job.chief.output(), job.chief.output()


def test_a_stop_gives_up_a_ps_that_does_not_answer_and_names_it(tmp_path):
    with Job(tmp_path) as job:
        job.server.signal(signal.SIGSTOP)
        job.chief.signal(signal.SIGTERM)
        assert job.chief.wait() == 143
        stopping, = (line for line in job.chief.output().splitlines() if "stopping: without a checkpoint" in line)
        assert "ps 0 " in stopping, stopping


def test_ctrl_c_ends_shoal_train_whose_ps_does_not_answer(tmp_path):
    job = write_job(tmp_path, EXAMPLES, BATCH_SIZE, epochs=EPOCHS)
    records = tmp_path / "records"
    records.mkdir()
    train = Process([BIN / "shoal", "train", job, "--run_dir", tmp_path / "run"], tmp_path / "train.log", {"SHOAL_STEP_RECORDS": str(records)})
    try:
        wait_for(lambda: finished_steps(records) > 200, "200 steps")
        server, = (pid for pid, task in children_of(train.popen.pid).items() if task == "ps 0")
        os.kill(server, signal.SIGSTOP)
        train.signal(signal.SIGINT)
        assert train.wait() == 143, train.output()[-3000:]
        assert "gave up waiting" in train.output() and "Stopped." in train.output()
    finally:
        train.kill()


def test_sigterm_ends_a_worker_whose_step_cannot_be_finished(tmp_path):
    with Job(tmp_path) as job:
        job.server.signal(signal.SIGSTOP)
        job.workers[0].signal(signal.SIGTERM)
        assert job.workers[0].wait() == 143
        job.server.signal(signal.SIGCONT)
        job.check_end(job.workers[1])


def test_a_drained_coordinator_stops_with_a_checkpoint(tmp_path):
    with Job(tmp_path) as job:
        drained = shoal("drain", "chief", "--run_dir", job.run)
        assert drained.returncode == 0, drained.stderr
        written = pathlib.Path(drained.stdout.split("the checkpoint is written: ")[1].strip())
        assert written.parent == job.run / "checkpoints" and (written / "manifest.json").exists()
        assert job.chief.wait() == 143
        job.chief = job.cluster.start_chief(job.job, job.run)
        job.check_end(*job.workers)


def test_a_drained_coordinator_says_why_there_is_no_checkpoint(tmp_path):
    with Job(tmp_path) as job:
        job.server.signal(signal.SIGSTOP)
        drained = shoal("drain", "chief", "--run_dir", job.run)
        assert drained.returncode == 138, drained.stdout
        assert "without a checkpoint" in drained.stderr and "ps 0 " in drained.stderr, drained.stderr
        assert job.chief.wait() == 143


def test_a_new_coordinator_stops_with_a_checkpoint_without_workers(tmp_path):
    with Job(tmp_path) as job:
        # Has the numbers that only workers know.
        assert shoal("checkpoint", "now", "--run_dir", job.run).returncode == 0
        # One worker leaves no step to another, that nobody would do.
        assert shoal("drain", "worker:1", "--run_dir", job.run).returncode == 0
        job.await_steps(50)
        job.chief.kill()
        job.workers[0].signal(signal.SIGTERM)
        assert [worker.wait() for worker in job.workers] == [143, 143]
        applied = 1 + max(step for _, step, _ in step_records(job.records))
        job.chief = job.cluster.start_chief(job.job, job.run)
        status = wait_for(lambda: (now := job.cluster.status()) and now["steps_done"] and now, "what is applied")
        assert status["steps_done"] == applied, status
        job.chief.signal(signal.SIGTERM)
        assert job.chief.wait() == 143
        assert "checkpoint is written" in job.chief.output(), job.chief.output()
        written, = (job.run / "checkpoints").glob(f"step-{applied:012}-*")
        shown = shoal("checkpoint", "show", written)
        total = EPOCHS * -(-EXAMPLES // BATCH_SIZE)
        assert f"{applied} of {total}" in shown.stdout, shown.stdout + shown.stderr
        job.server.kill()
        job.server = job.cluster.start("ps", name="ps-again")
        job.workers = [job.start_worker(0)]
        job.chief = job.cluster.start_chief(job.job, job.run)
        job.check_end(*job.workers)
        steps = [step for _, step, _ in step_records(job.records)]
        assert len(steps) == len(set(steps)), "a step was done again"


def test_a_worker_without_a_coordinator_gives_up_in_the_end(tmp_path):
    with Job(tmp_path) as job:
        job.workers[1].kill()
        patient = job.start_worker(1, "--coordinator_timeout=2")  # in its place
        patient.wait_for_output("taking part as worker 1")
        job.await_steps(200)
        job.chief.kill()
        assert patient.wait() == 138
        assert any(" lost " in line and str(job.cluster.chief) in line for line in patient.output().splitlines())
        assert f"no coordinator at {job.cluster.chief} for " in patient.output()
        assert job.workers[0].popen.poll() is None, "the patience of this one is 10 minutes"


def test_a_checkpoint_now_holds_all_that_is_done(tmp_path):
    # Kept until they are verified, however busy the machine is.
    with Job(tmp_path, checkpoint={"every_steps": 200, "keep": 1000}) as job:
        for _ in range(3):
            job.await_steps(50)
            before = job.cluster.status()
            written = shoal("checkpoint", "now", "--run_dir", job.run)
            assert written.returncode == 0, written.stderr
            directory = pathlib.Path(written.stdout.strip())
            assert directory.parent == job.run / "checkpoints"
            assert int(directory.name.split("-")[1]) >= before["steps_done"]
            verified = shoal("checkpoint", "verify", directory)
            assert verified.returncode == 0 and "manifest.json" in verified.stdout, verified.stdout
        job.check_end(*job.workers)
        late = shoal("checkpoint", "now", "--chief", job.cluster.chief)
        assert late.returncode == 138 and job.cluster.chief in late.stderr
        nowhere = shoal("checkpoint", "now", "--run_dir", tmp_path)
        assert nowhere.returncode == 78 and "no coordinator" in nowhere.stderr


def test_a_checkpoint_now_says_what_it_waits_for(tmp_path):
    with Job(tmp_path) as job:
        job.server.signal(signal.SIGSTOP)
        asked = Process([BIN / "shoal", "checkpoint", "now", "--run_dir", job.run], tmp_path / "asked")
        # An evaluation that the ps sleeps through comes first.
        wait_for(lambda: any(cause in asked.output() for cause in ("waiting for the cut at step", "waiting for the evaluation of epoch")),
                 "the cause")
        job.server.signal(signal.SIGCONT)
        assert asked.wait() == 0, asked.output()


def test_verify_is_right_while_a_job_writes_and_removes_checkpoints(tmp_path):
    with Job(tmp_path, checkpoint={"every_steps": 20, "keep": 1}) as job:
        wait_for(lambda: list((job.run / "checkpoints").glob("*/manifest.json")), "a checkpoint")
        for _ in range(40):
            found = shoal("checkpoint", "verify", job.run)
            assert found.returncode == 0, found.stdout + found.stderr


def test_shoal_train_does_not_start_a_drained_worker_again(tmp_path):
    job = write_job(tmp_path, EXAMPLES, BATCH_SIZE, epochs=EPOCHS)
    records, run = tmp_path / "records", tmp_path / "run"
    records.mkdir()
    train = Process([BIN / "shoal", "train", job, "--run_dir", run], tmp_path / "train.log", {"SHOAL_STEP_RECORDS": str(records)})
    try:
        wait_for((records / "steps-worker-1.csv").exists, "a step of worker 1")
        assert shoal("drain", "worker:1", "--run_dir", run).returncode == 0
        train.wait_for_output("worker 1 was drained")
        goal = finished_steps(records) + 300
        wait_for(lambda: finished_steps(records) > goal, "300 more steps")
        assert "worker 1" not in children_of(train.popen.pid).values()
        train.signal(signal.SIGINT)
        assert train.wait() == 143, train.output()[-3000:]
    finally:
        train.kill()


def test_a_waiting_task_says_for_whom_since_when_and_why(tmp_path):
    job = write_job(tmp_path)
    with Cluster(tmp_path / "logs", ps=2, workers=1) as cluster:
        # ps 0 and the worker know the coordinator, who misses ps 1.
        server, chief, worker = cluster.start("ps", 0), cluster.start_chief(job, tmp_path / "run"), cluster.start_worker(0)
        status = wait_for(lambda: (now := cluster.status()) and now["waiting"] and now, "a status that waits")
        assert any(f"ps 1 at {cluster.spec['ps'][1]}" in line for line in status["waiting"]), status
        chief.wait_for_output(f"waiting for ps 1 at {cluster.spec['ps'][1]}: not reachable for ")
        worker.wait_for_output(f"waiting for the coordinator at {cluster.chief} to open a timeline, for ")
        chief.kill()
        server.wait_for_output(f"waiting for the coordinator at {cluster.chief} for")
        worker.wait_for_output(f"waiting for the coordinator at {cluster.chief} for ")
        server.wait_for_output("the last one is silent")


def test_any_grpc_client_waits_for_its_answer(tmp_path):
    """A unary client says at once that it sends no more; the answer comes when the checkpoint is on disk, and the worker gone."""
    with Job(tmp_path) as job, open_channel(job.cluster.chief, "operator") as channel:
        def call(method, request):
            """The first field of the reply, a short text."""
            reply = channel.unary_unary(f"/shoal.proto.Cluster/{method}")(request, timeout=PATIENCE_SECONDS)
            assert reply and reply[0] == 0x0a, reply
            long = reply[1] >> 7  # a length of two bytes
            return reply[2 + long:2 + long + (reply[1] & 127 | reply[2] * long << 7)].decode()

        directory = call("Checkpoint", b"")
        assert (pathlib.Path(directory) / "manifest.json").exists(), directory
        assert job.workers[1].popen.poll() is None
        assert "worker 1" in call("Drain", b"\x0a\x06worker\x10\x01")
        job.chief.wait_for_output("worker 1 is gone")
        assert job.workers[1].wait() == 143
        job.check_end(job.workers[0], job.server)


def test_an_answer_that_cannot_be_written_is_a_failure(tmp_path):
    job, run = write_job(tmp_path, epochs=EPOCHS), tmp_path / "run"
    with Cluster(tmp_path, workers=1) as cluster:
        cluster.start("ps")
        cluster.start_chief(job, run)
        cluster.start_worker(0)
        wait_for(lambda: (cluster.status() or {}).get("steps_done", 0) > 0, "steps")
        assert [task["device"] for task in cluster.status()["tasks"] if task["type"] == "worker"] == ["cpu"]
        for command in ("status", "--watch"), ("status", "--json"), ("checkpoint", "now"), ("drain", "worker:0"):
            done = full_disk(tmp_path, *command, "--run_dir", run)
            assert done.wait() == 138, (command, done.output())
            assert "standard output" in done.output(), command
        assert full_disk(tmp_path, "checkpoint", "list", run).wait() == 138


def test_an_address_that_is_no_coordinators_is_said_to_be_none(tmp_path):
    with Cluster(tmp_path / "logs") as cluster:
        server = cluster.start("ps", 0, ["--http_port=0"])
        server.wait_for_output("serving /metrics")
        ps = cluster.spec["ps"][0]
        http = next(line for line in server.output().splitlines() if "serving /metrics" in line).split("address=")[1].split()[0]
        for command in (["status"], ["drain", "worker:0"], ["checkpoint", "now"]):
            rejected = shoal(*command, ps)
            # Under TLS, the handshake finds out, and another task may come to this address.
            code, words = (138, f"{ps}: ") if on() else (78, f"{ps} ")
            assert rejected.returncode == code and words in rejected.stderr, rejected.stderr
        silent = shoal("status", http)
        assert silent.returncode == 138 and "--http_port" in silent.stderr, silent.stderr

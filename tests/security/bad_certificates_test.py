"""Certificates that break a rule, or that belong to somebody else: refused, and the job goes on as if nobody had asked."""
import json
import shutil
import signal

import grpc
import pytest

from certificates import Authority, identity
from messages import VERSION, coordinator, parameter_server
from real_cluster import finished_steps, shoal, step_records, wait_for, write_job
from secure_cluster import SecureCluster
from tls_client import call

EPOCHS, STEPS_PER_EPOCH = 200, 25  # long enough that a busy test stops it in time
TRAINING = {"training": {"images": "train-images.idx", "labels": "train-labels.idx"}}
WORK, EXCHANGE = "shoal.proto.Coordinator/Work", "shoal.proto.ParameterServer/Exchange"
DENIED, UNKNOWN, HANDSHAKE = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.UNAVAILABLE)


class HeldJob:
    """A job in the middle of its work, whose workers stand still until it goes on to its end."""

    def __init__(self, directory, ps=1, **fields):
        self.authority = Authority(directory / "tls")
        self.records, self.run = directory / "records", directory / "run"
        self.records.mkdir()
        self.job = write_job(directory / "job", **{"epochs": EPOCHS, "data": TRAINING, **fields})
        self.cluster = SecureCluster(directory / "logs", self.authority, ps)

    def __enter__(self):
        self.ps = [self.cluster.start("ps", index) for index in range(len(self.cluster.spec["ps"]))]
        self.chief = self.cluster.start_chief(self.job, self.run)
        self.workers = [self.start_worker(index) for index in range(2)]
        for worker in self.workers:
            worker.wait_for_output("working in timeline")
        wait_for(lambda: finished_steps(self.records) > 0, "a step")
        for worker in self.workers:
            worker.signal(signal.SIGSTOP)
        assert self.chief.popen.poll() is None, "the job has ended too soon"
        self.before = self.figures()
        return self

    def __exit__(self, *arguments):
        self.cluster.__exit__(*arguments)

    def start_worker(self, index, *arguments, **options):
        return self.cluster.start_worker(index, f"--step_records={self.records}", *arguments, **options)

    def figures(self):
        """What a stranger could have changed."""
        status = self.cluster.status()
        tasks = sorted((task["type"], task["index"], task["address"]) for task in status["tasks"])
        return status["term"], status["timeline"], tasks

    def go_on(self):
        for worker in self.workers:
            worker.signal(signal.SIGCONT)

    def check_end(self):
        """Nothing has changed, and the job ends with every step done once."""
        assert self.figures() == self.before
        self.go_on()
        for process in (self.chief, *self.ps, *self.workers):
            assert process.wait() == 0, process.output()[-3000:]
        steps = sorted(step for _, step, _ in step_records(self.records))
        assert steps == list(range(EPOCHS * STEPS_PER_EPOCH))


def test_clients_with_bad_certificates_are_refused(tmp_path):
    with HeldJob(tmp_path) as job:
        forge, me = job.authority.forge, identity("worker/1")
        stranger = Authority(tmp_path / "stranger").issue("worker/1")
        shutil.copy(job.authority.ca / "ca.crt", stranger / "ca.crt")  # it trusts, but nobody trusts it
        certificates = {
            # {name: (TLS directory, code, words)}
            "expired": (forge("expired", [me], begin=-3, end=-1), HANDSHAKE, []),
            "not yet valid": (forge("early", [me], begin=1, end=3), HANDSHAKE, []),
            "other CA": (stranger, HANDSHAKE, []),
            "other job": (forge("job", [identity("worker/1", job="large")]), DENIED,
                          [identity("worker/1", job="large"), '"large"', '"small"']),
            "other trust domain": (forge("domain", [identity("worker/1", trust_domain="lab")]), DENIED,
                                   [identity("worker/1", trust_domain="lab"), '"lab"', '"shoal"']),
            "two URIs": (forge("two", [me, identity("worker/0")]), UNKNOWN, ["2 URIs"]),
            "the same URI twice": (forge("twice", [me, me]), UNKNOWN, ["2 URIs"]),
            "no URI": (forge("none", []), UNKNOWN, ["0 URIs"]),
            "a URI of others": (forge("https", ["https://shoal/job/small/worker/1"]), UNKNOWN, ["https://shoal/job/small/worker/1"]),
            "a role that is not there": (forge("chief", [identity("chief")]), UNKNOWN, ["chief"]),
        }
        for name, (directory, code, words) in certificates.items():
            for daemon, address, method in ((job.chief, job.cluster.chief, WORK), (job.ps[0], job.cluster.spec["ps"][0], EXCHANGE)):
                handshakes = daemon.output().count("Handshake failed")
                told = call(address, method, directory)
                assert told[0] == code, (name, told)
                assert all(word in told[1] for word in words), (name, told)
                # An operator sees it, too: the same reason once a minute.
                if code == HANDSHAKE:
                    wait_for(lambda: daemon.output().count("Handshake failed") > handshakes, name)
                else:
                    wait_for(lambda: "rejected" in daemon.output() and all(word in daemon.output() for word in words), name)
        job.check_end()


def test_a_revoked_certificate_is_refused_by_identity_or_serial(tmp_path):
    with HeldJob(tmp_path) as job:
        by_identity, by_serial = job.authority.issue("worker/7"), job.authority.issue("worker/8")
        serial = json.loads(shoal("cert", "show", "--json", by_serial / "tls.crt").stdout)[0]["serial"]
        daemons = {"coordinator": (job.cluster.chief, WORK), "ps/0": (job.cluster.spec["ps"][0], EXCHANGE)}
        for address, method in daemons.values():
            for directory in (by_identity, by_serial):
                assert call(address, method, directory)[0] not in (DENIED, UNKNOWN, HANDSHAKE)
        for role, (address, method) in daemons.items():
            # As an editor writes it: a new file in the place of none.
            new = job.cluster.tls[role] / "revoked.new"
            new.write_text(f"# both lost\n{identity('worker/7')}\n{serial}\n")
            new.rename(new.with_name("revoked"))
            for directory, words in ((by_identity, [identity("worker/7"), "identity"]), (by_serial, [identity("worker/8"), serial])):
                _, told = wait_for(lambda: (end := call(address, method, directory))[0] == DENIED and end, f"{role} has read the file")
                assert "revoked" in told and all(word in told for word in words), told
        job.check_end()


def test_a_revoked_worker_is_thrown_out_and_the_others_do_its_steps(tmp_path):
    with HeldJob(tmp_path) as job:
        lost = job.cluster.tls["worker/1"]
        for role, address, method in (("coordinator", job.cluster.chief, WORK), ("ps/0", job.cluster.spec["ps"][0], EXCHANGE)):
            (job.cluster.tls[role] / "revoked").write_text(f"{identity('worker/1')}\n")
            wait_for(lambda: call(address, method, lost)[0] == DENIED, f"{role} has read the file")
        thrown = job.workers.pop()
        job.go_on()
        thrown.signal(signal.SIGCONT)
        job.chief.wait_for_output("is revoked")
        thrown.wait_for_output("revoked")
        assert job.chief.wait() == 0, job.chief.output()[-3000:]
        assert [process.wait() for process in (*job.ps, *job.workers)] == [0, 0]


def hello_as_worker(index):
    """The first messages of a worker, by method, each of which claims this index."""
    work = coordinator.WorkerReport(hello=coordinator.WorkerHello(version=VERSION, index=index, host="h", pid=1, device="cpu", threads=1,
                                                                  incarnation=1))
    exchange = parameter_server.ExchangeRequest(hello=parameter_server.ExchangeHello(version=VERSION, worker=index))
    return {WORK: work.SerializeToString(), EXCHANGE: exchange.SerializeToString()}


def test_a_worker_does_not_take_the_index_of_another(tmp_path):
    with HeldJob(tmp_path) as job:
        hello = hello_as_worker(0)
        for address, method in ((job.cluster.chief, WORK), (job.cluster.spec["ps"][0], EXCHANGE)):
            code, words = call(address, method, job.cluster.tls["worker/1"], messages=[hello[method]])
            assert code in (DENIED, grpc.StatusCode.OK), words
            if code == DENIED:
                assert identity("worker/1") in words and "worker 0" in words, words
        thief = job.start_worker(0, tls=job.cluster.tls["worker/1"], name="thief")
        assert thief.wait() == 78, thief.output()[-3000:]
        assert identity("worker/1") in thief.output() and "worker 0" in thief.output(), thief.output()[-3000:]
        assert job.chief.output().count(f"{identity('worker/1')}) may not be worker 0") == 2, job.chief.output()[-3000:]
        assert f"{identity('worker/1')}) may not be worker 0" in job.ps[0].output(), job.ps[0].output()[-3000:]
        job.check_end()


def test_a_ps_does_not_take_the_address_of_another(tmp_path):
    with HeldJob(tmp_path, ps=2, checkpoint={"every_steps": 100}) as job:
        job.ps[0].kill()
        impostor = job.cluster.start("ps", 0, tls=job.cluster.tls["ps/1"], name="impostor")
        impostor.wait_for_output("listening")
        job.go_on()
        for process in (job.chief, *job.workers):
            process.wait_for_output(f"the server at this address is ps/1 ({identity('ps/1')})")
        assert "claimed term=" not in impostor.output(), impostor.output()
        impostor.kill()
        job.ps[0] = job.cluster.start("ps", 0, name="ps-again")
        for process in (job.chief, *job.ps, *job.workers):
            assert process.wait() == 0, process.output()[-3000:]


def test_a_worker_does_not_serve_a_ps_that_says_it_is_the_coordinator(tmp_path):
    with HeldJob(tmp_path) as job:
        address, elastic = job.cluster.spec["ps"][0], job.authority.issue("worker")
        misled = job.start_worker(0, f"--chief={address}", "--coordinator_timeout=1", spec=False, tls=elastic, name="misled")
        assert misled.wait() == 138, misled.output()[-3000:]
        assert address in misled.output() and f"ps/0 ({identity('ps/0')})" in misled.output(), misled.output()[-3000:]
        job.check_end()


@pytest.mark.parametrize("task", [("ps", 0), ("chief", 0), ("worker", 0)], ids=lambda task: task[0])
def test_a_daemon_with_a_bad_certificate_does_not_start(tmp_path, task):
    authority = Authority(tmp_path / "tls")
    role = {"chief": "coordinator"}.get(task[0], f"{task[0]}/0")
    job = write_job(tmp_path / "job")
    with SecureCluster(tmp_path / "logs", authority) as cluster:
        other = cluster.tls["viewer"]

        def check(directory, *words):
            arguments = [f"--job={job}", f"--run_dir={tmp_path / 'run'}"] if task[0] == "chief" else []
            process = cluster.start(*task, arguments, tls=directory, name=directory.name)
            assert process.wait() == 78, process.output()
            for word in words:
                assert str(word) in process.output(), process.output()
            assert not (tmp_path / "run").exists()
            checked = shoal("cert", "check", directory)
            assert checked.returncode == (0 if directory == other else 78), checked.stdout + checked.stderr

        mismatch = authority.issue(role, "mismatch")
        shutil.copy(other / "tls.key", mismatch / "tls.key")
        check(mismatch, mismatch / "tls.key")
        for name, uris, begin, end in (("expired", [identity(role)], -3, -1), ("early", [identity(role)], 1, 3),
                                       ("two", [identity(role), identity("viewer")], -1, 1), ("none", [], -1, 1)):
            directory = authority.forge(name, uris, begin, end)
            check(directory, directory / "tls.crt")
        revoked = authority.issue(role, "revoked")
        (revoked / "revoked").write_text(identity(role) + "\n")
        check(revoked, revoked / "tls.crt", identity(role))
        misspelt = authority.issue(role, "misspelt")
        (misspelt / "revoked").write_text("worker/1\n")
        check(misspelt, f"{misspelt / 'revoked'}:1")
        stranger = Authority(tmp_path / "stranger").issue(role, "other-ca")
        shutil.copy(other / "ca.crt", stranger / "ca.crt")
        check(stranger, stranger / "ca.crt")
        check(other, other / "tls.crt", identity("viewer"))

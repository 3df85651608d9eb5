"""Certificates that break a rule, or that belong to somebody else: refused, and the job goes on as if nobody had asked."""
import json
import shutil
import signal
import socket
import ssl
import time

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
        self.ps = [self.cluster.start("ps", index, ["--http_port=0"]) for index in range(len(self.cluster.spec["ps"]))]
        self.chief = self.cluster.start("chief", 0, [f"--job={self.job}", f"--run_dir={self.run}", "--http_port=0"])
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

    def daemons(self):
        """[(process, address, method that a worker may use)] of the coordinator and ps 0."""
        return [(self.chief, self.cluster.chief, WORK), (self.ps[0], self.cluster.spec["ps"][0], EXCHANGE)]

    def await_rejected(self, process, before, handshakes=0, streams=0):
        """Waits until the daemon has rejected so many more. Figures may be those of some moments ago."""
        def counted():
            now = self.cluster.rejected(process)
            return now[0] >= before[0] + handshakes and now[1] >= before[1] + streams
        wait_for(counted, f"{handshakes} handshakes and {streams} streams are counted, besides {before}")

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


def serial_of(directory):
    return json.loads(shoal("cert", "show", "--json", directory / "tls.crt").stdout)[0]["serial"]


def test_clients_with_bad_certificates_are_refused(tmp_path):
    with HeldJob(tmp_path) as job:
        forge, me = job.authority.forge, identity("worker/1")
        foreign = Authority(tmp_path / "stranger")
        stranger, old = foreign.issue("worker/1"), foreign.forge("old", [me], begin=-3, end=-1)
        certificates = {
            # {name: (TLS directory, code, words)}
            "expired": (forge("expired", [me], begin=-3, end=-1), UNKNOWN, [me, "has expired on"]),
            "not yet valid": (forge("early", [me], begin=1, end=3), UNKNOWN, [me, "is not valid before"]),
            "other CA": (stranger, HANDSHAKE, [me, serial_of(stranger)]),
            "other CA, expired": (old, HANDSHAKE, [me, serial_of(old)]),
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
            shutil.copy(job.authority.ca / "ca.crt", directory / "ca.crt")  # it trusts, be it that nobody trusts it
            for daemon, address, method in job.daemons():
                before = job.cluster.rejected(daemon)
                told = call(address, method, directory)
                assert told[0] == code, (name, told)
                # An operator sees it, too.
                wait_for(lambda: any(all(word in line for word in ["rejected", *words]) for line in daemon.output().splitlines()), name)
                if code == HANDSHAKE:
                    job.await_rejected(daemon, before, handshakes=1)
                else:
                    assert all(word in told[1] for word in words), (name, told)
                    job.await_rejected(daemon, before, streams=1)
        job.check_end()


def test_a_client_of_an_unknown_ca_says_what_the_server_has_seen(tmp_path):
    with HeldJob(tmp_path) as job:
        foreign = Authority(tmp_path / "foreign")
        operator, worker = foreign.issue("operator"), foreign.issue("worker/0")
        for directory in (operator, worker):  # they trust both
            with open(directory / "ca.crt", "ab") as trusted:
                trusted.write((job.authority.ca / "ca.crt").read_bytes())
        asked = shoal("status", job.cluster.chief, "--tls_dir", operator)
        assert asked.returncode == 138, (asked.returncode, asked.stderr)
        for word in (job.cluster.chief, identity("coordinator"), identity("operator"), serial_of(operator)):
            assert word in asked.stderr, (word, asked.stderr)
        stranger = shoal("status", job.cluster.chief, "--tls_dir", foreign.issue("operator", "stranger"))
        assert stranger.returncode == 138, (stranger.returncode, stranger.stderr)
        assert len(stranger.stderr.splitlines()) == 1 and job.cluster.chief in stranger.stderr, stranger.stderr
        lost = job.start_worker(0, "--coordinator_timeout=1", tls=worker, name="lost")
        assert lost.wait() == 138, lost.output()[-3000:]
        for word in (job.cluster.chief, identity("coordinator"), identity("worker/0"), serial_of(worker)):
            assert word in lost.output(), (word, lost.output()[-3000:])
        job.check_end()


def test_an_expired_operator_does_not_even_connect(tmp_path):
    with HeldJob(tmp_path) as job:
        for name, begin, end in (("expired", -3, -1), ("early", 1, 3)):
            directory = job.authority.forge(name, [identity("operator")], begin, end)
            for command in (["status"], ["drain", "worker:0"]):
                asked = shoal(*command, job.cluster.chief, "--tls_dir", directory)
                assert asked.returncode == 78, (name, asked.returncode, asked.stderr)
                assert str(directory / "tls.crt") in asked.stderr and identity("operator") in asked.stderr, asked.stderr
        job.check_end()


def test_other_failed_handshakes_are_logged_in_words_and_counted(tmp_path):
    with HeldJob(tmp_path) as job:
        trusted = job.cluster.tls["operator"]
        anonymous = grpc.ssl_channel_credentials((trusted / "ca.crt").read_bytes())

        def speak_tls_1_2(address):
            context = ssl.create_default_context(cafile=trusted / "ca.crt")
            context.load_cert_chain(trusted / "tls.crt", trusted / "tls.key")
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            host, port = address.split(":")
            with pytest.raises((ssl.SSLError, ConnectionError)), socket.create_connection((host, int(port))) as plain:
                context.wrap_socket(plain, server_hostname="localhost")

        for daemon, address, method in job.daemons():
            for words, meet in (("shows no certificate", lambda: call(address, method, credentials=anonymous)),
                                ("does not use TLS", lambda: call(address, method)),
                                ("does not speak TLS 1.3", lambda: speak_tls_1_2(address))):
                before = job.cluster.rejected(daemon)
                meet()
                daemon.wait_for_output(words)
                job.await_rejected(daemon, before, handshakes=1)
            # Again and again, and once in the log.
            lines = daemon.output().count("shows no certificate")
            begin = time.monotonic()
            for _ in range(10):
                call(address, method, credentials=anonymous)
            assert daemon.output().count("shows no certificate") <= lines + 1 + (time.monotonic() - begin) // 60
        job.check_end()


def test_a_revoked_certificate_is_refused_by_identity_or_serial(tmp_path):
    with HeldJob(tmp_path) as job:
        by_identity, by_serial = job.authority.issue("worker/7"), job.authority.issue("worker/8")
        serial, begin = serial_of(by_serial), time.monotonic()
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
        # They try again and again, and the log has each once a minute.
        for daemon, address, method in job.daemons():
            before = job.cluster.rejected(daemon)
            for _ in range(10):
                assert call(address, method, by_identity)[0] == DENIED
            job.await_rejected(daemon, before, streams=10)
            lines = sum("rejected" in line and identity("worker/7") in line for line in daemon.output().splitlines())
            assert 1 <= lines <= 1 + (time.monotonic() - begin) // 60, daemon.output()[-3000:]
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
        before = [job.cluster.rejected(daemon) for daemon, _, _ in job.daemons()]
        for _, address, method in job.daemons():
            code, words = call(address, method, job.cluster.tls["worker/1"], messages=[hello[method]])
            assert code in (DENIED, grpc.StatusCode.OK), words
            if code == DENIED:
                assert identity("worker/1") in words and "worker 0" in words, words
        thief = job.start_worker(0, tls=job.cluster.tls["worker/1"], name="thief")
        assert thief.wait() == 78, thief.output()[-3000:]
        assert identity("worker/1") in thief.output() and "worker 0" in thief.output(), thief.output()[-3000:]
        for (daemon, _, _), was, streams in zip(job.daemons(), before, (2, 1), strict=True):
            assert f"{identity('worker/1')}) may not be worker 0" in daemon.output(), daemon.output()[-3000:]
            job.await_rejected(daemon, was, streams=streams)
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

"""Certificates that are replaced while a job trains."""
import os
import re
import socket
import ssl
import time

import grpc

from certificates import Authority, identity
from endless_job import EPOCHS, Ending
from real_cluster import finished_steps, step_records, wait_for, write_job
from secure_cluster import SecureCluster
from tls_client import call

EXAMPLES, BATCH_SIZE = 8007, 16
SECOND = 1 / 86400  # in days
STATUS = "shoal.proto.Cluster/Status"


class RotatedJob:
    """An endless job whose daemons read their certificates through links, as docs/security.md says, and serve HTTP, where one sees
    which certificates they use."""

    PS, WORKERS = 2, 2

    def __init__(self, directory, authority, issue):
        """`issue(role, name)` makes the first TLS directories."""
        self.records, self.run = directory / "records", directory / "run"
        self.records.mkdir()
        self.job = write_job(directory / "job", EXAMPLES, BATCH_SIZE, epochs=EPOCHS)
        self.ending = Ending(self.job, self.run, self.records, ps=self.PS)
        self.cluster = SecureCluster(directory / "logs", authority, ps=self.PS, workers=self.WORKERS)
        self.generation = 0
        for role, link in self.cluster.tls.items():
            link.rename(link.with_name(f"{link.name}.unused"))
            self.lead(role, issue(role, f"{link.name}.0"))

    def __enter__(self):
        self.daemons = {f"ps/{index}": self.start("ps", index) for index in range(self.PS)}
        self.daemons["coordinator"] = self.start("chief", 0, f"--job={self.job}", f"--run_dir={self.run}")
        for index in range(self.WORKERS):
            self.daemons[f"worker/{index}"] = self.start("worker", index, "--threads=1", f"--step_records={self.records}")
        self.await_steps(100)
        return self

    def __exit__(self, *arguments):
        self.cluster.__exit__(*arguments)

    def start(self, task_type, index, *arguments, name=None):
        return self.cluster.start(task_type, index, ["--http_port=0", *arguments], name=name)

    def await_steps(self, count):
        goal = finished_steps(self.records) + count
        wait_for(lambda: finished_steps(self.records) >= goal, f"{count} more steps")

    def lead(self, role, directory):
        link = self.cluster.tls[role]
        new = link.with_name(f"{link.name}.new")
        new.symlink_to(directory.name)
        os.replace(new, link)

    def replace_all(self, issue):
        self.generation += 1
        for role, link in self.cluster.tls.items():
            self.lead(role, issue(role, f"{link.name}.{self.generation}"))

    def uses_newest(self):
        """Whether every daemon uses the certificate that it was given last."""
        return all(shown_by(process) == ssl.PEM_cert_to_DER_cert((self.cluster.tls[role] / "tls.crt").read_text())
                   for role, process in self.daemons.items())

    def go_on_with(self, issue):
        """The job goes on when every daemon uses its new certificate."""
        self.replace_all(issue)
        wait_for(self.uses_newest, "all use their new certificates")
        self.await_steps(50)

    def clients(self):
        """The daemons that open streams, each with the servers to which it has one."""
        ps = [f"ps {index}" for index in range(self.PS)]
        return {"coordinator": ps, **{f"worker/{index}": ["the coordinator", *ps] for index in range(self.WORKERS)}}

    def reopened(self, client, server):
        """How often a client has opened its stream to this server anew, because of new certificates."""
        return len(re.findall(rf"opening the stream to {server} at \S+ anew", self.daemons[client].own_output()))

    def check_no_stream_was_lost(self):
        """Every stream was reopened where nothing was under way: no step was done again."""
        for client, servers in self.clients().items():
            for server in servers:
                assert self.reopened(client, server) > 0, (client, server)
            output = self.daemons[client].own_output()
            assert not re.search(r"lost (the stream|the coordinator|ps)|has expired", output), output[-3000:]
        assert " is gone (" not in self.daemons["coordinator"].own_output()
        steps = [step for _, step, _ in step_records(self.records)]
        assert len(steps) == len(set(steps)), "a step was done again"
        assert self.cluster.status()["steps_leased_again"] == 0

    def check_end(self):
        """No step is lost, and none applied twice."""
        for process in self.daemons.values():
            assert process.popen.poll() is None, process.output()[-3000:]
        self.ending.stop(self.daemons["coordinator"], [self.daemons[f"worker/{index}"] for index in range(self.WORKERS)])
        self.ending.finish()
        self.ending.check_updates()
        self.ending.check_lineage(self.daemons["coordinator"].output(), EXAMPLES, killed_workers=0)


def shown_by(process):
    """The certificate, as DER, that the HTTP port of a daemon shows."""
    process.wait_for_output("serving /metrics")
    port = re.findall(r"serving /metrics.* address=\S+:(\d+)", process.own_output())[-1]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", int(port))) as plain, context.wrap_socket(plain) as secure:
        return secure.getpeercert(binary_form=True)


def test_no_step_is_done_again_while_certificates_are_replaced(tmp_path):
    """Each is valid for some seconds: who went on with one, on an old stream too, would be alone soon."""
    authority = Authority(tmp_path / "tls")
    valid_seconds = 30

    def issue(role, name):
        return authority.forge(name, [identity(role)], end=valid_seconds * SECOND)

    with RotatedJob(tmp_path, authority, issue) as job:
        begin = time.monotonic()
        while job.generation < 5 or time.monotonic() < begin + 1.5 * valid_seconds:
            job.go_on_with(issue)
        job.go_on_with(authority.issue)
        job.check_no_stream_was_lost()
        job.check_end()


def test_a_worker_whose_certificate_has_expired_goes_on_with_the_next(tmp_path):
    authority = Authority(tmp_path / "tls")
    with RotatedJob(tmp_path, authority, authority.issue) as job:
        worker, coordinator = job.daemons["worker/0"], job.daemons["coordinator"]
        job.lead("worker/0", authority.forge("short", [identity("worker/0")], end=8 * SECOND))
        wait_for(lambda: "has expired" in coordinator.output(), "the coordinator ends the stream")
        job.await_steps(50)  # of the other worker
        assert worker.popen.poll() is None
        back = coordinator.output().count("worker 0 is ready")
        job.lead("worker/0", authority.issue("worker/0", "renewed"))
        wait_for(lambda: coordinator.output().count("worker 0 is ready") > back, "the worker comes back")
        job.await_steps(50)
        job.check_end()


def test_no_step_is_done_again_while_the_ca_is_replaced(tmp_path):
    old, new = Authority(tmp_path / "tls"), Authority(tmp_path / "tls", "new-ca")
    both = (old.ca / "ca.crt").read_text() + (new.ca / "ca.crt").read_text()

    def issued_by(authority, trusted):
        def issue(role, name):
            directory = authority.issue(role, name)
            (directory / "ca.crt").write_text(trusted)
            return directory
        return issue

    with RotatedJob(tmp_path, old, issued_by(old, (old.ca / "ca.crt").read_text())) as job:
        former = old.issue("operator", "former")
        (former / "ca.crt").write_text(both)
        job.go_on_with(issued_by(old, both))
        job.go_on_with(issued_by(new, both))
        assert call(job.cluster.chief, STATUS, former)[0] == grpc.StatusCode.OK
        job.go_on_with(issued_by(new, (new.ca / "ca.crt").read_text()))
        wait_for(lambda: call(job.cluster.chief, STATUS, former)[0] == grpc.StatusCode.UNAVAILABLE, "the old CA is trusted no more")
        assert job.cluster.status()["phase"] == "training"
        job.check_no_stream_was_lost()
        job.check_end()

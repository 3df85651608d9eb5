"""Machines far from one another: network namespaces on a star of slow links (star_main.cc)."""
import dataclasses
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster/fixtures"))
from namespaces import delete_namespaces, ip  # noqa: E402
from real_cluster import BIN, PATIENCE_SECONDS, Cluster, Process  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Link:
    """How a host is joined to the others. Two hosts of one kind are `delay_ms` apart, there and back."""
    mbit: float
    delay_ms: float
    jitter_ms: float = 0
    loss_percent: float = 0


LAN = Link(1000, 0.3)
WIFI = Link(200, 4)
VPN = Link(20, 40)
MOBILE = Link(5, 80, loss_percent=1)


class Star:
    """A namespace a link, names[i] with addresses[i]; counts(i), once it has ended, is what went over link i."""

    def __init__(self, links, directory):
        self.links = list(links)
        self.log = pathlib.Path(directory) / "links.log"
        self.names = [f"shoal-{os.getpid()}-link-{i}" for i in range(len(self.links))]
        self.addresses = [f"10.88.0.{i + 1}" for i in range(len(self.links))]
        self.carrier = None

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        hosts = []
        for name, address, link in zip(self.names, self.addresses, self.links):
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            hosts.append(",".join(map(str, (name, address, *dataclasses.astuple(link)))))
        self.carrier = Process([BIN / "shoal-test-links", *hosts], self.log)
        self.carrier.wait_for_output("ready")
        for name, address in zip(self.names, self.addresses):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "link0")
            ip("-n", name, "link", "set", "link0", "up")

    def end(self):
        """Nothing more is carried."""
        self.carrier.signal(15)
        assert self.carrier.wait() == 0, self.carrier.output()

    def counts(self, host):
        """{"up": {"bytes": ..., "packets": ..., "lost": ..., "dropped": ...}, "down": ...}"""
        words = next(line for line in self.carrier.own_output().splitlines() if line.startswith(self.names[host] + " ")).split()[1:]
        return {direction: dict(zip(rest[::2], map(int, rest[1::2])))
                for direction, *rest in (words[:9], words[9:])}

    def prefix(self, host):
        """What comes before a command that is to run there."""
        return ["ip", "netns", "exec", self.names[host]]

    def __exit__(self, *_):
        if self.carrier is not None:
            self.carrier.kill()
        delete_namespaces(self.names)


class StarCluster(Cluster):
    """The daemons of one cluster spec on the hosts of a star: by kind of task, the host of each."""

    def __init__(self, star, directory, **hosts):
        spec = {kind: [f"{star.addresses[host]}:{4100 + i}" for host in of] for i, (kind, of) in enumerate(hosts.items())}
        super().__init__(directory, spec=spec)
        self.star, self.hosts = star, hosts
        self.prefixes = {}  # by (kind, index) of a task: what else comes before its command

    def start(self, task_type, index=0, arguments=(), **more):
        # The links are a test's own, and no test of them is about TLS.
        return super().start(task_type, index, arguments, **{"SHOAL_INSECURE": "1", **more},
                             prefix=[*self.prefixes.get((task_type, index), []), *self.star.prefix(self.hosts[task_type][index])])

    def train(self, job, run, seconds=PATIENCE_SECONDS):
        """Starts all of them, workers and evaluators with one thread; returns when the job is done."""
        flags = {"chief": [f"--job={job}", f"--run_dir={run}"], "worker": ["--threads=1"], "evaluator": ["--threads=1"]}
        for kind, of in self.hosts.items():
            for index in range(len(of)):
                self.start(kind, index, flags.get(kind, []))
        for process in self.processes:
            assert process.wait(seconds) == 0, process.output()[-3000:]

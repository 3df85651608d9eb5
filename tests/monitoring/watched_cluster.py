"""A cluster of real daemons with their HTTP ports."""
import re
import urllib.error
import urllib.request

from real_cluster import SOURCE, Cluster, wait_for, write_job

# One pass through little data, for so long that no test sees its end.
ENDLESS = {"epochs": 100000, "checkpoint": {"every_seconds": 1}}


def get(url, seconds=30, **headers):
    """(status, body) of a page."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=seconds) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def parse(text):
    """{(name, ((label, value), ...)): number} of Prometheus's text format."""
    samples = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, labels, value = re.fullmatch(r"([a-zA-Z_:0-9]+)(?:\{(.*)\})? (\S+)", line).groups()
        pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")
        samples[name, tuple(sorted(pairs))] = float(value)
    return samples


def catalog():
    """{name: (daemon, kind)} of docs/metrics.md."""
    metrics, daemon = {}, None
    for line in (SOURCE / "docs/metrics.md").read_text().splitlines():
        if line.startswith("## "):
            daemon = {"Every daemon": "every", "The coordinator": "coordinator", "A ps": "ps", "A worker": "worker"}[line[3:]]
        elif row := re.match(r"\| `(\w+)` \| (\w+) \|", line):
            metrics[row[1]] = (daemon, row[2])
    return metrics


class WatchedCluster(Cluster):
    """A coordinator, ps and workers that each serve /metrics at a free port."""

    def __init__(self, directory, ps=2, workers=2, **job):
        super().__init__(directory / "logs", ps, workers)
        self.job = write_job(directory / "job", **{**ENDLESS, **job})
        self.run_dir = directory / "run"
        self.watched = {}  # name: process

    def start_watched(self, task_type, index=0, arguments=(), **environment):
        name = f"{task_type}-{index}"
        if task_type == "chief":
            arguments = [f"--job={self.job}", f"--run_dir={self.run_dir}", *arguments]
        if task_type == "worker":
            arguments = ["--threads=1", *arguments]
        port = self.port(name) if name in self.watched else 0  # a task comes back at its port
        self.watched[name] = self.start(task_type, index, [f"--http_port={port}", *arguments], **environment)
        return self.watched[name]

    def start_all(self):
        for i in range(len(self.spec["ps"])):
            self.start_watched("ps", i)
        self.start_watched("chief")
        for i in range(len(self.spec["worker"])):
            self.start_watched("worker", i)
        for name in self.watched:
            self.port(name)
        return self

    def port(self, name):
        process = self.watched[name]
        process.wait_for_output("serving /metrics")
        return int(re.findall(r"serving /metrics.* address=\S+:(\d+)", process.output())[-1])

    def targets(self):
        """For Prometheus, by role."""
        return {role: [f"127.0.0.1:{self.port(name)}" for name in self.watched if name.startswith(prefix)]
                for role, prefix in (("coordinator", "chief"), ("ps", "ps"), ("worker", "worker"))}

    def page(self, name, path):
        return get(f"http://127.0.0.1:{self.port(name)}{path}")

    def text(self, name):
        status, text = self.page(name, "/metrics")
        assert status == 200
        return text

    def value(self, name, metric, **labels):
        """None when there is no such sample."""
        return parse(self.text(name)).get((metric, tuple(sorted(labels.items()))))

    def await_value(self, name, metric, predicate, **labels):
        def seen():
            value = self.value(name, metric, **labels)
            return value is not None and predicate(value)
        wait_for(seen, f"{metric} of {name}")

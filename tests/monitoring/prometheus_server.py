"""The real Prometheus on the real files of deploy/, with its clock sped up."""
import json
import pathlib
import re
import shutil
import urllib.parse

from real_cluster import SOURCE, Process, free_ports, wait_for
from watched_cluster import get

DEPLOY = SOURCE / "deploy/prometheus"

WINDOW = "6s"  # of rates

# What takes minutes in production takes seconds here; everything else in the files stays as it is.
SPED_UP = [
    (r"(scrape_interval|evaluation_interval): 15s", r"\1: 1s"),
    (r"\[(1m|5m)\]", f"[{WINDOW}]"),
    (r"for: (1m|5m)", "for: 2s"),
    (r"(silence_seconds) > 60", r"\1 > 4"),
    (r"(interval_seconds) \+ 60", r"\1 + 4"),
]


def available():
    return shutil.which("prometheus") and shutil.which("promtool")


class Prometheus:
    def __init__(self, directory, targets):
        """`targets`: {"ps": ["127.0.0.1:port", ...], ...} by role."""
        self.directory = pathlib.Path(directory)
        self.directory.mkdir()
        for name in ("prometheus.yml", "recording.yml", "alerts.yml"):
            text = (DEPLOY / name).read_text()
            for pattern, replacement in SPED_UP:
                text = re.sub(pattern, replacement, text)
            (self.directory / name).write_text(text)
        groups = [{"targets": addresses, "labels": {"cluster": "test", "role": role}} for role, addresses in targets.items()]
        (self.directory / "targets.yml").write_text(json.dumps(groups))  # YAML, too
        self.address = f"127.0.0.1:{free_ports(1)[0]}"

    def __enter__(self):
        self.process = Process(["prometheus", f"--config.file={self.directory}/prometheus.yml", f"--web.listen-address={self.address}",
                                f"--storage.tsdb.path={self.directory}/data"], self.directory / "prometheus.log")
        self.process.wait_for_output("Server is ready to receive web requests")
        return self

    def __exit__(self, *_):
        self.process.kill()

    def ask(self, path, **parameters):
        status, text = get(f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        answer = json.loads(text)
        assert status == 200 and answer["status"] == "success", f"{parameters}: {answer}"
        return answer["data"]

    def query(self, expression):
        return self.ask("query", query=expression)["result"]

    def await_targets(self, count):
        wait_for(lambda: len(self.query("up == 1")) == count, f"{count} targets that are up")

    def firing(self):
        """The names of the alerts that fire."""
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}

    def await_alert(self, name):
        wait_for(lambda: name in self.firing(), f"{name} fires; what does is {self.firing()}")

    def await_silence(self, name):
        wait_for(lambda: name not in self.firing(), f"{name} does not fire any more")

"""Real daemons whose traffic is encrypted, each with a certificate of its own."""
import json
import re
import ssl
import urllib.request

from real_cluster import Cluster, shoal
from watched_cluster import parse


class SecureCluster(Cluster):
    """A cluster with the certificates of `authority`. An operator's and a viewer's are there, too."""

    def __init__(self, directory, authority, ps=1, workers=2):
        super().__init__(directory, ps, workers)
        tasks = ["coordinator", *(f"ps/{i}" for i in range(ps)), *(f"worker/{i}" for i in range(workers))]
        self.tls = {role: authority.issue(role) for role in [*tasks, "operator", "viewer"]}

    def start(self, task_type, index=0, arguments=(), tls=None, **options):
        """`tls`: another TLS directory than that of the task."""
        role = "coordinator" if task_type == "chief" else f"{task_type}/{index}"
        return super().start(task_type, index, [f"--tls_dir={tls or self.tls[role]}", *arguments], **options)

    def rejected(self, process):
        """How many (handshakes, streams) a daemon with an HTTP port has rejected."""
        process.wait_for_output("serving /metrics")
        port = re.findall(r"serving /metrics.* address=\S+:(\d+)", process.own_output())[-1]
        context = ssl.create_default_context(cafile=self.tls["viewer"] / "ca.crt")
        context.load_cert_chain(self.tls["viewer"] / "tls.crt", self.tls["viewer"] / "tls.key")
        with urllib.request.urlopen(f"https://localhost:{port}/metrics", timeout=60, context=context) as answer:
            samples = parse(answer.read().decode())
        return samples["shoal_rpc_rejected_handshakes_total", ()], samples["shoal_rpc_unauthorized_streams_total", ()]

    def status(self):
        """What `shoal status --json` says; None while the coordinator does not answer."""
        done = shoal("status", "--chief", self.chief, "--json", "--tls_dir", self.tls["operator"])
        return json.loads(done.stdout) if done.returncode == 0 else None

"""Real daemons whose traffic is encrypted, each with a certificate of its own."""
import json

from real_cluster import Cluster, shoal


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

    def status(self):
        """What `shoal status --json` says; None while the coordinator does not answer."""
        done = shoal("status", "--chief", self.chief, "--json", "--tls_dir", self.tls["operator"])
        return json.loads(done.stdout) if done.returncode == 0 else None

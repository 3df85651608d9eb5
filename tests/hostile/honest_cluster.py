"""A job that trains for ever, and what must hold of it whatever a stranger does."""
import contextlib
import copy
import json
import pathlib
import re

from fake_coordinator import ControlOfPs
from real_cluster import MODEL, Cluster, shoal, wait_for, write_job
from sanitized import mib_of

# The prefix of a daemon that has few descriptors.
FEW_DESCRIPTORS = ["sh", "-ec", 'ulimit -n 256; exec "$@"', "sh"]
ENDLESS = {"epochs": 1000000, "checkpoint": {"every_seconds": 1}}


def memory_mib(process, figure="VmRSS"):
    status = pathlib.Path(f"/proc/{process.popen.pid}/status").read_text()
    return int(re.search(rf"{figure}:\s+(\d+) kB", status)[1]) / 1024


@contextlib.contextmanager
def growth_below(process, mib):
    """Fails if the process grows by more than this while the block runs, even for a moment. Sanitizers may take more (mib_of)."""
    pathlib.Path(f"/proc/{process.popen.pid}/clear_refs").write_text("5")  # the peak is now what it has
    before = memory_mib(process)
    yield
    grown = memory_mib(process, "VmHWM") - before
    print(f"grown by {grown:.0f} MiB of {mib_of(mib)}")
    assert grown < mib_of(mib), f"{process.log.stem} has grown by {grown:.0f} MiB"


def wide_model(units):
    """The model of the small job with this many units between input and output: 69 floats each."""
    model = copy.deepcopy(MODEL)
    model["config"]["layers"][3]["config"]["units"] = units
    return model


def resolved(job):
    """The text that a coordinator sends of a job file: with the model inside and all paths absolute."""
    fields = json.loads(job.read_text())
    if isinstance(fields["model"], str):
        fields["model"] = json.loads((job.parent / fields["model"]).read_text())
    for files in fields["data"].values():
        for name in files:
            files[name] = str(job.parent / files[name])
    return json.dumps(fields)


class HonestCluster(Cluster):
    """Coordinator, ps and workers of an endless job."""

    def __init__(self, directory, ps=1, workers=1, **job):
        super().__init__(directory / "logs", ps, workers)
        self.job, self.run = write_job(directory / "job", **{**ENDLESS, **job}), directory / "run"

    def start_all(self, prefixes=None, name=""):
        """`prefixes`: what the tasks of a type are started with; `name`: of the logs, where they are started again."""
        prefix = {"ps": (), "chief": (), **(prefixes or {})}
        self.ps = [self.start("ps", index, prefix=prefix["ps"], name=f"ps{name}") for index in range(len(self.spec["ps"]))]
        self.coordinator = self.start("chief", 0, [f"--job={self.job}", f"--run_dir={self.run}"], prefix=prefix["chief"],
                                      name=f"chief{name}")
        self.workers = [self.start_worker(index, name=f"worker{name}") for index in range(len(self.spec["worker"]))]
        self.check_serves()
        return self

    def steps_done(self):
        """As of now; 0 while the coordinator does not answer."""
        return (self.status() or {}).get("steps_done", 0)

    def check_serves(self):
        """Everybody lives, the job goes on, and people can see how."""
        goal = self.steps_done() + 50
        wait_for(lambda: self.steps_done() >= goal, "50 more steps")
        for process in (self.coordinator, *self.ps, *self.workers):
            assert process.popen.poll() is None, process.output()[-3000:]
        status = shoal("status", "--chief", self.chief)
        assert status.returncode == 0 and "training" in status.stdout, status.stdout + status.stderr

    def shard_map_fingerprint(self):
        """As every worker of the job reports it."""
        with ControlOfPs(self.spec["ps"][0]) as control:
            return control.claim().shard_map_fingerprint

    def job_fingerprint(self):
        """As every worker of the job reports it."""
        return int(self.status()["job_fingerprint"], 16)

"""Jobs without an end of their own: a test takes the time it needs, however fast the machine is, and then ends its job."""
import json
import re
import signal

from lineage import check_lineage
from real_cluster import shoal, step_records

EPOCHS = 100000
STOPPED = re.compile(r"the job is over term=\S+ lowest_updates=(\d+) highest_updates=(\d+)")


class Ending:
    """How a job of EPOCHS is ended: with the epoch that it is in."""

    def __init__(self, job, run, records, ps=1):
        self.job, self.run, self.records, self.ps = job, run, records, ps
        self.fields = json.loads(job.read_text())

    def stop(self, coordinator, workers=()):
        """Stops `coordinator`, or a `shoal train`, in order: with a checkpoint of all that is done. Then the workers, each of which has
        the record of its last step to write."""
        for worker in workers:
            worker.wait_for_output(" at their defaults")  # what has not begun yet dies of a SIGTERM
        for processes in ([coordinator], workers):
            for process in processes:
                process.signal(signal.SIGTERM)
            for process in processes:
                assert process.wait() == 143, process.output()[-3000:]

    def finish(self):
        """Trains the rest of the epoch, with `shoal train` and one worker."""
        newest = json.loads(max((self.run / "checkpoints").glob("*/manifest.json")).read_text())
        self.epochs = newest["cut_step"] * EPOCHS // newest["total_steps"] + 1
        self.total_steps = newest["total_steps"] * self.epochs // EPOCHS
        done = shoal("train", self.job, "--epochs", self.epochs, "--run_dir", self.run, "--workers", 1, "--threads", 1,
                     "--ps", self.ps, SHOAL_STEP_RECORDS=str(self.records))
        assert done.returncode == 0, done.stdout + done.stderr

    def check_updates(self):
        """Every chunk of every ps has had exactly as many updates as the job has steps."""
        for i in range(self.ps):
            ranges = STOPPED.findall((self.run / f"logs/ps-{i}.log").read_text())
            assert ranges[-1] == (str(self.total_steps),) * 2, (i, ranges)

    def check_lineage(self, former_logs, examples, killed_workers):
        """`former_logs`: text of the coordinators before the last one."""
        log = former_logs + (self.run / "logs/chief-0.log").read_text()
        batches = self.fields.get("strategy", {}).get("batches_per_step", 1)
        check_lineage(step_records(self.records), log, self.epochs, examples, self.fields["batch_size"] * batches, killed_workers)

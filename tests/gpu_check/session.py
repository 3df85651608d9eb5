"""What the parts of a check share: what was asked for, the programs that run, and the report."""
import json
import os
import pathlib
import time

HERE = pathlib.Path(__file__).resolve().parent


class Session:
    """Not thread-safe, but for `call`."""

    def __init__(self, arguments, programs, log, report=None):
        self.arguments = arguments
        self.programs = programs
        self.log = log
        self.report = {} if report is None else report
        # Puts into the report what follows from the rest of it.
        self.conclude = lambda report: None

    @property
    def on_gpu(self):
        return self.arguments.device.startswith("cuda")

    @property
    def gpu_index(self):
        return self.arguments.device.split(":")[1]

    def call(self, *command, **options):
        return self.programs.call(*command, **options)

    def shoal(self, *words, **options):
        return self.call(HERE / "bin/shoal", *words, **options)

    def save(self):
        """What ran is kept, whatever becomes of the rest; the file is whole at any time."""
        self.conclude(self.report)
        path = self.arguments.out / "report.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps(self.report, indent=1) + "\n")
        os.replace(new, path)


def origin(report):
    """Of a part, which may be kept in a report while others are run again: when, where and of which build."""
    machine = report.get("machine", {})
    return {"at": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "device": report.get("device"), "build": report.get("build"),
            "machine": (machine.get("gpus") or [machine.get("processor")])[0]}

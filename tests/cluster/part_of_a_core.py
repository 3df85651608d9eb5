"""A cgroup for processes that are to have a part of a core. As root."""
import contextlib
import pathlib
import tempfile

from real_cluster import wait_for


@contextlib.contextmanager
def part_of_a_core(part, quota_us=1000):
    """
    A prefix for a command that computes for `quota_us` and then stands still until that was only this part of the time. With a long
    quota it makes up for what it has waited; with the shortest that there is it is like a slow machine.
    """
    root = pathlib.Path("/sys/fs/cgroup")
    second = (root / "cgroup.controllers").exists()
    if second:
        (root / "cgroup.subtree_control").write_text("+cpu")
    group = pathlib.Path(tempfile.mkdtemp(prefix="shoal-part.", dir=root if second else root / "cpu"))
    period_us = round(quota_us / part)
    try:
        if second:
            (group / "cpu.max").write_text(f"{quota_us} {period_us}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(period_us))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text(), "its processes have ended")
        group.rmdir()

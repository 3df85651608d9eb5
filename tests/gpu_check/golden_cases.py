"""Models as Keras computed them."""
import concurrent.futures
import math
import os
import re

from programs import first_warnings
from session import HERE

AT_ONCE = 8
CAP_SECONDS = 60
# tensor, largest relative error, tolerance
ROW = re.compile(r"^(\S+)\s+(\d\.\de[+-]\d+|inf|-?nan)\s+(\d\.\de[+-]\d+)\s", re.MULTILINE)


def largest_ratio(output):
    """The tensor that is the farthest off for what it may be, and by how much of that; None where no table was printed."""
    ratios = [(float(error) / float(tolerance), tensor) for tensor, error, tolerance in ROW.findall(output)]
    if not ratios:
        return None
    ratio, tensor = max(ratios, key=lambda row: math.inf if math.isnan(row[0]) else row[0])
    return {"tensor": tensor, "of_tolerance": round(ratio, 4) if math.isfinite(ratio) else str(ratio)}


def verify(session, case):
    ended = session.shoal("model", "verify", case, "--device", session.arguments.device, cap=CAP_SECONDS)
    if ended.code is None and ended.why != "not started":
        return {"ok": None} | ended.entry()
    return {"ok": ended.code == 0, "largest_error": largest_ratio(ended.output), "warnings": first_warnings(ended.output)} | ended.entry()


def check_golden(session, entry):
    """Fills in `entry`."""
    cases = sorted(case for case in (HERE / "golden").iterdir() if (case / "case.json").exists())
    results = entry["cases"] = {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE if session.on_gpu else os.cpu_count()) as pool:
        running = {pool.submit(verify, session, case): case.name for case in cases}
        for done in concurrent.futures.as_completed(running):
            results[running[done]] = done.result()
            session.save()
    states = [result["ok"] for result in results.values()]
    entry["ok"] = False if False in states or not states else None if None in states else True

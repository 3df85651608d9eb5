"""What is to hold of Shoal on a GPU, judged by a report."""

LEAST_IMAGES_PER_SECOND = 7000
LEAST_ACCURACY = 0.90
MOST_IDLE = 0.10


def sentence(text, wanted, value=None, holds=None, why=""):
    """`holds` is None where it was not measured."""
    return {"text": text, "value": value, "wanted": wanted, "holds": holds, "why": why}


def reason(part):
    """Why a part of a report has no result."""
    if not part:
        return "it was not asked for"
    if part.get("not_run"):
        return "no time was left for it"
    if "exception" in part:
        return part["exception"].strip().splitlines()[-1]
    return part.get("why") or part.get("missing") or (f"it was ended by {part['ended_by']}" if "ended_by" in part else "it did not come to an end")


def of_checks(report, name, key, text):
    """Of a part with many checks, each with `ok`: that all of them are right."""
    part = report.get(name, {})
    checks = part.get(key, [])
    checks = [check for check in (checks.values() if isinstance(checks, dict) else checks) if not isinstance(check.get("skipped"), str)]
    wrong = sum(check["ok"] is False for check in checks)
    value = f"{sum(check['ok'] is True for check in checks)} of {len(checks)}" if checks else None
    why = reason(part) if part.get("ok") is None else ""
    return sentence(text, "all", value, False if wrong else part.get("ok"), why)


def of_sanitizer(report):
    part = report.get("sanitizer", {})
    runs = part.get("runs", [])
    text, wanted = "compute-sanitizer finds nothing in a kernel of Shoal's (memcheck, racecheck, initcheck)", "0 errors"
    if not any("ours" in run for run in runs):
        return sentence(text, wanted, why=reason(next((run for run in runs if "why" in run), part)))
    errors = sum(sum(run.get("ours", {}).values()) for run in runs)
    unfinished = [f"{run['tool']} of {run['program']}: {reason(run)}" for run in runs if run["ok"] is None]
    return sentence(text, wanted, f"{errors} errors", False if errors else None if unfinished else part.get("ok"), "; ".join(unfinished)[:300])


def of_accuracy(report, on_gpu):
    text, wanted = "Fashion-MNIST, trained by workers on the GPU", f">= {LEAST_ACCURACY:.2f}"
    part = report.get("cluster", {})
    ended = [run for run in part.get("runs", []) if run["ok"] is not None]
    accuracies = [run["val_accuracy"] for run in ended if run["val_accuracy"] is not None]
    value = min(accuracies) if accuracies else None
    if not on_gpu or not ended:
        return sentence(text, wanted, value, why="there is no GPU" if not on_gpu else reason(part))
    wrong = [f"with --workers {run['workers']}: exit code {run['exit']}, {'; '.join(run['computes']) or 'no word of what it computes on'}"
             for run in ended if run["ok"] is False]
    if wrong:
        return sentence(text, wanted, value, False, ", ".join(wrong))
    if value is None or value < LEAST_ACCURACY:
        return sentence(text, wanted, value, why="so few epochs are not judged")
    return sentence(text, wanted, value, True, "" if part.get("ok") else f"with --workers {ended[-1]['workers']} alone")


def benched(report, model, who):
    """The last precision's, which is bfloat16 unless another alone was asked for."""
    for result in report.get("bench", {}).get("models", []):
        if result["model"] == model:
            found = {key.split("_")[-1]: value for key, value in result.items() if key.startswith(who)}
            return found.get("bfloat16") or next(iter(found.values()), {})
    return {}


def of_pytorch(report, model, name, on_gpu):
    ours, theirs = benched(report, model, "shoal"), benched(report, model, "pytorch")
    text = f"{name}, images/s of training, no fewer than PyTorch's"
    value = f"{ours['examples_per_second']:.0f}" if "examples_per_second" in ours else None
    if "examples_per_second" not in theirs:
        return sentence(text, ">= PyTorch's", value, why="PyTorch: " + reason(theirs or report.get("bench", {})))
    wanted = f">= {theirs['examples_per_second']:.0f} ({theirs.get('mode')})"
    why = "" if theirs.get("compiled") is True else f"PyTorch not compiled: {theirs.get('compiled') or 'it did not come to that'}"
    if value is None or not on_gpu:
        return sentence(text, wanted, value, why="there is no GPU" if not on_gpu else reason(ours))
    return sentence(text, wanted, value, ours["examples_per_second"] >= theirs["examples_per_second"], why)


def of_speed(report, on_gpu):
    ours = benched(report, "resnet50", "shoal")
    text, wanted = "ResNet-50, images/s of training", f">= {LEAST_IMAGES_PER_SECOND}"
    value = f"{ours['examples_per_second']:.0f}" if "examples_per_second" in ours else None
    if value is None or not on_gpu:
        return sentence(text, wanted, value, why="there is no GPU" if not on_gpu else reason(ours or report.get("bench", {})))
    return sentence(text, wanted, value, ours["examples_per_second"] >= LEAST_IMAGES_PER_SECOND)


def of_idle(report, on_gpu):
    part = report.get("idle", {})
    text, wanted = "of a step of a worker beside its ps, the share in which the GPU waits", f"< {MOST_IDLE:.2f}"
    share = part.get("idle_share")
    if not on_gpu or share is None or share < 0:
        return sentence(text, wanted, share, why="there is no GPU" if not on_gpu else reason(part))
    return sentence(text, wanted, share, share < MOST_IDLE, f"by {part['computed_seconds_are']}")


def judge(report):
    on_gpu = report.get("device", "").startswith("cuda")
    return [of_checks(report, "tests", "programs", "each kernel and op is right"),
            of_checks(report, "golden", "cases", "models are as Keras computed them"),
            of_sanitizer(report),
            of_accuracy(report, on_gpu),
            of_pytorch(report, "mobilenet_v2", "MobileNetV2", on_gpu),
            of_pytorch(report, "resnet50", "ResNet-50", on_gpu),
            of_speed(report, on_gpu),
            of_idle(report, on_gpu)]


def exit_code(report, parts):
    """0 where all sentences hold, and without a GPU where none that was measured does not; 1 where one does not, or a part failed; 2 where
    none does not, but some were not measured on a GPU, or nothing was."""
    if "stop" in report["preflight"] or "exception" in report:
        return 2
    holds = [each["holds"] for each in report["sentences"]]
    if False in holds or any(report.get(part, {}).get("ok") is False for part in parts):
        return 1
    return 2 if None in holds and report["device"].startswith("cuda") else 0


def table(sentences):
    words = {True: "holds", False: "DOES NOT HOLD", None: "not measured"}
    rows = [(each["text"], "" if each["value"] is None else str(each["value"]), each["wanted"], words[each["holds"]], each["why"])
            for each in sentences]
    rows.insert(0, ("", "value", "wanted", "", "why"))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join("  ".join([cell.ljust(width) for cell, width in zip(row, widths)] + [row[4]]).rstrip() for row in rows)

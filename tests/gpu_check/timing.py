"""Training steps of models, beside PyTorch's, and on several devices."""
import json
import os
import pathlib
import re
import tempfile

import machine
from programs import first_warnings
from session import HERE

# The one of which more is wanted comes first.
MODELS = ("resnet50", "mobilenet_v2")
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
SHOAL_CAP_SECONDS = 90
# On a machine with 16 cores and an H200 torch.compile takes a minute for ResNet-50, and what comes before it half of one.
PYTORCH_CAP_SECONDS = 110


def with_policy(value, policy):
    """A model's config with another dtype policy in the place of float32."""
    if isinstance(value, list):
        return [with_policy(each, policy) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("class_name") == "DTypePolicy":
        return value | {"config": {"name": policy}}
    return {key: with_policy(each, policy) for key, each in value.items()}


def model_of(name, precision="float32"):
    return with_policy(json.loads((HERE / f"models/{name}.json").read_text()), POLICIES[precision])


def last_json(ended):
    """The last line of what was printed that is a JSON object, else what happened."""
    for line in reversed(ended.output.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line) | {"warnings": first_warnings(ended.output)}
            except ValueError:
                break
    return ended.entry() | {"output": ended.output[-4096:], "warnings": first_warnings(ended.output)}


def bench_model(session, name, precision, device=None, batch_size=None, flags=()):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(model_of(name, precision), file)
        file.flush()
        ended = session.shoal("bench", "model", file.name, "--device", device or session.arguments.device, "--batch_size",
                              batch_size or session.arguments.batch_size, "--seconds", session.arguments.seconds, "--json", *flags,
                              cap=SHOAL_CAP_SECONDS if session.on_gpu else 3600)
    return last_json(ended) | ({"log": re.findall(r".*gradients.*", ended.output)} if device else {})


def shares(result, precision, card):
    """The share of the card's bandwidth, if each value is read and written once, and of its arithmetic: of the whole step, and of each op.
    An op that is computed along with another has no time of its own, so that the other's share is too small; and `other` is what no op is,
    in seconds."""
    bytes_per_second, in_float32, in_bfloat16 = card
    value_bytes, most_operations = (2, in_bfloat16) if precision == "bfloat16" else (4, in_float32)
    values, multiply_adds = result["op_values"], result["op_multiply_adds"]

    def share(values, multiply_adds, seconds):
        return {"bandwidth": round(values * value_bytes / seconds / bytes_per_second, 3),
                "arithmetic": round(2 * multiply_adds / seconds / most_operations, 3)}

    taken = {op: seconds for op, seconds in result["op_seconds"].items() if seconds > 0}
    return {"step": share(sum(values.values()), sum(multiply_adds.values()), sum(taken.values())) if taken else None,
            "ops": {op: share(values[op], multiply_adds[op], seconds) for op, seconds in taken.items() if op in values},
            "other": {work: seconds for work, seconds in taken.items() if work not in values}}


def bench_pytorch(session, name, precision):
    """PyTorch's best, as far as it came."""
    classes = model_of(name)["config"]["layers"][-1]["config"]["units"]
    device = session.arguments.device if session.on_gpu else "cpu"
    cap = min(PYTORCH_CAP_SECONDS, session.programs.budget.left())
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "result.json"
        # Its own libraries, not ours.
        ended = session.call(session.arguments.python, HERE / "torch_bench.py", file, "--model", name, "--classes", classes, "--batch_size",
                             session.arguments.batch_size, "--seconds", session.arguments.seconds, "--device", device, "--precision", precision,
                             "--limit", cap, cap=cap, environment=dict(os.environ))
        result = json.loads(file.read_text()) if file.exists() else {}
    return result | (ended.entry() if ended.code != 0 else {"seconds": round(ended.seconds, 1)})


def bench(session, entry):
    """Fills in `entry`."""
    card = machine.card(session)
    results = entry["models"] = []
    with machine.Samples(session) as samples:
        for name in MODELS:
            result = {"model": name}
            results.append(result)
            for precision in session.arguments.precision:
                ours = result[f"shoal_{precision}"] = bench_model(session, name, precision)
                if card and "op_seconds" in ours:
                    ours["shares"] = shares(ours, precision, card)
                session.save()
                result[f"pytorch_{precision}"] = bench_pytorch(session, name, precision)
                session.save()
    entry["gpu"] = samples.summary
    ours = [result[f"shoal_{precision}"] for result in results for precision in session.arguments.precision]
    entry["ok"] = all_timed(ours)


def all_timed(results):
    if all("examples_per_second" in result for result in results):
        return True
    return None if all("examples_per_second" in result or "not_run" in result or result.get("ended_by") == "timeout" for result in results) else False


def bench_several(session, entry):
    """Fills in `entry`: two devices, whose gradients NCCL adds up or, with --deterministic, the host, each with as many examples as the one
    alone."""
    gpus = len(session.report["machine"]["gpus"])
    if session.on_gpu and gpus < 2:
        entry |= {"ok": True, "skipped": f"two GPUs are wanted, and nvidia-smi lists {gpus}"}
        return
    one, two = ("cuda:0", "cuda:0,cuda:1") if session.on_gpu else ("cpu", "cpu,cpu")
    batch_size = session.arguments.batch_size
    entry["model"] = "resnet50"
    runs = {"one": (one, batch_size, []), "two": (two, 2 * batch_size, []), "two_deterministic": (two, 2 * batch_size, ["--deterministic"])}
    for name, (devices, examples, flags) in runs.items():
        entry[name] = bench_model(session, "resnet50", session.arguments.precision[0], devices, examples, flags)
        session.save()
    entry["ok"] = all_timed([entry[name] for name in runs])

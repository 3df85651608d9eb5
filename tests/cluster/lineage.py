"""What a run has trained on in the end: the chain of timelines that the final variables come from, and the workers' records."""
import collections
import re

BEGINS = re.compile(r"a timeline begins timeline=(\S+) step=(\d+) parent=(\S+)")


def timeline_number(text):
    """Term text "3-0badcafe" as the number that step records have."""
    number, coordinator = text.split("-")
    return int(number) << 32 | int(coordinator, 16)


def timeline_of_steps(chief_log, total_steps):
    """[timeline that each step was applied in last], by step, of the final variables."""
    timelines = [(timeline_number(name), int(step), None if parent == "seed" else timeline_number(parent))
                 for name, step, parent in BEGINS.findall(chief_log)]
    begun = {name: (step, parent) for name, step, parent in timelines}
    name, end = timelines[-1][0], total_steps
    owner = [None] * total_steps
    while name is not None:
        step, parent = begun[name]
        owner[step:end] = [name] * (end - step)
        name, end = parent, step
    assert end == 0, "the first timeline starts from the seed"
    return owner


def check_lineage(rows, chief_log, epochs, examples, batch_size, killed_workers):
    """Every step once, every example of every epoch once, in the lineage of the final variables. `batch_size`: of a step.

    A worker that is killed may take with it the record of the one step that it had just applied; the ps know of it all the
    same. Its examples are then those that nobody else used.
    """
    per_epoch = -(-examples // batch_size)
    total = epochs * per_epoch
    batch_of, timelines_of = {}, collections.defaultdict(set)
    for timeline, step, batch in rows:
        assert batch_of.setdefault(step, batch) == batch, f"step {step} had two batches"
        timelines_of[step].add(timeline)
    owner = timeline_of_steps(chief_log, total)
    unrecorded = [step for step in range(total) if owner[step] not in timelines_of[step]]
    assert len(unrecorded) <= killed_workers, f"no record of steps {unrecorded[:10]}, {len(unrecorded)} in all"
    for epoch in range(epochs):
        steps = range(epoch * per_epoch, (epoch + 1) * per_epoch)
        used = [example for step in steps for example in batch_of.get(step, [])]
        assert len(used) == len(set(used)) and set(used) <= set(range(examples)), f"epoch {epoch}: an example came twice"
        if all(step in batch_of for step in steps):
            assert len(used) == examples, f"epoch {epoch}: an example is missing"

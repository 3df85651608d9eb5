"""The test accuracy of an example on Fashion-MNIST by each strategy and number of workers, the mean over seeds: prints a table.

    strategies_accuracy.py RESULTS [--example fashion_mnist] [--epochs 10] [--workers 1 2 4 8 16] [--seeds 1 2 3] [--batch_size 64]
                           [--curves PICTURE.svg] [ROW ...]

RESULTS is a file of a line of JSON for each run; runs that it has are not done again, so a turn that was interrupted goes on. All
processes are on this machine: who is slow here is so at random, and what is said of seconds is nothing.
"""
import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fixtures"))
from real_cluster import BIN, SOURCE  # noqa: E402

BATCH = 64  # for which the rows are
STEPS_OF_AN_EPOCH = 938
LOCAL = {"name": "local", "batches_per_step": 10}
OF_LOCAL = {"compression": {"push": "int8", "pull": "bf16"}}

# What the job says of each row, by the number of workers; None: it has no such number of workers.
ROWS = {
    "async": lambda n: {"strategy": {"name": "async"}},
    "async, max_staleness": lambda n: n > 1 and {"strategy": {"name": "async", "max_staleness": 2 * n - 1}},
    "async, learning rate by staleness": lambda n: n > 1 and {"strategy": {"name": "async", "learning_rate_by_staleness": True}},
    "async, looking ahead": lambda n: n > 1 and {"strategy": {"name": "async", "look_ahead": n - 1}},
    "async, looking ahead, warm-up": lambda n: n > 1 and {
        "strategy": {"name": "async", "look_ahead": n - 1, "warmup_steps": STEPS_OF_AN_EPOCH, "workers": n}},
    "sync": lambda n: {"strategy": {"name": "sync", "gradients_per_update": n}},
    "sync, rate by the root": lambda n: n > 1 and {
        "strategy": {"name": "sync", "gradients_per_update": n, "scale_learning_rate": "sqrt", "warmup_steps": STEPS_OF_AN_EPOCH}},
    "local": lambda n: {"strategy": LOCAL} | OF_LOCAL,
    "local in fragments": lambda n: {"strategy": LOCAL | {"batches_per_step": 20, "fragments": 4, "chunk_bytes": 65536}} | OF_LOCAL,
    "local in rounds": lambda n: {"strategy": LOCAL | {"gradients_per_update": n}} | OF_LOCAL,
}
COLOURS = ["#1f77b4", "#9467bd", "#17becf", "#2ca02c", "#d62728", "#ff7f0e", "#8c564b", "#7f7f7f", "#bcbd22"]


def measure(example, row, workers, seed, epochs, batch_size):
    """The run's history: for each epoch, {column: number}."""
    example = SOURCE / "examples" / example
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        job = json.loads((example / "job.json").read_text())
        job |= {"model": str(example / "model.json"), "epochs": epochs, "batch_size": batch_size} | ROWS[row](workers)
        # Of as many examples as with the usual batches.
        for field in {"batches_per_step", "warmup_steps"} & job["strategy"].keys():
            job["strategy"] = job["strategy"] | {field: job["strategy"][field] * BATCH // batch_size}
        (folder / "job.json").write_text(json.dumps(job))
        subprocess.run([BIN / "shoal", "train", folder / "job.json", "--run_dir", folder / "run", "--seed", str(seed), "--workers", str(workers)],
                       check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        with open(folder / "run/history.csv", newline="") as file:
            return [{column: float(value) for column, value in epoch.items() if value} for epoch in csv.DictReader(file)]


def draw(found, workers, path):
    """A panel for each number of workers: the loss on the test set after each epoch, the mean over seeds, a line a row."""
    width, height, left, below, columns = 300, 240, 40, 24, 3
    means = {key: [statistics.mean(run[e]["val_loss"] for run in runs) for e in range(min(map(len, runs)))] for key, runs in found.items()}
    low, high = min(map(min, means.values())), max(map(max, means.values()))
    high = min(high, low + 0.4)  # what is beyond is cut off
    rows = list(dict.fromkeys(row for row, _ in means))
    bottom = -(-len(workers) // columns) * height
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * width}" height="{bottom + 20 * len(rows) + 10}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']
    for panel, n in enumerate(workers):
        left_edge, top = panel % columns * width, panel // columns * height
        x0, y0, x1, y1 = left_edge + left, top + height - below, left_edge + width - 10, top + 22
        out.append(f'<clipPath id="panel{n}"><rect x="{x0}" y="{y1}" width="{x1 - x0}" height="{y0 - y1}"/></clipPath>'
                   f'<rect x="{x0}" y="{y1}" width="{x1 - x0}" height="{y0 - y1}" fill="none" stroke="#999"/>'
                   f'<text x="{x0}" y="{top + 15}">{n} {"worker" if n == 1 else "workers"}</text>')
        for tick in range(5):
            value = low + (high - low) * tick / 4
            y = y0 + (y1 - y0) * tick / 4
            out.append(f'<text x="{x0 - 4}" y="{y + 4:.0f}" text-anchor="end">{value:.2f}</text>')
        for row in rows:
            line = means.get((row, n))
            if line is None:
                continue
            points = " ".join(f"{x0 + (x1 - x0) * (e + 1) / len(line):.1f},{y0 + (y1 - y0) * (value - low) / (high - low):.1f}"
                              for e, value in enumerate(line))
            out.append(f'<polyline clip-path="url(#panel{n})" points="{points}" fill="none" stroke="{COLOURS[rows.index(row)]}" '
                       'stroke-width="1.5"/>')
        out.append(f'<text x="{(x0 + x1) / 2:.0f}" y="{top + height - 6}" text-anchor="middle">epochs 1 to {max(map(len, means.values()))}</text>')
    for i, row in enumerate(rows):
        y = bottom + 20 * i + 12
        out.append(f'<line x1="{left}" x2="{left + 30}" y1="{y - 4}" y2="{y - 4}" stroke="{COLOURS[i]}" stroke-width="2"/>'
                   f'<text x="{left + 38}" y="{y}">{row}</text>')
    path.write_text("\n".join(out + ["</svg>"]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("rows", nargs="*", default=list(ROWS), metavar="ROW")
    parser.add_argument("--example", default="fashion_mnist", help="or fashion_mnist_mobilenet")
    parser.add_argument("--batch_size", type=int, default=BATCH, help="with others, blocks and warm-up have as many examples")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--curves", type=pathlib.Path, help="also draw the loss on the test set, as SVG")
    arguments = parser.parse_intermixed_args()
    for row in arguments.rows:
        if row not in ROWS:
            parser.error(f"{row}: a row is one of {', '.join(ROWS)}")
    known = {}
    if arguments.results.exists():
        for line in arguments.results.read_text().splitlines():
            run = json.loads(line)
            known[run.get("example", "fashion_mnist"), run["row"], run["workers"], run["seed"], run["epochs"], run.get("batch_size", BATCH)] = run["history"]
    found = {}
    for seed in arguments.seeds:
        for row in arguments.rows:
            for workers in arguments.workers:
                if not ROWS[row](workers):
                    continue
                key = arguments.example, row, workers, seed, arguments.epochs, arguments.batch_size
                if key not in known:
                    known[key] = measure(*key)
                    with open(arguments.results, "a") as file:
                        file.write(json.dumps(dict(zip(("example", "row", "workers", "seed", "epochs", "batch_size"), key)) | {"history": known[key]}) + "\n")
                found.setdefault((row, workers), []).append(known[key])
    print("| strategy | " + " | ".join(str(n) for n in arguments.workers) + " |\n|" + "---|" * (1 + len(arguments.workers)))
    for row in arguments.rows:
        cells = [statistics.mean(run[-1]["val_accuracy"] for run in found[row, n]) if (row, n) in found else None for n in arguments.workers]
        print(f"| {row} | " + " | ".join("" if cell is None else f"{cell:.4f}" for cell in cells) + " |")
    if arguments.curves:
        draw(found, arguments.workers, arguments.curves)


if __name__ == "__main__":
    main()

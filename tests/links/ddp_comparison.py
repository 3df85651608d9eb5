"""Synchronous training of the Fashion-MNIST network here and by PyTorch's DistributedDataParallel over gloo, in turns: prints a table.

    ddp_comparison.py --torch VENV/bin/python [--links none lan vpn] [--workers 2] [--rounds 3] [--seconds 15]

The Python given has torch (`pip install torch==2.8.0 numpy`); it is in no test. Each worker is on a host of its own (links.py), of one compute
thread, with a batch of 64 for a step; here with a ps beside it, as `shoal train --colocate` has it, so that a step of either moves the same
bytes over each link. PyTorch computes on one batch of random numbers that is in memory all the time; here the data set is read.
"""
import argparse
import contextlib
import csv
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

BATCH = 64


def train_by_torch(seconds):
    """One rank, in a process of its own; the first one prints the images a second of all."""
    import torch
    from torch import distributed, nn
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    model = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10)).to(memory_format=torch.channels_last)
    model = nn.parallel.DistributedDataParallel(model)
    optimizer, loss_of = torch.optim.Adam(model.parameters(), 1e-3), nn.CrossEntropyLoss()
    images, labels = torch.rand(BATCH, 1, 28, 28).to(memory_format=torch.channels_last), torch.randint(0, 10, (BATCH,))

    def step():
        optimizer.zero_grad()
        loss_of(model(images), labels).backward()
        optimizer.step()
    for _ in range(10):
        step()
    begun, steps = time.monotonic(), 0
    more = torch.ones(1)
    while more.item() > 0:
        for _ in range(5):
            step()
        steps += 5
        # All stop after the same step, when the first one says so.
        more[0] = time.monotonic() < begun + seconds
        distributed.broadcast(more, 0)
    if distributed.get_rank() == 0:
        print(steps * BATCH * distributed.get_world_size() / (time.monotonic() - begun))


def of_torch(arguments, star, directory):
    from real_cluster import Process
    with contextlib.ExitStack() as processes:
        started = []
        for rank in range(arguments.workers):
            environment = {"MASTER_ADDR": star.addresses[0], "MASTER_PORT": "29511", "RANK": str(rank), "WORLD_SIZE": str(arguments.workers),
                           "GLOO_SOCKET_IFNAME": "link0", "OMP_NUM_THREADS": "1"}
            process = Process([arguments.torch, __file__, "--rank", "--seconds", arguments.seconds], directory / f"rank-{rank}.log", environment,
                              star.prefix(rank))
            processes.callback(process.kill)
            started.append(process)
        for process in started:
            assert process.wait() == 0, process.output()[-3000:]
        return float(started[0].output().splitlines()[-1])


def of_shoal(arguments, star, directory):
    import links
    from real_cluster import SOURCE
    example = SOURCE / "examples/fashion_mnist"
    job = json.loads((example / "job.json").read_text())
    # Of three epochs the fastest: in the first one connections are made.
    job |= {"model": str(example / "model.json"), "epochs": 3, "strategy": {"name": "sync", "gradients_per_update": arguments.workers, "min_shard_bytes": 4096},
            "checkpoint": {"every_seconds": 0, "every_steps": 0}}
    del job["data"]["test"], job["metrics"]
    if arguments.examples:
        from strategies_table import write_first
        for what, path in job["data"]["training"].items():
            write_first(pathlib.Path(path), directory / what, arguments.examples)
            job["data"]["training"][what] = what
    (directory / "job.json").write_text(json.dumps(job))
    every = range(arguments.workers)
    with links.StarCluster(star, directory, chief=[0], ps=every, worker=every) as cluster:
        cluster.train(directory / "job.json", directory / "run", 7200)
    with open(directory / "run/history.csv", newline="") as file:
        return max(float(epoch["examples_per_second"]) for epoch in csv.DictReader(file))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", type=pathlib.Path, help="a Python that has it")
    parser.add_argument("--links", nargs="+", default=["none", "lan", "vpn"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--examples", type=int, default=0, help="of the training set here; 0: all")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        return train_by_torch(arguments.seconds)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import links
    from strategies_table import LINKS
    print("| link | DistributedDataParallel, images/s | Shoal | ratio |\n|---|---|---|---|", flush=True)
    for link in arguments.links:
        found = {of_torch: [], of_shoal: []}
        for _ in range(arguments.rounds):
            for side, figures in found.items():
                with tempfile.TemporaryDirectory() as directory, links.Star([LINKS[link]] * arguments.workers, directory) as star:
                    figures.append(side(arguments, star, pathlib.Path(directory)))
        theirs, ours = (statistics.median(figures) for figures in found.values())
        print(f"| {link} | {', '.join(f'{each:.0f}' for each in found[of_torch])} | {', '.join(f'{each:.0f}' for each in found[of_shoal])} "
              f"| {ours / theirs:.2f} |", flush=True)
    return None


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Measures what metrics cost: the steps/s of a job with a tiny model, with and without a scrape of every daemon each
second, in turns within one run.

    build/venv/bin/python tests/monitoring/metrics_cost.py              about four minutes
    build/venv/bin/python tests/monitoring/metrics_cost.py --turns 40   more of them

SHOAL_BIN names the directory of the programs, build/release/bin if it is not set. Nothing else should run on the machine.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
from watched_cluster import WatchedCluster  # noqa: E402

TURN_SECONDS = 2


class Scraper:
    """Scrapes every daemon once a second while it is on."""

    def __init__(self, cluster):
        self.cluster, self.on, self.ended = cluster, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(1):
            for name in self.cluster.watched if self.on.is_set() else ():
                self.cluster.text(name)


def steps_per_second(cluster):
    begin, before = time.monotonic(), cluster.value("chief-0", "shoal_steps_done_total")
    threading.Event().wait(TURN_SECONDS)
    return (cluster.value("chief-0", "shoal_steps_done_total") - before) / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=60, help="of each kind")
    turns = parser.parse_args().turns
    rates = {False: [], True: []}
    with tempfile.TemporaryDirectory() as directory, \
            WatchedCluster(pathlib.Path(directory), ps=1, workers=2, examples=64000, epochs=1000000, checkpoint={}) as cluster:
        cluster.start_all()
        cluster.await_value("chief-0", "shoal_steps_done_total", lambda steps: steps > 5000)
        scraper = Scraper(cluster)
        for turn in range(turns):
            for scraped in ((False, True), (True, False))[turn % 2]:
                (scraper.on.set if scraped else scraper.on.clear)()
                rates[scraped].append(steps_per_second(cluster))
        scraper.ended.set()
    without, scraped = statistics.median(rates[False]), statistics.median(rates[True])
    ratios = [with_it / alone for with_it, alone in zip(rates[True], rates[False])]
    quartiles = statistics.quantiles(ratios, n=4)
    print(f"steps/s without scrapes {without:.0f}, with {scraped:.0f}; ratio of a pair of turns: median {quartiles[1]:.3f}, "
          f"quartiles {quartiles[0]:.3f} and {quartiles[2]:.3f}; of all steps {sum(rates[True]) / sum(rates[False]):.3f}")


if __name__ == "__main__":
    main()

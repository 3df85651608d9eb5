#!/usr/bin/env python3
"""Measures what metrics cost: the steps/s of a job with a tiny model, with and without a scrape of every daemon each
second, in turns within one run. Steps per second of the daemons' CPU time say the same where other programs run beside it.

    build/venv/bin/python tests/monitoring/metrics_cost.py              about four minutes
    build/venv/bin/python tests/monitoring/metrics_cost.py --turns 40   more of them

SHOAL_BIN names the directory of the programs, build/release/bin if it is not set. Nothing else should run on the machine.
"""
import argparse
import http.client
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster/fixtures"))
from pause import pause  # noqa: E402
from watched_cluster import WatchedCluster  # noqa: E402

TURN_SECONDS = 4


class Scraper:
    """Scrapes every daemon once a second while it is on."""

    def __init__(self, ports):
        self.ports, self.on, self.ended = ports, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(1):
            for port in self.ports if self.on.is_set() else ():
                connection = http.client.HTTPConnection("127.0.0.1", port)
                connection.request("GET", "/metrics")
                connection.getresponse().read()
                connection.close()


def cpu_seconds(cluster):
    """Of all daemons."""
    ticks = 0
    for process in cluster.watched.values():
        fields = pathlib.Path(f"/proc/{process.popen.pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Turn:
    """Some seconds of the run, with scrapes or without."""

    def __init__(self, cluster, scraper, scraped):
        begin, cpu_before, before = self.look(cluster)
        (scraper.on.set if scraped else scraper.on.clear)()
        pause(TURN_SECONDS)
        scraper.on.clear()
        end, cpu_after, after = self.look(cluster)
        self.per_second = (after - before) / (end - begin)
        self.per_cpu_second = (after - before) / (cpu_after - cpu_before)

    @staticmethod
    def look(cluster):
        pause(0.25)  # nobody may have scraped a moment ago, whose figures would be given again
        return time.monotonic(), cpu_seconds(cluster), cluster.value("chief-0", "shoal_steps_done_total")


def compare(what, alone, scraped):
    ratios = [with_it / without for with_it, without in zip(scraped, alone)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"{what}: {statistics.median(alone):.0f} without scrapes, {statistics.median(scraped):.0f} with; "
          f"ratio of a pair of turns: median {middle:.3f}, quartiles {low:.3f} and {high:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=24, help="of each kind")
    turns = parser.parse_args().turns
    done = {False: [], True: []}
    with tempfile.TemporaryDirectory() as directory, \
            WatchedCluster(pathlib.Path(directory), ps=1, workers=2, examples=64000, epochs=1000000, checkpoint={}) as cluster:
        cluster.start_all()
        cluster.await_value("chief-0", "shoal_steps_done_total", lambda steps: steps > 5000)
        scraper = Scraper([cluster.port(name) for name in cluster.watched])
        for turn in range(turns):
            for scraped in ((False, True), (True, False))[turn % 2]:
                done[scraped].append(Turn(cluster, scraper, scraped))
        scraper.ended.set()
    compare("steps/s", [turn.per_second for turn in done[False]], [turn.per_second for turn in done[True]])
    compare("steps/s of CPU time", [turn.per_cpu_second for turn in done[False]], [turn.per_cpu_second for turn in done[True]])


if __name__ == "__main__":
    main()

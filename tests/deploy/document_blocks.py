"""The commands of the documentation: fenced blocks ```sh run=WHERE, which the test of WHERE runs as they stand."""
import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGES = ["operations.md", "kubernetes.md"]


def blocks(page):
    """[(where, shell text)], where being None for a block that says nothing."""
    return [(where or None, text) for where, text in
            re.findall(r"^```sh(?: run=(\S+))?\n(.*?)^```", (DOCS / page).read_text(), re.S | re.M)]


def commands(where):
    """The shell text of the blocks for `where`, one after another."""
    texts = [text for page in PAGES for place, text in blocks(page) if place == where]
    assert texts, f"no block for {where}"
    return "".join(texts)

"""Fenced blocks of the documentation. What is in ```sh run=WHERE, the test of WHERE runs as it stands."""
import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGES = ["operations.md", "kubernetes.md"]


def fenced(text):
    """[(words after the fence, text)] of every fenced block."""
    return re.findall(r"^```(.*)\n((?s:.*?))^```$", text, re.M)


def blocks(page):
    """[(where, shell text)], where being None for a block that says nothing."""
    shell = [(re.fullmatch(r"sh(?: run=(\S+))?", words), text) for words, text in fenced((DOCS / page).read_text())]
    return [(match[1], text) for match, text in shell if match]


def commands(where):
    """The shell text of the blocks for `where`, one after another."""
    texts = [text for page in PAGES for place, text in blocks(page) if place == where]
    assert texts, f"no block for {where}"
    return "".join(texts)

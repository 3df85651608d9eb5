"""Every command of docs/operations.md, docs/kubernetes.md and docs/security.md is run by a test, or checked where it takes a cluster."""
import json
import os
import pathlib
import re
import shlex
import subprocess

import kubernetes_validate
import pytest

from document_blocks import DOCS, PAGES, blocks, commands
from manifests import KUBERNETES, documents, named
from real_cluster import BIN, SOURCE

TESTS = pathlib.Path(__file__).parent
# Who runs the blocks, which are named in their text.
RUN_ELSEWHERE = {"compose": "containers_test.py", "image": "containers_test.py", "machine-install": "package_test.py",
                 "machine-start": "package_test.py", "machine-watch": "package_test.py", "machine-stop": "package_test.py",
                 "machine-upgrade": "package_test.py", "machine-backup": "package_test.py", "machine-remove": "package_test.py",
                 "machine-certificates": "package_test.py", "machine-tls-credentials": "package_test.py", "machine-tls-group": "package_test.py",
                 "compose-certificates": "containers_test.py", "compose-tls": "containers_test.py",
                 "certificates": "../cluster/several_machines_test.py"}
RUN_HERE = {"checkout", "package", "cluster"}
RESOURCES = documents(KUBERNETES / "overlays/plain/rendered.yaml")
TLS_RESOURCES = documents(KUBERNETES / "overlays/tls/rendered.yaml")


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_who_runs_it(page):
    for where, text in blocks(page):
        assert where in RUN_HERE or where in RUN_ELSEWHERE, text
        if where in RUN_ELSEWHERE:
            assert f'"{where}"' in (TESTS / RUN_ELSEWHERE[where]).read_text(), f"{RUN_ELSEWHERE[where]} runs {where}"


@pytest.mark.parametrize("page", PAGES)
def test_targets_of_pages_exist(page):
    text = (DOCS / page).read_text()
    for path in re.findall(r"`((?:deploy|scripts|docs|examples)/[^` ]*)`", text):
        assert (SOURCE / path).exists(), path
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (DOCS / link).exists(), link


def test_functions_that_the_architecture_points_to_are_there():
    page = (DOCS / "architecture.md").read_text()
    table = page.split("## Where to find what\n")[1].split("\n## ")[0]
    pointers = re.findall(r"`([\w/]+\.(?:cc|h|py))`: ((?:`\w+`(?:, )?)+)", table)
    assert len(pointers) >= 10
    for path in re.findall(r"`([\w/]+\.(?:cc|h|py))`", table):
        assert (SOURCE / path).exists(), path
    for path, names in pointers:
        for name in re.findall(r"\w+", names):
            assert re.search(rf"\b{name}\(", (SOURCE / path).read_text()), f"{path} has no {name}"


def test_tests_that_the_threat_model_names_are_there():
    table = (DOCS / "security.md").read_text().split("## Threat model\n")[1].split("\nNot defended:")[0]
    names = set(re.findall(r"`(\w+_test)`", table))
    lanes = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"lanes? ([^|]+)\|", table)))) - names
    assert len(names) >= 10 and lanes == {"fuzz", "reproducible", "sbom"}
    files = {path.stem for ending in ("py", "cc") for path in TESTS.parent.rglob(f"*_test.{ending}")}
    assert names <= files, names - files
    for lane in lanes:
        assert f"\n    {lane}) " in (SOURCE / "scripts/check-lanes").read_text(), lane


def test_what_the_readme_of_the_tests_names_is_there():
    page = (SOURCE / "tests/README.md").read_text()
    fixtures, areas = (page.split(f"## {title}\n")[1].split("\n## ")[0] for title in ("Fakes and fixtures", "Texts of messages"))
    rows = re.findall(r"^\| `(\w+)` \|.*\| `([^`]+)` \|$", fixtures, re.M)
    assert len(rows) >= 20
    for name, path in rows:
        assert re.search(rf"\b(?:class|struct) {name}\b|\b{name}\(|\b{name} =", (SOURCE / "tests" / path).read_text()), f"{path} has no {name}"
    for path in re.findall(r"`([\w/]+_test\.(?:cc|py))`", areas):
        assert (SOURCE / "tests" / path).exists(), path
    for path in re.findall(r"`(tests/[\w/.]+)`", page):
        assert (SOURCE / path).exists(), path


def test_every_variable_that_a_program_reads_is_in_operations():
    page = (DOCS / "operations.md").read_text()
    table = page.split("## Settings and environment variables\n")[1].split("\n## ")[0]
    sources = [path.read_text() for folder in ("cli", "common", "coordinator", "ps", "worker") for path in (SOURCE / folder).rglob("*.cc")]
    names = {name for text in sources for name in re.findall(r'\b(?:getenv|Variable|Environment)\("(\w+)"\)', text)}
    assert len(names) >= 8
    for name in names:
        assert f"`{name}`" in table, name


def test_commands_in_a_checkout():
    subprocess.run(["bash", "-euc", commands("checkout")], check=True, cwd=SOURCE, stdout=subprocess.DEVNULL,
                   env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"})


def test_the_package_is_built_as_the_lane_does():
    lane = (SOURCE / "scripts/check-lanes").read_text()
    for line in commands("package").splitlines():
        assert f"    {line} ||" in lane, line


def optional_config_maps():
    """Those that pods mount if they are there."""
    volumes = [volume for each in TLS_RESOURCES if each["kind"] == "Job" for volume in each["spec"]["template"]["spec"]["volumes"]]
    sources = [source["configMap"] for volume in volumes for source in volume.get("projected", {}).get("sources", []) if "configMap" in source]
    return {source["name"] for source in sources if source["optional"]}


@pytest.mark.parametrize("line", commands("cluster").splitlines())
def test_kubectl(line):
    """Known verbs, flags that take what they are given, resources that the manifests have."""
    words = shlex.split(line)
    assert words.pop(0) == "kubectl"
    own, inside = words, None
    if "--" in words:
        own, inside = words[:words.index("--")], words[words.index("--") + 1:]
    flags, names = {}, []
    own = iter(own)
    for word in own:
        if word.startswith("--"):
            flag, _, value = word.partition("=")
            flags[flag] = value or flag == "--all" or next(own)
        else:
            names.append(word)
    assert set(flags) <= {"--namespace", "--filename", "--for", "--timeout", "--type", "--patch", "--output", "--all", "--from-file"}, flags
    verb, *names = names
    if verb in ("apply", "delete") and "--filename" in flags:
        assert (SOURCE / flags["--filename"]).exists() and not names
        return
    assert flags["--namespace"] == named(RESOURCES, "Namespace", "shoal")["metadata"]["name"]
    if verb == "create":
        kind, name = names
        assert (kind, flags["--from-file"]) == ("configmap", "revoked")
        assert name in optional_config_maps(), "no pod mounts it"
        return
    assert verb in ("get", "logs", "exec", "wait", "patch", "describe", "delete"), verb
    kind, _, name = (" ".join(names).replace(" ", "/")).partition("/")
    if verb == "exec":
        kind, name = "pod", kind
        done = subprocess.run([BIN / inside[0], *inside[1:], "--help"], capture_output=True, text=True, check=False)
        assert inside[0] == "shoal" and done.returncode == 0, done.stderr
    if name and kind == "job":
        job = named(RESOURCES, "Job", name)
        if verb == "patch":
            assert flags["--type"] == "merge"
            job["spec"].update(json.loads(flags["--patch"])["spec"])
            kubernetes_validate.validate(job, "1.31", strict=True)
            assert job["spec"]["parallelism"] == job["spec"]["completions"], "what an elastic Indexed Job needs"
    elif name:
        assert kind == "pod"
        job, index, _ = re.fullmatch(r"(.*)-(\d+)-([a-z0-9]{5})", name).groups()
        assert int(index) < named(RESOURCES, "Job", job)["spec"]["completions"]
    elif verb == "wait":
        assert kind == "certificates" and flags["--all"] and any(each["kind"] == "Certificate" for each in TLS_RESOURCES)
    else:
        assert kind in ("jobs", "pods")

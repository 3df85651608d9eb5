"""What an SBOM of scripts/write-sbom must hold: the rules of CycloneDX 1.5 for the fields that it uses, and our own."""
import datetime
import json
import os
import re
import subprocess

from debian_root import SOURCE, run

WRITE_SBOM = SOURCE / "scripts/write-sbom"
FIELDS = {"$schema", "bomFormat", "specVersion", "serialNumber", "version", "metadata", "components", "dependencies"}
COMPONENT_FIELDS = {"type", "bom-ref", "name", "version", "licenses", "purl", "properties", "hashes"}
COMPONENT_TYPES = {"application", "library", "container", "operating-system"}
PURL = re.compile(r"pkg:(deb/debian|generic)/[a-z0-9.%B-]+(@[A-Za-z0-9._~%-]+)?(\?(arch=[a-z0-9]+&)?distro=debian-[0-9]+)?")


def write_sbom(*arguments, **environment):
    return subprocess.run([WRITE_SBOM, *map(str, arguments)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, **environment})


def check_component(component):
    assert {"type", "bom-ref", "name"} <= set(component) <= COMPONENT_FIELDS, component
    assert component["type"] in COMPONENT_TYPES and component["name"], component
    if "purl" in component:
        assert PURL.fullmatch(component["purl"]), component
    for each in component.get("licenses", []):
        assert set(each) == {"license"} and set(each["license"]) == {"id"}, component
    for each in component.get("hashes", []):
        assert each["alg"] == "SHA-256" and re.fullmatch("[0-9a-f]{64}", each["content"]), component
    for each in component.get("properties", []):
        assert set(each) == {"name", "value"} and ":" in each["name"] and each["value"], component


def read(path):
    """Checks an SBOM. Returns what it is about, and its components by name."""
    bom = json.loads(path.read_text())
    assert set(bom) == FIELDS
    assert (bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.5", 1)
    assert re.fullmatch("urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", bom["serialNumber"])
    metadata = bom["metadata"]
    assert set(metadata) == {"timestamp", "tools", "component"}
    datetime.datetime.strptime(metadata["timestamp"], "%Y-%m-%dT%H:%M:%SZ")
    described, components = metadata["component"], bom["components"]
    for component in [described, *components, *metadata["tools"]["components"]]:
        check_component({"bom-ref": "tool", **component} if component.get("name") == "write-sbom" else component)
    assert described["licenses"] == [{"license": {"id": "Apache-2.0"}}] and "under the Apache License 2.0" in (SOURCE / "README.md").read_text()

    references = [described["bom-ref"], *(each["bom-ref"] for each in components)]
    assert len(references) == len(set(references)), "a reference names two components"
    dependencies = {each["ref"]: each["dependsOn"] for each in bom["dependencies"]}
    assert len(dependencies) == len(bom["dependencies"]) and set(dependencies) == set(references)
    for on in dependencies.values():
        assert set(on) <= set(references) and len(on) == len(set(on)), on
    reached, waiting = set(), [described["bom-ref"]]
    while waiting:
        reference = waiting.pop()
        if reference not in reached:
            reached.add(reference)
            waiting += dependencies[reference]
    assert reached == set(references), "components that nothing needs"
    return described, {each["name"]: each for each in components}


def use_of(component):
    return next((each["value"] for each in component["properties"] if each["name"] == "shoal:use"), None)


def check_package(path, package):
    """Checks the SBOM of a package whose dependencies have no alternatives."""
    described, components = read(path)
    assert (described["name"], described["version"]) == ("shoal", run("dpkg-deb", "--field", package, "Version").strip())
    for relation in run("dpkg-deb", "--field", package, "Depends").split(","):
        name = re.match(r"\s*([^\s(]+)", relation)[1]
        assert use_of(components[name]) == "run time", name
    return components

"""The Kubernetes files of deploy/, and what kubectl makes of an overlay."""
import copy
import pathlib
import re

import yaml

KUBERNETES = pathlib.Path(__file__).resolve().parents[2] / "deploy/kubernetes"
CLUSTER_SCOPED = ("Namespace",)


def documents(path):
    return [each for each in yaml.safe_load_all(path.read_text()) if each is not None]


def named(resources, kind, name):
    """The one resource of that kind and name."""
    found = [each for each in resources if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1, f"{kind} {name}: {len(found)} of them"
    return found[0]


def render(folder):
    """The resources that the kustomization of `folder` stands for: what is used of kustomize here, and nothing more."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    unknown = set(kustomization) - {"apiVersion", "kind", "namespace", "resources", "components", "patches"}
    assert not unknown, f"not rendered here: {unknown}"
    resources = []
    for entry in kustomization["resources"]:
        path = folder / entry
        resources += render(path) if path.is_dir() else documents(path)
    for entry in kustomization.get("components", []):
        resources = render_component(folder / entry, resources)
    return transform(kustomization, resources)


def render_component(folder, resources):
    """What a component makes of the resources of those who include it."""
    component = yaml.safe_load((folder / "kustomization.yaml").read_text())
    unknown = set(component) - {"apiVersion", "kind", "namespace", "resources", "patches"}
    assert component["kind"] == "Component" and not unknown, f"not rendered here: {unknown}"
    own = [each for entry in component["resources"] for each in documents(folder / entry)]
    return transform(component, resources + own)


def transform(kustomization, resources):
    for patch in kustomization.get("patches", []):
        target = patch["target"]
        chosen = [each for each in resources if each["kind"] == target["kind"] and
                  re.fullmatch(target["name"], each["metadata"]["name"])]
        assert chosen, f"a patch without a target: {target}"
        for resource in chosen:
            for operation in yaml.safe_load(patch["patch"]):
                apply_operation(resource, operation)
    if "namespace" in kustomization:
        for resource in resources:
            if resource["kind"] not in CLUSTER_SCOPED:
                resource["metadata"]["namespace"] = kustomization["namespace"]
    return resources


def apply_operation(resource, operation):
    """One operation of JSON Patch (RFC 6902) on a member of an object, or behind the last of a list ("-")."""
    *parents, last = (key.replace("~1", "/") for key in operation["path"].strip("/").split("/"))
    place = resource
    for key in parents:
        place = place[int(key) if isinstance(place, list) else key]
    assert operation["op"] in ("add", "replace", "remove"), operation
    if isinstance(place, list):
        assert (operation["op"], last) == ("add", "-"), operation
        place.append(copy.deepcopy(operation["value"]))
        return
    assert operation["op"] == "add" or last in place, f"nothing to {operation['op']}: {operation['path']}"
    if operation["op"] == "remove":
        del place[last]
        return
    place[last] = copy.deepcopy(operation["value"])

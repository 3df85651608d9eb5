"""The Kubernetes files are valid, rendered as their kustomizations say, and agree with each other."""
import json
import pathlib
import re
import shutil
import subprocess

import jsonschema
import kubernetes_validate
import pytest
import yaml

from manifests import KUBERNETES, documents, named, render
from version import VERSION

OVERLAYS = ["plain", "spot", "colocated", "gpu", "tls"]
# The oldest and the newest version of Kubernetes that the manifests are for.
VERSIONS = ["1.31", "1.37"]
SYSTEMD = KUBERNETES.parent / "systemd"
SCHEMAS = pathlib.Path(__file__).parent / "schemas"
# Kinds that Kubernetes itself does not know, by their schemas here.
CUSTOM = {"cert-manager.io/v1": "cert_manager"}
# What a task needs from SIGTERM to its end, in seconds; a ps, its drain timeout and this.
DRAIN_SECONDS = {"worker": 10, "ps": 5, "coordinator": 30}


def rendered(overlay):
    return documents(KUBERNETES / "overlays" / overlay / "rendered.yaml")


def by_name(resources):
    return {(each["kind"], each["metadata"]["name"]): each for each in resources}


def pod_templates():
    """{where: (task, pod template)} of all manifests."""
    templates = {}
    for overlay in OVERLAYS:
        for each in rendered(overlay):
            if each["kind"] == "Job":
                task = each["metadata"]["labels"]["app.kubernetes.io/component"]
                templates[f"{overlay} {task}"] = (task, each["spec"]["template"])
    for job in documents(KUBERNETES / "jobset.yaml")[0]["spec"]["replicatedJobs"]:
        templates[f"jobset {job['name']}"] = (job["name"], job["template"]["spec"]["template"])
    for kind, replicas in documents(KUBERNETES / "tfjob.yaml")[0]["spec"]["tfReplicaSpecs"].items():
        task = {"Chief": "coordinator"}.get(kind, kind.lower())
        templates[f"tfjob {task}"] = (task, replicas["template"])
    return templates


def unit_settings(task):
    """{setting: values} of the section [Service] of a task's unit, in the order in which systemd reads them."""
    text = (SYSTEMD / f"shoal-{task}.service.in").read_text().split("[Service]\n")[1].split("\n[Install]")[0]
    for name in ("supervision", "hardening"):
        text = text.replace(f"@SHOAL_{name.upper()}@", (SYSTEMD / f"{name}.conf").read_text())
    settings = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", text, re.M):
        settings.setdefault(key, []).append(value)
    return settings


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_rendered_is_what_the_kustomization_says(overlay):
    assert by_name(rendered(overlay)) == by_name(render(KUBERNETES / "overlays" / overlay))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kustomize_renders_the_same(overlay):
    # Debian's kubectl is too old to know `resources` that are folders.
    version = subprocess.run(["kubectl", "version", "--client", "--output=json"], capture_output=True, text=True,
                             check=False).stdout if shutil.which("kubectl") else ""
    if not version or "kustomizeVersion" not in json.loads(version):
        pytest.skip("there is no kubectl with kustomize 5 here")
    done = subprocess.run(["kubectl", "kustomize", KUBERNETES / "overlays" / overlay], capture_output=True, text=True, check=True)
    assert done.stdout == (KUBERNETES / "overlays" / overlay / "rendered.yaml").read_text()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_rendered_is_valid(overlay, version):
    for each in rendered(overlay):
        if each["apiVersion"] not in CUSTOM:
            kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_access_of_prometheus_is_valid(version):
    role, binding = documents(KUBERNETES.parent / "prometheus/kubernetes-access.yaml")
    for each in (role, binding):
        kubernetes_validate.validate(each, version, strict=True)
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    # What a discovery of role `pod` asks for.
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]


@pytest.mark.parametrize("name", ["jobset", "tfjob"])
def test_custom_resources_are_valid(name):
    resource, = documents(KUBERNETES / f"{name}.yaml")
    jsonschema.validate(resource, json.loads((SCHEMAS / f"{name}.json").read_text()))


@pytest.mark.parametrize("version", VERSIONS)
def test_pods_of_custom_resources_are_valid(version):
    for job in documents(KUBERNETES / "jobset.yaml")[0]["spec"]["replicatedJobs"]:
        kubernetes_validate.validate({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job["name"]}, **job["template"]},
                                     version, strict=True)
    for replicas in documents(KUBERNETES / "tfjob.yaml")[0]["spec"]["tfReplicaSpecs"].values():
        kubernetes_validate.validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, **replicas["template"]},
                                     version, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_counts_agree(overlay):
    resources = rendered(overlay)
    counts = named(resources, "ConfigMap", "shoal-cluster")["data"]
    for task, count in (("coordinator", 1), ("ps", int(counts["CLUSTER_PS"])), ("worker", int(counts["CLUSTER_WORKERS"]))):
        spec = named(resources, "Job", f"shoal-{task}")["spec"]
        assert (spec["completions"], spec["parallelism"]) == (count, count), task
        # The name in CLUSTER_HOSTS: Job, index, Service.
        assert counts["CLUSTER_HOSTS"] == "shoal-TASK-INDEX.shoal" and spec["template"]["spec"]["subdomain"] == "shoal"
    assert named(resources, "PodDisruptionBudget", "shoal-ps")["spec"]["minAvailable"] == int(counts["CLUSTER_PS"])
    assert named(resources, "Service", "shoal")["spec"]["publishNotReadyAddresses"] is True


def test_colocated_has_a_ps_beside_each_worker():
    """Three of each, no node with two of a kind, and a ps only where a worker is."""
    resources = rendered("colocated")
    counts = named(resources, "ConfigMap", "shoal-cluster")["data"]
    assert counts["CLUSTER_PS"] == counts["CLUSTER_WORKERS"]

    def others(task, kind):
        term, = named(resources, "Job", f"shoal-{task}")["spec"]["template"]["spec"]["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        return term["labelSelector"]["matchLabels"]["app.kubernetes.io/component"]
    assert [others("ps", "podAffinity"), others("ps", "podAntiAffinity"), others("worker", "podAntiAffinity")] == ["worker", "ps", "worker"]


def test_gpu_gives_each_worker_one_and_nobody_else():
    resources = rendered("gpu")
    for task in ("coordinator", "ps", "worker"):
        container, = named(resources, "Job", f"shoal-{task}")["spec"]["template"]["spec"]["containers"]
        asked = container["resources"]["limits"].get("nvidia.com/gpu")
        assert (asked, "--device=cuda:0" in container["command"]) == ((1, True) if task == "worker" else (None, False))
    worker = yaml.safe_load((KUBERNETES.parent / "compose/compose.yaml").read_text())["services"]["worker-3"]
    assert worker["profiles"] == ["gpu"] and "--device=cuda:0" in worker["command"]
    assert worker["deploy"]["resources"]["reservations"]["devices"] == [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}]
    # Both images are this checkout's, by the same Dockerfile.
    assert worker["image"] == f"shoal-example-cuda:{VERSION}" and worker["build"]["args"] == {"PRESET": "cuda"}


def test_measured_plans_have_a_place():
    """Where the programs look for what was measured (docs/gpu.md), each deployment with GPUs has a folder that they may write to."""
    deploy = KUBERNETES.parent
    assert 'kName = "shoal/plans"' in (deploy.parent / "worker/compute/cuda/tuning/algorithm_cache.cc").read_text(), "below XDG_CACHE_HOME"
    unit = unit_settings("worker")
    assert (unit.get("CacheDirectory"), unit.get("Environment")) == (["shoal"], ["XDG_CACHE_HOME=%C"])
    # Whoever purges the package expects no leftovers; a DynamicUser has its folder below private.
    assert "rm -rf /var/cache/shoal /var/cache/private/shoal" in (deploy / "package/postrm").read_text()
    image = (deploy / "docker/Dockerfile").read_text()
    home, = re.findall(r"^ENV .*\bXDG_CACHE_HOME=(\S+)", image, re.M)
    folder = f"{home}/shoal"
    assert re.search(rf"install --directory --owner=65532 --group=65532 .*{folder}$", image, re.M), "a new volume has the owner of what it covers"
    service = yaml.safe_load((deploy / "compose/compose.yaml").read_text())
    assert service["services"]["worker-3"]["volumes"] == [f"plans:{folder}"] and "plans" in service["volumes"]
    pod = named(rendered("gpu"), "Job", "shoal-worker")["spec"]["template"]["spec"]
    volume, = [mount["name"] for mount in pod["containers"][0]["volumeMounts"] if mount["mountPath"] == folder]
    assert {"name": volume, "emptyDir": {}} in pod["volumes"]


@pytest.mark.parametrize("where", [where for where, (task, _) in pod_templates().items() if task != "worker"])
def test_pods_that_listen_have_tls_or_say_insecure(where):
    """Else they end with 78: a pod's name is no loopback address."""
    container, = pod_templates()[where][1]["spec"]["containers"]
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}
    for source in container.get("envFrom", []):
        overlay = where.split()[0]
        environment.update(named(rendered(overlay), "ConfigMap", source["configMapRef"]["name"])["data"])
    assert ("SHOAL_TLS_DIR" in environment) != (environment.get("SHOAL_INSECURE") == "1"), environment


def certificates():
    """{name: spec} of the Certificates of the tasks and people, in the overlay `tls`."""
    found = {each["metadata"]["name"]: each["spec"] for each in rendered("tls") if each["kind"] == "Certificate"}
    assert found.pop("shoal-ca")["isCA"]
    return found


def test_objects_of_cert_manager_are_valid():
    schema = json.loads((SCHEMAS / "cert_manager.json").read_text())
    objects = [each for each in rendered("tls") if each["apiVersion"] in CUSTOM]
    assert {each["kind"] for each in objects} == {"Issuer", "Certificate"}
    for each in objects:
        jsonschema.validate(each, schema)
        # Each refers to an issuer of this namespace, and has a Secret of its own.
        if each["kind"] == "Certificate":
            named(objects, "Issuer", each["spec"]["issuerRef"]["name"])
            assert each["spec"]["secretName"] == each["metadata"]["name"]
    self_signed, = (each for each in objects if each["kind"] == "Issuer" and "selfSigned" in each["spec"])
    authority = named(objects, "Certificate", "shoal-ca")["spec"]
    assert authority["issuerRef"]["name"] == self_signed["metadata"]["name"]
    assert named(objects, "Issuer", "shoal")["spec"] == {"ca": {"secretName": authority["secretName"]}}


def test_certificates_of_cert_manager_are_what_a_daemon_takes():
    """One URI, for both ends of a connection, and not for encryption alone (docs/security.md, Identities)."""
    uris = {name: spec["uris"] for name, spec in certificates().items()}
    identities = {"coordinator": "coordinator", "ps-0": "ps/0", "ps-1": "ps/1", "worker": "worker", "operator": "operator", "viewer": "viewer"}
    assert uris == {f"shoal-{name}": [f"spiffe://shoal/job/fashion_mnist/{role}"] for name, role in identities.items()}
    for spec in certificates().values():
        assert spec["usages"] == ["digital signature", "server auth", "client auth"] and not spec.get("isCA")
        assert spec["issuerRef"] == {"name": "shoal", "kind": "Issuer"}
        assert spec["dnsNames"] == ["shoal"], "the server_name of Prometheus"


def test_every_pod_of_the_tls_overlay_mounts_its_certificate():
    """Of each Secret the files that a daemon needs, where it looks for them, readable by its group."""
    resources = rendered("tls")
    assert named(resources, "ConfigMap", "shoal-cluster")["data"]["SHOAL_TLS_DIR"] == "/etc/shoal/tls"
    secrets = {}
    for task in ("coordinator", "ps", "worker"):
        pod = named(resources, "Job", f"shoal-{task}")["spec"]["template"]["spec"]
        assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsUser"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        container, = pod["containers"]
        mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        assert mounts["/etc/shoal/tls"] == {"name": "tls", "mountPath": "/etc/shoal/tls", "readOnly": True}, "with subPath nothing is renewed"
        projected = volumes["tls"]["projected"]
        assert projected["defaultMode"] == 0o440
        *kept, revoked = projected["sources"]
        secrets[task] = [source["secret"]["name"] for source in kept]
        assert revoked["configMap"]["name"] == "shoal-revoked" and revoked["configMap"]["optional"]
        if task == "ps":
            assert "--tls_dir=/etc/shoal/tls/$(JOB_COMPLETION_INDEX)" in container["command"]
            for index, source in enumerate(kept):
                assert source["secret"]["items"] == [{"key": name, "path": f"{index}/{name}"} for name in ("ca.crt", "tls.crt", "tls.key")]
            assert revoked["configMap"]["items"] == [{"key": "revoked", "path": f"{index}/revoked"} for index in range(len(kept))]
        if task == "coordinator":
            assert volumes["operator"]["secret"] == {"secretName": "shoal-operator", "defaultMode": 0o440}
            assert mounts["/etc/shoal/operator"]["name"] == "operator"
        for probe in ("livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["scheme"] == "HTTPS"
    count = int(named(resources, "ConfigMap", "shoal-cluster")["data"]["CLUSTER_PS"])
    assert secrets == {"coordinator": ["shoal-coordinator"], "worker": ["shoal-worker"], "ps": [f"shoal-ps-{i}" for i in range(count)]}


@pytest.mark.parametrize("where", pod_templates())
def test_pods(where):
    task, template = pod_templates()[where]
    spec = template["spec"]
    environment = {variable["name"]: variable.get("value") for variable in spec["containers"][0]["env"]}
    drain_timeout = int(environment["SHOAL_DRAIN_TIMEOUT"]) if task == "ps" else 0
    assert spec["terminationGracePeriodSeconds"] > drain_timeout + DRAIN_SECONDS[task]
    # By these the NetworkPolicy and prometheus-kubernetes.yml know them.
    assert template["metadata"]["labels"] == {"app.kubernetes.io/name": "shoal", "app.kubernetes.io/component": task}
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    container, = spec["containers"]
    assert container["name"] == ("tensorflow" if where.startswith("tfjob") else "shoal")
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                            "capabilities": {"drop": ["ALL"]}}
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports.pop("http") == 9640 and list(ports.values()) == [2222]
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        scheme = {"scheme": "HTTPS"} if where.startswith("tls ") else {}
        assert container[probe]["httpGet"] == {"path": path, "port": "http", **scheme}


def test_a_ps_has_its_drain_timeout_elsewhere_too():
    deploy = KUBERNETES.parent
    unit = (deploy / "systemd/shoal-ps.service.in").read_text()
    settings = (deploy / "systemd/ps.env").read_text()
    grace, = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.M)
    drain_timeout, = re.findall(r"^SHOAL_DRAIN_TIMEOUT=(\d+)$", settings, re.M)
    assert int(grace) > int(drain_timeout) + DRAIN_SECONDS["ps"]
    services = yaml.safe_load((deploy / "compose/compose.yaml").read_text())["services"]
    for name in ("ps-0", "ps-1"):
        assert services[name]["stop_grace_period"] == "1m"
        assert 60 > services[name]["environment"]["SHOAL_DRAIN_TIMEOUT"] + DRAIN_SECONDS["ps"]


def test_the_unit_of_a_worker_reaches_gpus_and_no_other_device():
    for task in ("coordinator", "ps"):
        settings = unit_settings(task)
        assert (settings["PrivateDevices"], "DeviceAllow" in settings) == (["yes"], False), task
    settings = unit_settings("worker")
    # Of settings with one value the last counts.
    assert settings["PrivateDevices"][-1] == "no", "it would have a /dev without GPUs"
    assert settings["DevicePolicy"] == ["closed"]
    # nvidia-frontend: /dev/nvidia0 and nvidiactl of older drivers; caps: of parts of a GPU.
    groups = ("nvidia", "nvidia-frontend", "nvidiactl", "nvidia-uvm", "nvidia-caps")
    assert settings["DeviceAllow"] == [f"char-{group} rw" for group in groups]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_disruptions_cost_no_try(overlay):
    for task in ("coordinator", "ps", "worker"):
        spec = named(rendered(overlay), "Job", f"shoal-{task}")["spec"]
        assert spec["template"]["spec"]["restartPolicy"] == "Never", "what podFailurePolicy needs"
        first, *others = spec["podFailurePolicy"]["rules"]
        assert first == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        assert {rule["action"]: rule["onExitCodes"]["values"] for rule in others} == {"Ignore": [143], "FailJob": [64, 65, 77, 78]}


def test_yaml_is_written_by_one_hand():
    """No tabs, no line beyond what a screen shows."""
    for path in KUBERNETES.rglob("*.yaml"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert "\t" not in line and len(line) <= 130 and not re.search(r"\s$", line), f"{path}:{number}"

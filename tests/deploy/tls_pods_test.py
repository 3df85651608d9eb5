"""The clusters of deploy/ that use TLS train on pods of our own (pods.py): certificates, how they are mounted and who may read them are
those of the manifests."""
import json
import os

import pytest

from certificates import Authority, openssl
from manifests import KUBERNETES, documents
from pod_jobs import add_all, end, pods, steps_more  # noqa: F401 (a fixture)
from pods import SOURCE, USER, can_make_pods, compose_files, tasks_of_compose, tasks_of_jobs, update_secrets, wait_for

pytestmark = pytest.mark.skipif(not can_make_pods(), reason="pods of our own need root, network namespaces and setpriv")

FILES = ("ca.crt", "tls.crt", "tls.key")


class CertManager:
    """Issues what the Certificates of a manifest ask for, as Secrets: {name: {key: text}}."""

    def __init__(self, directory, resources):
        self.authority = Authority(directory)
        self.certificates = [each["spec"] for each in resources if each["kind"] == "Certificate" and not each["spec"].get("isCA")]
        self.generation = 0

    def secrets(self):
        """New ones each time."""
        self.generation += 1
        issued = {}
        for spec in self.certificates:
            directory = self.authority.forge(f"{spec['secretName']}.{self.generation}", spec["uris"])
            # In the form that cert-manager writes by default.
            assert spec["privateKey"]["algorithm"] == "ECDSA"
            openssl("ec", "-in", directory / "tls.key", "-out", directory / "tls.key")
            issued[spec["secretName"]] = {name: (directory / name).read_text() for name in FILES}
        return issued


def check_probes(pods):
    for name, pod in pods.pods.items():
        pods.wait_for(lambda: [pod.probe("livenessProbe"), pod.probe("readinessProbe")] == [200, 200], f"{name} is ready")


def test_kubernetes_with_cert_manager(pods, tmp_path):
    resources = documents(KUBERNETES / "overlays/tls/rendered.yaml")
    manager = CertManager(tmp_path / "issuer", resources)
    secrets = manager.secrets()
    update_secrets(resources, tmp_path, secrets)
    add_all(pods, tasks_of_jobs(resources, tmp_path))
    steps_more(pods, 200)
    check_probes(pods)
    roles = {"shoal-coordinator-0": "coordinator", "shoal-ps-0": "ps/0", "shoal-ps-1": "ps/1",
             **{f"shoal-worker-{i}": "worker" for i in range(3)}}
    assert {f"{name}.shoal" for name in roles} == set(pods.pods)
    for name, role in roles.items():
        assert f"identity=spiffe://shoal/job/fashion_mnist/{role}\n" in pods.pods[f"{name}.shoal"].output(), name
    coordinator = pods.pods["shoal-coordinator-0.shoal"]

    def status():
        return coordinator.execute("shoal", "status", "--json", "--run_dir", "/var/lib/shoal/run", "--tls_dir", "/etc/shoal/operator")
    assert json.loads(status().stdout)["phase"] == "training", status().stderr

    # Renewed: the kubelet writes the volumes again. No pod is started again.
    starts = {name: pod.starts for name, pod in pods.pods.items()}
    renewed = manager.secrets()
    update_secrets(resources, tmp_path, renewed)
    for name, pod in pods.pods.items():
        job, index, _ = name.replace(".", "-").rsplit("-", 2)
        own = renewed[f"{job}-{index}" if job == "shoal-ps" else job]["tls.crt"]
        wait_for(lambda: pod.certificate() == own, f"{name} shows its new certificate")
    steps_more(pods, 200)
    assert {name: pod.starts for name, pod in pods.pods.items()} == starts

    # Revoked: the operator, by a ConfigMap that was not there.
    assert status().returncode == 0
    revoked = {"revoked": "spiffe://shoal/job/fashion_mnist/operator\n"}
    update_secrets(resources, tmp_path, {**renewed, "shoal-revoked": revoked})
    wait_for(lambda: status().returncode != 0, "the operator is rejected")
    assert "revoked" in status().stderr
    end(pods, tmp_path / "run/run", killed_workers=0)


def issue_for_compose(directory):
    """What docs/security.md makes for compose, in an image; the files have the owners that it gives them."""
    authority = Authority(directory)
    names = {"coordinator-0": "coordinator", "operator": "operator", "prometheus": "viewer",
             **{f"{task}-{index}": f"{task}/{index}" for task, count in (("ps", 2), ("worker", 4)) for index in range(count)}}
    for name, role in names.items():
        made = authority.issue(role, name)
        for path in (made, *made.iterdir()):
            os.chown(path, 65534 if name == "prometheus" else USER, -1)


def test_compose_with_secrets(pods, tmp_path):
    certificates = tmp_path / "certificates"
    issue_for_compose(certificates)
    compose = compose_files("compose.yaml", "tls.yaml", TLS_DIR=certificates)
    for secret in compose["secrets"].values():
        assert os.path.isfile(secret["file"]), secret
    for service in compose["services"].values():
        sources = [each if isinstance(each, str) else each["source"] for each in service.get("secrets", [])]
        assert len(sources) == len(set(sources)), "docker-compose 1 mounts a source once"
    for task in tasks_of_compose(compose, tmp_path):
        task.environment["SHOAL_HTTP_PORT"] = "9640"  # the image's
        pods.add(task)
    steps_more(pods, 200)
    for name, pod in pods.pods.items():
        role = name.replace("coordinator-0", "coordinator").replace("-", "/")
        assert f"identity=spiffe://shoal/job/small/{role}\n" in pod.output(), name
        # The health check of the image.
        variables = [f"{key}={pod.task.environment[key]}" for key in ("SHOAL_HTTP_PORT", "SHOAL_TLS_DIR")]
        wait_for(lambda: pod.execute("env", *variables, SOURCE / "deploy/docker/healthcheck").returncode == 0, f"{name} is healthy")
    coordinator = pods.pods["coordinator-0"]
    said = coordinator.execute("shoal", "status", "--json", "--chief", "coordinator-0:2222", "--tls_dir", "/run/secrets/operator")
    assert json.loads(said.stdout)["phase"] == "training", said.stderr
    end(pods, tmp_path / "run/run", killed_workers=0)

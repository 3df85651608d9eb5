"""Rules, alerts and dashboard: in the real Prometheus, over a cluster of real daemons."""
import json
import re
import signal
import subprocess

import pytest
import yaml

from prometheus_server import DEPLOY, WINDOW, Prometheus, available
from real_cluster import SOURCE, wait_for
from watched_cluster import WatchedCluster, catalog

pytestmark = pytest.mark.skipif(not available(), reason="needs prometheus and promtool")

RULES = [rule for name in ("recording.yml", "alerts.yml") for group in yaml.safe_load((DEPLOY / name).read_text())["groups"]
         for rule in group["rules"]]
RECORDED = {rule["record"]: rule["expr"] for rule in RULES if "record" in rule}
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
DASHBOARD = json.loads((SOURCE / "deploy/grafana/dashboard.json").read_text())


def panel_expressions():
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"].replace("$cluster", "test").replace("$__rate_interval", WINDOW)


def documented_expressions():
    """Those of docs/monitoring.md, without what they are compared with."""
    table = (SOURCE / "docs/monitoring.md").read_text().split("| question | expression |")[1].split("\n\n")[0]
    for line in table.splitlines()[2:]:
        yield re.sub(r" > \d+$", "", re.search(r"`([^`]*)`", line)[1]).replace("[5m]", f"[{WINDOW}]")


def selectors(expression):
    """Every metric that an expression names, with its matchers."""
    return re.findall(r"\b(?:shoal|process)[\w:]*(?:\{[^}]*\})?", expression)


def metric_exists(name):
    if name in RECORDED:
        return True
    if re.sub("_(bucket|sum|count)$", "", name) in catalog():
        base = re.sub("_(bucket|sum|count)$", "", name)
        return name == base or catalog()[base][1] == "histogram"
    return False


def test_the_files_are_valid():
    def check(*command, **options):
        done = subprocess.run(["promtool", *map(str, command)], capture_output=True, text=True, check=False, **options)
        assert done.returncode == 0, done.stdout + done.stderr
    check("check", "config", DEPLOY / "prometheus.yml")
    check("check", "rules", "--lint-fatal", DEPLOY / "recording.yml", DEPLOY / "alerts.yml")
    check("test", "rules", SOURCE / "tests/monitoring/alerts_unit_test.yml")


def test_the_file_for_tls_is_the_other_one_with_certificates(tmp_path):
    plain, tls = (yaml.safe_load((DEPLOY / name).read_text()) for name in ("prometheus.yml", "prometheus-tls.yml"))
    scrape, = tls["scrape_configs"]
    assert (scrape.pop("scheme"), scrape["tls_config"].pop("min_version")) == ("https", "TLS13")
    files = scrape.pop("tls_config")
    assert tls == plain
    assert files == {key: f"/run/secrets/{name}" for key, name in (("ca_file", "ca.crt"), ("cert_file", "tls.crt"), ("key_file", "tls.key"))}
    # promtool looks whether the files are there.
    for name in ("ca.crt", "tls.crt", "tls.key", "recording.yml", "alerts.yml"):
        (tmp_path / name).write_text((DEPLOY / name).read_text() if name.endswith(".yml") else "")
    config = tmp_path / "config.yml"
    config.write_text((DEPLOY / "prometheus-tls.yml").read_text().replace("/run/secrets", str(tmp_path)))
    done = subprocess.run(["promtool", "check", "config", config], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_kubernetes_file_is_valid_but_for_what_debian_leaves_out(tmp_path):
    # Debian's Prometheus is built without discovery in Kubernetes; the rest is checked.
    for name in ("recording.yml", "alerts.yml"):
        (tmp_path / name).write_text((DEPLOY / name).read_text())
    config = yaml.safe_load((DEPLOY / "prometheus-kubernetes.yml").read_text())
    for scrape in config["scrape_configs"]:
        assert scrape.pop("kubernetes_sd_configs") == [{"role": "pod"}]
    (tmp_path / "config.yml").write_text(yaml.safe_dump(config))
    done = subprocess.run(["promtool", "check", "config", tmp_path / "config.yml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_expression_names_a_metric_that_does_not_exist():
    expressions = [*panel_expressions(), *documented_expressions(), *(rule["expr"] for rule in RULES)]
    assert len(expressions) > 50
    for expression in expressions:
        for selector in selectors(expression):
            assert metric_exists(selector.split("{")[0]), f"{selector} in {expression}"


def test_the_dashboard_takes_any_data_source_and_its_files_are_found():
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in DASHBOARD["panels"]:
        if panel["type"] != "row":
            assert panel["datasource"] == source and panel["targets"]
            assert all(target["datasource"] == source for target in panel["targets"])
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    datasource, cluster = DASHBOARD["templating"]["list"]
    assert datasource["type"] == "datasource" and datasource["query"] == "prometheus"
    assert cluster["query"]["query"] == cluster["definition"] == "label_values(shoal_job_info, cluster)"
    # As deploy/compose mounts them.
    mounts = dict(volume.removesuffix(":ro").split(":") for volume in
                  yaml.safe_load((SOURCE / "deploy/compose/compose.yaml").read_text())["services"]["grafana"]["volumes"])
    provisioning = SOURCE / "deploy/compose" / next(here for here, there in mounts.items() if there == "/etc/grafana/provisioning")
    (provider,) = yaml.safe_load((provisioning / "dashboards/shoal.yml").read_text())["providers"]
    assert f"{provider['options']['path']}/shoal.json" == mounts["../grafana/dashboard.json"]
    (data,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"]
    assert data["type"] == "prometheus" and data["url"] == "http://prometheus:9090"


def test_targets_are_the_services_of_compose():
    services = yaml.safe_load((SOURCE / "deploy/compose/compose.yaml").read_text())["services"]
    targets = [target for group in yaml.safe_load((DEPLOY / "targets.yml").read_text()) for target in group["targets"]]
    unasked = [name for name, service in services.items() if "profiles" not in service]
    assert sorted(targets) == sorted(f"{name}:9640" for name in unasked if name.split("-")[0] in ("coordinator", "ps", "worker"))


def test_every_alert_has_a_unit_test_and_a_runbook():
    tested = (SOURCE / "tests/monitoring/alerts_unit_test.yml").read_text()
    runbooks = (SOURCE / "docs/operations.md").read_text()
    for name, alert in ALERTS.items():
        assert f"alertname: {name}\n        exp_alerts" in tested, name
        assert alert["annotations"]["runbook"] == f"docs/operations.md#{name.lower()}"
        assert f"\n### {name}\n" in runbooks, name


def test_every_expression_has_data(tmp_path):
    with WatchedCluster(tmp_path) as cluster:
        cluster.start_all()
        with Prometheus(tmp_path / "prometheus", cluster.targets()) as prometheus:
            prometheus.await_targets(5)
            wanted = {*panel_expressions(), *RECORDED, *RECORDED.values(), *documented_expressions()}
            # An alert that has nothing to say has no data; what it looks at must have.
            wanted |= {selector for alert in ALERTS.values() for selector in selectors(alert["expr"])}
            for expression in sorted(wanted):
                wait_for(lambda: prometheus.query(expression), f"data of {expression}")
            for rule in prometheus.ask("rules")["groups"][0]["rules"]:
                assert rule["health"] == "ok", rule


def test_a_run_is_seen_from_its_start_to_its_end(tmp_path):
    epochs, examples, batch_size = 60, 4000, 16
    with WatchedCluster(tmp_path, epochs=epochs, examples=examples, batch_size=batch_size, checkpoint={"every_steps": 500}) as cluster:
        cluster.start_all()
        workers = [process for name, process in cluster.watched.items() if name.startswith("worker")]
        cluster.await_value("chief-0", "shoal_checkpoints_total", lambda checkpoints: checkpoints > 0)
        for process in workers:  # until somebody watches: a fast machine ends the job between two scrapes
            process.signal(signal.SIGSTOP)
        with Prometheus(tmp_path / "prometheus", cluster.targets()) as prometheus:
            # A step may have been on its way, so the coordinator's figures are asked for each time.
            for metric in ("shoal_steps_done_total", "shoal_examples_total", "shoal_loss", "shoal_checkpoints_total"):
                wait_for(lambda: [float(result["value"][1]) for result in prometheus.query(metric)] == [cluster.value("chief-0", metric)],
                         f"{metric} is seen as the coordinator has it")
            for process in workers:
                process.signal(signal.SIGCONT)
            for process in cluster.watched.values():
                assert process.wait() == 0, process.output()[-3000:]
            wait_for(lambda: not prometheus.query("up == 1"), "Prometheus sees that all are gone")
            steps = epochs * (examples // batch_size)

            def of_the_run(expression):
                (result,) = prometheus.query(expression)
                return float(result["value"][1])

            assert of_the_run("max_over_time(shoal_job_steps[10m])") == steps
            assert 0 < of_the_run("max_over_time(shoal_steps_done_total[10m])") <= steps
            assert of_the_run("max_over_time(shoal_examples_total[10m])") == batch_size * of_the_run("max_over_time(shoal_steps_done_total[10m])")
            assert of_the_run("resets(shoal_steps_done_total[10m])") == 0
            assert of_the_run("max_over_time(shoal_timelines_opened_total[10m])") == 1
            # Nothing was wrong, and an end is no fault. Where others want the cores too, a worker that has to wait
            # for one may truly be that far behind, or its input thread.
            busy = ("ShoalStalenessHigh", "ShoalWorkerStarved")
            assert prometheus.query(f'count_over_time(ALERTS{{alertstate="firing", alertname!~"{"|".join(busy)}"}}[10m])') == []
            assert [alert for alert in prometheus.ask("alerts")["alerts"] if alert["labels"]["alertname"] not in busy] == []

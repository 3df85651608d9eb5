"""What a run directory keeps: good checkpoints from NaN, and one coordinator from another."""
import json
import os
import shutil

import numpy as np
from safetensors.numpy import load_file

from endless_job import EPOCHS
from real_cluster import Cluster, free_ports, shoal, wait_for, write_job


def write_floats(directory, bad):
    """The training images as float32, the pixels of example 17 so large where `bad` that sums of them are infinite."""
    images = np.fromfile(directory / "train-images.idx", np.uint8, offset=16).reshape(-1, 8, 8).astype(np.float32)
    if bad:
        images[17] = 3e38
    np.save(directory / "train-images.npy", images)


def stored_checkpoints(run):
    """[(step, whether all values are finite), ...], newest first."""
    checkpoints = []
    for manifest in (run / "checkpoints").glob("step-*/manifest.json"):
        finite = all(np.isfinite(value).all() for file in manifest.parent.glob("*.safetensors") for value in load_file(file).values())
        checkpoints.append((json.loads(manifest.read_text())["cut_step"], finite))
    return sorted(checkpoints, reverse=True)


def test_nan_from_the_data_costs_no_good_checkpoint(tmp_path):
    data = {"training": {"images": "train-images.npy", "labels": "train-labels.idx"}}
    job = write_job(tmp_path, data=data, epochs=1, checkpoint={"every_steps": 5, "keep": 2})
    write_floats(tmp_path, bad=False)
    run = tmp_path / "run"
    assert shoal("train", job, "--run_dir", run).returncode == 0
    good_model = (run / "model/model.safetensors").read_bytes()
    assert stored_checkpoints(run)[0] == (25, True)

    # Somebody has spoilt the data, and trains longer: 100 steps, of which most would be checkpoints of NaN.
    write_floats(tmp_path, bad=True)
    longer = json.loads(job.read_text()) | {"epochs": 5}
    job.write_text(json.dumps(longer))
    done = shoal("train", job, "--run_dir", run)
    said = done.stdout + done.stderr
    assert done.returncode == 65, said
    stored = stored_checkpoints(run)
    finite = [step for step, is_finite in stored if is_finite]
    assert len(finite) == 2 and len(stored) <= 3, stored
    newest = next(path.name for path in (run / "checkpoints").iterdir() if path.name.startswith(f"step-{finite[0]:012d}"))
    assert newest in said, said
    # A worker that had not come yet was told nothing.
    lives = [log.read_text().rpartition(" at their defaults")[2] for log in (run / "logs").glob("worker-*.log")]
    told = [life.partition("the job has failed: ")[2] for life in lives if "working in timeline" in life]
    assert told, lives
    for last in told:
        assert "not finite numbers" in last and "drain" not in last and "coordinator" not in last, lives
    list_, verified = (shoal("checkpoint", command, run).stdout for command in ("list", "verify"))
    assert verified.count("NOT FINITE") == list_.count("  NO  ") == len(stored) - 2, verified
    assert (run / "model/model.safetensors").read_bytes() == good_model
    rows = [line.split() for line in shoal("checkpoint", "list", run).stdout.splitlines()[1:]]
    assert [(int(row[0]), row[-2]) for row in rows] == [(step, "yes" if finite else "NO") for step, finite in stored]

    # How it ended is asked later, too.
    asked = shoal("status", run, "--json")
    assert asked.returncode == 0, asked.stderr
    status = json.loads(asked.stdout)
    assert (status["phase"], status["exit_code"], status["run_dir"]) == ("failed", 65, str(run)), status
    assert newest in status["error"], status
    for command in ("drain", "chief"), ("checkpoint", "now"):
        silent = shoal(*command, run)
        assert silent.returncode == 138 and newest in silent.stderr, (command, silent.stderr)

    # With the data mended it goes on from there.
    write_floats(tmp_path, bad=False)
    done = shoal("train", job, "--run_dir", run)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"step {finite[0]}" in done.stdout + done.stderr
    assert stored_checkpoints(run)[0] == (125, True)
    status = json.loads(shoal("status", run, "--json").stdout)
    assert status["phase"] == "finished" and "exit_code" not in status, status


def files_in(run):
    """{path: bytes} of a run directory; what renews a lease is left out of it."""
    return {path.relative_to(run): b"" if path.parent.name == ".lease" else path.read_bytes()
            for path in run.rglob("*") if path.is_file()}


def test_a_rejected_coordinator_leaves_the_run_directory_alone(tmp_path):
    job, run = write_job(tmp_path, epochs=EPOCHS), tmp_path / "run"
    with Cluster(tmp_path / "first", workers=1) as first, Cluster(tmp_path / "second", workers=1) as second:
        first.start("ps")
        first.start_chief(job, run)
        wait_for(lambda: (run / ".lease/1").exists() and (run / "chief.address").exists(), "a coordinator that leads")
        before = files_in(run)

        second.start("ps")
        assert second.start_chief(job, run).wait() == 78
        assert files_in(run) == before

        train = shoal("train", job, "--run_dir", run)
        assert train.returncode == 78, train.stdout + train.stderr
        assert str(first.chief) in train.stderr, train.stderr
        assert "run directory" in train.stdout, train.stdout
        assert files_in(run) == before

        assert shoal("status", "--run_dir", run).returncode == 0
        first.start_worker(0)
        wait_for(lambda: (first.status() or {}).get("steps_done", 0) > 0, "steps of the first")


def test_the_run_directory_of_a_finished_job_commands_no_other(tmp_path):
    over, run = tmp_path / "over", tmp_path / "run"
    first, second = write_job(tmp_path / "first"), write_job(tmp_path / "second", epochs=EPOCHS)
    with Cluster(tmp_path / "logs", workers=1) as cluster:
        job = cluster.start("ps"), cluster.start_chief(first, over), cluster.start_worker(0)
        assert [process.wait() for process in job] == [0, 0, 0]
        # Dismissing a ps is not losing it.
        assert "lost ps" not in job[1].output(), job[1].output()
        orders = ("drain", "chief"), ("drain", "worker:0"), ("checkpoint", "now")
        for command in orders:
            silent = shoal(*command, over)
            assert silent.returncode == 138, (command, silent.stderr)
            assert f" {over}: " in silent.stderr and str(cluster.chief) in silent.stderr, (command, silent.stderr)
            assert f"shoal status {over}" in silent.stderr, (command, silent.stderr)

        def check_told():
            for flags in [], ["--watch"]:
                told = shoal("status", over, *flags)
                assert told.returncode == 0, told.stderr
                assert ", finished (" in told.stdout and f"{over}/model\n" in told.stdout, told.stdout
            found = json.loads(shoal("status", over, "--json").stdout)
            assert (found["phase"], found["steps_done"]) == ("finished", found["total_steps"]), found
            assert [epoch["epoch"] for epoch in found["history"]] == [0, 1], found
        check_told()

        def check_rejected(command, does):
            done = shoal(*command, "--run_dir", over)
            assert done.returncode == 78 and done.stdout == "", (command, done.stdout, done.stderr)
            said = done.stderr
            assert f"{cluster.chief}: " in said and f" {over} " in said and f" {does} " in said and f" {run} " in said, said
            assert f"--chief={cluster.chief}" in said and f"shoal checkpoint list {over}" in said, said

        def steps():
            return (cluster.status() or {}).get("steps_done", 0)

        # Another job, at the addresses of the first: one that waits yet, then one that trains.
        chief = cluster.start_chief(second, run)
        wait_for(cluster.status, "a coordinator that waits for its ps")
        for command in orders:
            check_rejected(command, "waits for its ps, to lead")
        cluster.start("ps")
        worker = cluster.start_worker(0)
        wait_for(steps, "steps of the second job")
        for command in orders:
            check_rejected(command, "leads")
        check_told()
        done = steps()
        wait_for(lambda: steps() > done, "more of them")
        assert chief.popen.poll() is None and worker.popen.poll() is None

        # By its address, and by its run directory wherever that is mounted, it does as it is told; so does it where no lease is left.
        elsewhere = tmp_path / "elsewhere"
        elsewhere.symlink_to(run)
        assert shoal("checkpoint", "now", "--chief", cluster.chief).returncode == 0
        assert shoal("status", elsewhere).returncode == 0
        shutil.rmtree(over / ".lease")
        assert shoal("status", over).returncode == 0
        drained = shoal("drain", "chief", elsewhere)
        assert drained.returncode == 0, drained.stderr
        assert chief.wait() == 143


def test_a_job_with_fewer_epochs_than_are_done_is_rejected(tmp_path):
    job, run = write_job(tmp_path, epochs=2), tmp_path / "run"
    assert shoal("train", job, "--run_dir", run).returncode == 0
    before = files_in(run)
    done = shoal("train", job, "--run_dir", run, "--epochs", "1")
    assert done.returncode == 78, done.stdout + done.stderr
    assert "$.epochs" in done.stderr and "training small with" not in done.stdout, done.stdout + done.stderr
    assert files_in(run) == before


def test_a_second_cluster_on_one_run_directory_is_rejected(tmp_path):
    job, run = write_job(tmp_path, epochs=EPOCHS), tmp_path / "run"
    with Cluster(tmp_path / "first", workers=1) as first, Cluster(tmp_path / "second", workers=1) as second:
        ps, chief, _ = first.start("ps"), first.start_chief(job, run), first.start_worker(0)
        wait_for(lambda: (first.status() or {}).get("steps_done", 0) > 0, "steps of the first")
        second.start("ps")
        late = second.start_chief(job, run)
        assert late.wait() == 78, late.output()
        for word in (f"the coordinator at {first.chief}", f"pid {chief.popen.pid}", "--run_dir"):
            assert word in late.output()

        # One that was killed with its ps holds up nobody on its machine.
        ps.kill()
        chief.kill()
        second.start_chief(job, run, name="successor")
        second.start_worker(0)
        wait_for(lambda: (second.status() or {}).get("steps_done", 0) > 0, "steps of the successor")


def table_job(directory, header, test_columns="a,b,price"):
    """A job of tables, of which neither data source names its features."""
    values = np.random.default_rng(1).normal(size=(64, 3)).astype(np.float32)
    for name, columns in (("train", "a,b,price"), ("test", test_columns)):
        np.savetxt(directory / f"{name}.csv", values, delimiter=",", header=columns if header else "", comments="")
    model = {"class_name": "Sequential", "config": {"name": "line", "layers": [
        {"class_name": "InputLayer", "config": {"batch_shape": [None, 2], "name": "x"}},
        {"class_name": "Dense", "config": {"units": 1, "name": "y"}}]}}
    data = {part: {"format": "csv", "path": f"{name}.csv", "labels": "price" if header else "2", "header": header}
            for part, name in (("training", "train"), ("test", "test"))}
    return write_job(directory, model=model, data=data, loss="mean_squared_error", metrics=[], epochs=1)


def test_the_ps_of_a_run_are_not_taken_by_another_run_while_it_trains(tmp_path):
    job = write_job(tmp_path, epochs=EPOCHS)
    ours, other = tmp_path / "ours", tmp_path / "other"
    with Cluster(tmp_path / "logs", workers=1) as cluster:
        def steps():
            return (cluster.status() or {}).get("steps_done", 0)

        def begin_other(*arguments, name):
            """A coordinator of the other run, at another address, with the same ps."""
            cluster.spec["chief"] = [f"127.0.0.1:{free_ports(1)[0]}"]
            return cluster.start("chief", 0, [f"--job={job}", f"--run_dir={other}", *arguments], name=name)

        cluster.start("ps")
        chief, worker = cluster.start_chief(job, ours), cluster.start_worker(0)
        wait_for(steps, "steps")
        late = begin_other(name="late")
        assert late.wait() == 78, late.output()
        for word in (cluster.chief, f"pid {chief.popen.pid}", str(ours), "--take_over"):
            assert word in late.output(), late.output()
        done = steps()
        wait_for(lambda: steps() > done, "more steps of the first")

        taker = begin_other("--take_over", name="taker")
        assert chief.wait() == 77, chief.output()
        for word in (cluster.spec["chief"][0], f"pid {taker.popen.pid}", str(other)):
            assert word in chief.output(), chief.output()
        worker.kill()

        # One that was killed holds the ps for a while only, one that ends in order not at all; a successor of its run takes over.
        taker.kill()
        again = begin_other(name="again")
        again.wait_for_output("adopted timeline")
        again.kill()
        cluster.spec["chief"] = [cluster.chief]
        heir = cluster.start_chief(job, ours, name="heir")
        heir.wait_for_output("adopted timeline")
        cluster.start_worker(0, name="worker-of-heir")
        done = steps()
        wait_for(lambda: steps() > done, "steps of the heir")


def test_a_run_goes_on_with_its_columns_whether_they_are_named_or_not(tmp_path):
    # Columns without a header have no names that `shoal train` could write into the run.
    job, run = table_job(tmp_path, header=False), tmp_path / "run"
    train = lambda epochs, *columns: shoal("train", job, "--run_dir", run, "--workers", "1", "--epochs", epochs, *(
        ("--set", f"data.training.features={json.dumps(columns)}") if columns else ()))
    assert train(1).returncode == 0
    turned = train(2, "1", "0")
    said = turned.stdout + turned.stderr
    assert turned.returncode == 78 and "$.data.training.features: " in said and '["1","0"]' in said, said
    same = train(2, "0", "1")
    assert same.returncode == 0 and "resuming" in same.stdout, same.stdout + same.stderr
    assert train(3).returncode == 0


def test_a_test_set_whose_columns_are_called_otherwise_can_be_told_so(tmp_path):
    job, run = table_job(tmp_path, header=True, test_columns="A,B,price"), tmp_path / "run"
    rejected = shoal("train", job, "--run_dir", run)
    said = rejected.stdout + rejected.stderr
    assert rejected.returncode == 78 and 'test.csv: ' in said and 'column "a"' in said and "--set 'data.test.features=[...]'" in said, said
    named = ("--set", 'data.test.features=["A","B"]')
    assert shoal("train", job, "--run_dir", run, *named).returncode == 0
    # A run that was begun when columns were taken by place says no names of them.
    begun = json.loads((run / "job.json").read_text())
    del begun["data"]["test"]["features"]
    (run / "job.json").write_text(json.dumps(begun))
    more = shoal("train", job, "--run_dir", run, "--epochs", "2", *named)
    assert more.returncode == 0, more.stdout + more.stderr


def modes(run):
    """The permissions of all directories of a run, and of all files, as sets. Keys are nobody's but the owner's, whatever the run's are."""
    paths = [run, *(path for path in run.rglob("*") if not path.is_relative_to(run / "tls"))]
    assert any(path.name == "manifest.json" for path in paths) and (run / "model/model.safetensors").exists()
    return tuple({path.stat().st_mode & 0o777 for path in paths if path.is_dir() == directories} for directories in (True, False))


def test_the_mode_of_a_run_directory_decides_who_reads_the_run(tmp_path):
    job, new, shared = write_job(tmp_path), tmp_path / "new", tmp_path / "shared"
    before = os.umask(0o022)
    try:
        shared.mkdir()
        shared.chmod(0o750)
        for run, wanted in ((new, ({0o700}, {0o600})), (shared, ({0o750}, {0o640}))):
            trained = shoal("train", job, "--run_dir", run)
            assert trained.returncode == 0, trained.stdout + trained.stderr
            assert modes(run) == wanted, {str(path): oct(path.stat().st_mode) for path in run.rglob("*")}
    finally:
        os.umask(before)

"""Strangers in a run directory, and data and models that ruin what is written there."""
import json
import resource

import numpy as np
from safetensors.numpy import load_file

from honest_cluster import HonestCluster
from real_cluster import MODEL, Cluster, shoal, step_records, wait_for, write_job
from sanitized import seconds_of


def checkpoints(run):
    """The directories that have a manifest, oldest first."""
    return sorted(path.parent for path in run.glob("checkpoints/*/manifest.json") if path.is_file())


def is_finite(checkpoint):
    return all(np.isfinite(values).all() for path in checkpoint.glob("*.safetensors") for values in load_file(path).values())


def test_a_run_directory_has_one_coordinator(tmp_path):
    with HonestCluster(tmp_path / "first") as honest, Cluster(tmp_path / "second") as second:
        honest.start_all()
        wait_for(lambda: checkpoints(honest.run), "a checkpoint")
        second.start("ps")
        other = second.start_chief(honest.job, honest.run)
        second.start_worker(0)
        assert other.wait() != 0
        assert honest.chief in other.output(), other.output()
        honest.check_serves()
        newest = checkpoints(honest.run)[-1]
        wait_for(lambda: checkpoints(honest.run)[-1] != newest, "another checkpoint")
        # Its holder killed, the directory is free for the next one in bounded time.
        honest.coordinator.kill()
        heir = second.start_chief(honest.job, honest.run, name="heir")
        heir.wait_for_output("training:")


def test_a_picture_whose_sums_are_infinite_costs_no_good_checkpoint(tmp_path):
    job = write_job(tmp_path / "job", batch_size=4, epochs=1, checkpoint={"every_steps": 5, "keep": 3})
    images = np.random.default_rng(1).random((400, 8, 8), dtype=np.float32)
    np.save(job.parent / "images.npy", images)
    fields = json.loads(job.read_text())
    fields["data"]["training"]["images"] = "images.npy"
    job.write_text(json.dumps(fields))
    records = tmp_path / "records"
    records.mkdir()
    assert shoal("train", job, "--run_dir", tmp_path / "clean", "--workers", "1", SHOAL_STEP_RECORDS=str(records)).returncode == 0
    images[next(examples[0] for _, step, examples in step_records(records) if step == 50)] = 3e38
    np.save(job.parent / "images.npy", images)
    fields["epochs"] = 10
    job.write_text(json.dumps(fields))

    run = tmp_path / "run"
    done = shoal("train", job, "--run_dir", run, "--workers", "1")
    good = [checkpoint.name for checkpoint in checkpoints(run) if is_finite(checkpoint)]
    assert good, "nothing is left to go on from"
    assert done.returncode not in (0, 143), done.stdout + done.stderr
    assert "finite" in done.stdout + done.stderr, done.stdout + done.stderr
    assert good[-1] in done.stdout + done.stderr, "the message names what there is"


def test_a_layer_named_like_a_slot_is_rejected_before_it_trains(tmp_path):
    model = json.loads(json.dumps(MODEL))
    model["config"]["layers"][3]["config"]["name"] = "adam_m/d"
    model["config"]["layers"][4]["config"]["name"] = "d"
    job = write_job(tmp_path / "job", model=model)
    for arguments in (("validate", "--job", job), ("train", job, "--run_dir", tmp_path / "run")):
        done = shoal(*arguments)
        assert done.returncode == 78 and "adam_m/d" in done.stdout + done.stderr, done.stdout + done.stderr


def trained(tmp_path):
    """A run that has begun and can go on, and its job."""
    job, run = write_job(tmp_path / "job", epochs=2), tmp_path / "run"
    assert shoal("train", job, "--run_dir", run).returncode == 0
    write_job(tmp_path / "job", epochs=4)
    return job, run


def test_a_manifest_that_is_a_directory_is_passed_over(tmp_path):
    job, run = trained(tmp_path)
    (run / "checkpoints/step-000000999999-9-00000000/manifest.json").mkdir(parents=True)
    done = shoal("train", job, "--run_dir", run)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "step-000000999999-9-00000000" in done.stdout + done.stderr
    assert "from step 50" in done.stdout, done.stdout


def crc32c(data):
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ 0x82F63B78 * (byte & 1)
        table.append(byte)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def test_a_manifest_of_a_hundred_thousand_files_costs_a_moment(tmp_path):
    job, run = trained(tmp_path)
    whole = checkpoints(run)[-1]
    manifest = json.loads((whole / "manifest.json").read_text())
    forged = run / "checkpoints/step-000000999999-9-00000000"
    forged.mkdir()
    manifest.pop("checksum", None)
    manifest |= {"timeline": 9 << 32, "files": [{"name": f"{i}", "size_bytes": 1, "crc32c": "00000000"} for i in range(100000)]}
    text = json.dumps(manifest)[:-1] + ',\n  "checksum": "'
    (forged / "manifest.json").write_text(f'{text}{crc32c(text.encode()):08x}"\n}}\n')
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = shoal("train", job, "--run_dir", run)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert forged.name in done.stdout + done.stderr
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < seconds_of(10), f"{spent:.0f} s of a core"

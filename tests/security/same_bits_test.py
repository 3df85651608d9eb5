"""Under `sync` a job ends with the same files, encrypted or not."""
from certificates import Authority
from real_cluster import Cluster, write_job
from secure_cluster import SecureCluster

# Rounds of both workers' gradients, and chunks on both ps.
JOB = {"examples": 401, "batch_size": 16, "epochs": 10,
       "strategy": {"name": "sync", "gradients_per_update": 5, "min_shard_bytes": 256, "chunk_bytes": 1024}}


def trained_model(cluster, job, run):
    """{name: content} of the files of the model that the cluster trains."""
    with cluster:
        processes = [cluster.start("ps", index) for index in range(2)] + [cluster.start_chief(job, run)]
        processes += [cluster.start_worker(index) for index in range(2)]
        for process in processes:
            assert process.wait() == 0, process.output()[-3000:]
            assert ("traffic is encrypted" in process.output()) == isinstance(cluster, SecureCluster)
    return {path.name: path.read_bytes() for path in (run / "model").iterdir()}


def test_tls_changes_no_bit_of_the_model(tmp_path):
    job = write_job(tmp_path / "job", **JOB)
    plain = trained_model(Cluster(tmp_path / "plain", ps=2), job, tmp_path / "plain/run")
    secure = trained_model(SecureCluster(tmp_path / "secure", Authority(tmp_path / "tls"), ps=2), job, tmp_path / "secure/run")
    assert "model.safetensors" in plain
    assert plain == secure

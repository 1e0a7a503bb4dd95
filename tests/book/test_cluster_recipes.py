"""The recipes for Slurm and Kubernetes: they parse, and say what the software that reads them asks for."""

from pathlib import Path

import yaml

RECIPES = Path(__file__).resolve().parents[2] / "book" / "cluster"
# What dask-jobqueue 0.9.0 knows of a Slurm job; it ignores what else stands in the file.
KNOWN = {
    "name", "cores", "memory", "processes", "python", "interface", "death-timeout", "local-directory", "queue",
    "account", "worker-extra-args", "walltime", "job-script-prologue", "job-extra-directives", "log-directory",
}  # fmt: skip


def test_job_of_slurm_is_one_worker_of_one_thread():
    slurm = yaml.safe_load((RECIPES / "slurm.yaml").read_text())["jobqueue"]["slurm"]
    assert slurm.keys() <= KNOWN
    assert (slurm["cores"], slurm["processes"]) == (1, 1)
    assert slurm["memory"]
    hours, minutes, seconds = map(int, slurm["walltime"].split(":"))
    extra = dict(zip(slurm["worker-extra-args"][::2], slurm["worker-extra-args"][1::2], strict=True))
    stays, stagger = (int(extra[name].removesuffix("m")) for name in ("--lifetime", "--lifetime-stagger"))
    assert stays + stagger < 60 * hours + minutes + seconds / 60  # gone before Slurm ends the job
    assert "export OMP_NUM_THREADS=1" in slurm["job-script-prologue"]
    compile((RECIPES / "slurm.py").read_text(), "slurm.py", "exec")


def test_workers_of_kubernetes_find_their_scheduler_and_have_one_thread():
    cluster, scaler = yaml.safe_load_all((RECIPES / "kubernetes.yaml").read_text())
    assert (cluster["kind"], scaler["kind"]) == ("DaskCluster", "DaskAutoscaler")
    assert {part["apiVersion"] for part in (cluster, scaler)} == {"kubernetes.dask.org/v1"}
    name, (worker,) = cluster["metadata"]["name"], cluster["spec"]["worker"]["spec"]["containers"]
    (scheduler,) = cluster["spec"]["scheduler"]["spec"]["containers"]
    service = cluster["spec"]["scheduler"]["service"]
    assert scaler["spec"]["cluster"] == name == service["selector"]["dask.org/cluster-name"]
    assert scaler["spec"]["minimum"] <= cluster["spec"]["worker"]["replicas"] <= scaler["spec"]["maximum"]
    assert worker["image"] == scheduler["image"]
    assert worker["args"][:2] == ["dask", "worker"]
    assert worker["args"][worker["args"].index("--nthreads") + 1] == "1"
    assert {port["targetPort"] for port in service["ports"]} == {port["name"] for port in scheduler["ports"]}
    assert "OMP_NUM_THREADS=1" in (RECIPES / "Dockerfile").read_text()


def test_every_recipe_is_on_the_page():
    page = (RECIPES.parent / "cluster.md").read_text()
    for path in RECIPES.iterdir():
        assert f"```{{literalinclude}} cluster/{path.name}" in page

"""Start a scheduler here, and a job for each worker as long as there is work: `python slurm.py` on a login node."""

import time

from dask_jobqueue import SLURMCluster

if __name__ == "__main__":
    with SLURMCluster() as cluster:  # as ~/.config/dask/jobqueue.yaml says
        cluster.adapt(minimum=0, maximum=32)
        print(f"--dask {cluster.scheduler_address}, dashboard: {cluster.dashboard_link}", flush=True)
        while True:  # until Ctrl-C
            time.sleep(60)

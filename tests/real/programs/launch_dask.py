# SPDX-License-Identifier: MIT
"""Two workers of Dask in processes of their own."""
from dask.distributed import Client, LocalCluster

import rank_takes

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster) as client:
        workers = list(client.scheduler_info()["workers"])
        print(client.gather([client.submit(rank_takes.work, 3 + i, workers=[worker], pure=False) for i, worker in enumerate(workers)]))

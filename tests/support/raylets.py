"""Two raylets on this machine: says their cluster's address, and kills the second one when told to.

`python raylets.py PORT`: prints `ready`; on a line from stdin it kills one, at the end of stdin both.
"""

import os
import sys
from pathlib import Path

from hotloop.core import cluster


def main(port: int, place: str) -> None:
    # Ray leaves a new cluster's address where clusters usually are, a folder that only its own start makes.
    os.environ["RAY_TMPDIR"] = place
    Path(place, "ray").mkdir()
    cluster.load()
    from ray.cluster_utils import Cluster

    usual = {"num_cpus": 2, "temp_dir": place}
    head = {**usual, "ray_client_server_port": port, "include_dashboard": False}
    for left in reversed(range(cluster.CONNECTS)):
        made = Cluster()
        try:
            made.add_node(**head)
            second = made.add_node(**usual)
            break
        except Exception:
            made.shutdown()
            if not left:
                raise
    print("ready", flush=True)  # noqa: T201 - it is a program
    for _ in sys.stdin:
        made.remove_node(second, allow_graceful=False)
        print("killed", flush=True)  # noqa: T201
    made.shutdown()


if __name__ == "__main__":
    with cluster.own_folder() as folder:
        main(int(sys.argv[1]), str(folder))

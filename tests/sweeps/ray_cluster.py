"""Two Ray nodes on loopback, for tests: a program that starts them, and ends one when told to.

It prints the address, then waits for lines: `kill` removes the second node without a farewell,
anything else, or the end of the input, ends the cluster.
"""

from __future__ import annotations

import os
import sys

# Ray takes 127.0.0.1 for "this machine's address elsewhere", which need not be reachable here.
LOOPBACK = "127.0.0.2"


def main() -> None:
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    from ray.cluster_utils import Cluster

    quick = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300}
    head = {
        "num_cpus": 1,
        "node_ip_address": LOOPBACK,
        "include_dashboard": False,
        "object_store_memory": 80_000_000,
        "_system_config": {**quick, "health_check_failure_threshold": 4},
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    second = cluster.add_node(num_cpus=2, node_ip_address=LOOPBACK, object_store_memory=80_000_000)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() != "kill":
            break
        cluster.remove_node(second, allow_graceful=False)
        print("killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()

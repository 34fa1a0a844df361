from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # for agent_fakes

import agent_fakes

# Ray reads these when it is imported, whichever test does that first.
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a cluster are told apart: `make test` gives them the machine for themselves."""
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(autouse=True, scope="session")
def _environments() -> None:
    agent_fakes.register()


@pytest.fixture(autouse=True)
def _minari_in_a_folder_of_our_own(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests must not see, or litter, the datasets of whoever runs them."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path_factory.getbasetemp() / "minari"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Ray cluster of three nodes on this machine, with a token, as a user would have it."""
    token = tmp_path_factory.mktemp("ray") / "token"
    token.touch(mode=0o600)
    token.write_text("0123456789abcdef" * 4)
    here = str(pathlib.Path(__file__).parent)  # for ray_fakes
    said = {
        "RAY_AUTH_TOKEN_PATH": str(token),
        "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]),
        "RAY_automatic_object_spilling_enabled": "0",
        "RAY_worker_niceness": "0",
    }
    before = {name: os.environ.get(name) for name in said}
    os.environ.update(said)
    import ray
    from ray.cluster_utils import Cluster

    # A lost node is noticed within seconds.
    quick = {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 500,
        "health_check_failure_threshold": 4,
        "health_check_timeout_ms": 2000,
    }
    head = {"num_cpus": 0, "resources": {"head": 10}, "_system_config": quick}
    made = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        made.add_node(num_cpus=0, resources={"away": 10})
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value

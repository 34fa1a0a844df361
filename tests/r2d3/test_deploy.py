"""The example configurations: what `ray up` and Kubernetes would read, checked without them."""

from __future__ import annotations

import copy
import json
import pathlib
from typing import Any

import pytest
import yaml

SCHEMA = "ray-schema.json"
DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"


@pytest.fixture
def ssh_hosts() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "ssh-hosts.yaml").read_text())
    return read


@pytest.fixture
def kubernetes() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text()))


def test_ssh_hosts_is_what_ray_up_takes(ssh_hosts: dict[str, Any]) -> None:
    pytest.importorskip("ray")
    import jsonschema
    import ray.autoscaler
    from ray.autoscaler._private.util import prepare_config, validate_config

    schema = json.loads((pathlib.Path(ray.autoscaler.__file__).parent / SCHEMA).read_text())
    jsonschema.validate(ssh_hosts, schema)
    # What `ray up` does before it opens the first connection.
    prepared = prepare_config(copy.deepcopy(ssh_hosts))
    validate_config(prepared)
    assert prepared["max_workers"] == len(ssh_hosts["provider"]["worker_ips"])
    with pytest.raises(jsonschema.ValidationError, match="'type' is a required property"):
        jsonschema.validate({**ssh_hosts, "provider": {"worker_ips": []}}, schema)


def test_ssh_hosts_start_with_a_token_and_without_a_dashboard(ssh_hosts: dict[str, Any]) -> None:
    head, worker = ssh_hosts["head_start_ray_commands"], ssh_hosts["worker_start_ray_commands"]
    for start in (head[-1], worker[-1]):
        assert "RAY_AUTH_MODE=token" in start
        assert "RAY_USAGE_STATS_ENABLED=0" in start
        resources = json.loads(start.split("--resources='")[1].split("'")[0])
        assert resources
    assert "--include-dashboard=false" in head[-1]
    assert ssh_hosts["provider"]["head_ip"] in head[-1]
    assert "~/.ray/auth_token" in ssh_hosts["file_mounts"]


def test_kuberay_s_groups_are_whole(kubernetes: list[dict[str, Any]]) -> None:
    cluster, policy = kubernetes
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    spec = cluster["spec"]
    assert spec["authOptions"] == {"mode": "token"}
    assert spec["headGroupSpec"]["serviceType"] == "ClusterIP"
    assert spec["headGroupSpec"]["rayStartParams"]["include-dashboard"] == "false"
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    for group in groups:
        # KubeRay hands these on as text: numbers and objects must be quoted.
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        assert json.loads(json.loads(group["rayStartParams"]["resources"]))
        pod = group["template"]["spec"]
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        for container in pod["containers"]:
            assert container["resources"]["requests"] == container["resources"]["limits"]
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes
            assert {"name": "RAY_USAGE_STATS_ENABLED", "value": "0"} in container["env"]
    for group in spec["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    assert policy["kind"] == "NetworkPolicy"
    assert policy["spec"]["podSelector"]["matchLabels"]["ray.io/cluster"] == "r2d3"


def test_the_versions_are_those_that_are_pinned(kubernetes: list[dict[str, Any]]) -> None:
    pins = (DEPLOY.parent / "requirements.txt").read_text().split()
    assert f"ray=={kubernetes[0]['spec']['rayVersion']}" in pins

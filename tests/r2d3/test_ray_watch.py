"""Who is slow, silent or hung is seen, named, and in the end started anew; and who may listen."""

from __future__ import annotations

import os
import pathlib
import stat
import sys

import pytest

from r2d3.config import Config, make_config
from r2d3.errors import UserError
from r2d3.launch.ray.placement import number_of_actors, options
from r2d3.launch.ray.safety import check_listening, machine_addresses, prepare_token
from r2d3.launch.ray.shard import Health, Heard
from r2d3.launch.ray.shipping import Note
from r2d3.launch.ray.watch import MOST_FAILURES, ActorWatch


def heard(
    decisions: int = 100, starts: int = 1, failures: tuple[str, ...] = (), **note: object
) -> Heard:
    said = Note(**{"pid": 1, "node": "n", "doing": "acting", **note})  # type: ignore[arg-type]
    names = [str(number) for number in range(starts)]
    return Heard(said, 0.0, decisions, names, list(failures))


def health(actors: dict[int, tuple[float, Heard]]) -> list[Health]:
    return [Health("s", 1, 0, -1, "", actors)]


def test_a_slow_actor_is_named() -> None:
    watch = ActorWatch(120.0)
    for second in (0, 11, 22):
        speeds = (1000, 1000, 100)
        actors = {w: (0.1, heard(speed * second)) for w, speed in enumerate(speeds)}
        findings = watch.look(health(actors), float(second))
    assert findings.troubles == ["actor 2 is slow: 100 decisions/s, others 1e+03"]


def test_an_actor_that_is_held_is_not_slow() -> None:
    watch = ActorWatch(120.0)
    for second in (0, 11, 22):
        actors = {w: (0.1, heard(1000 * second)) for w in range(3)}
        actors[3] = (0.1, heard(200 * second, held_s=0.8 * second))  # the same speed, when it acts
        findings = watch.look(health(actors), float(second))
    assert not findings.troubles


def test_a_hung_environment_is_named_then_its_process_ended_once() -> None:
    watch = ActorWatch(30.0)
    assert not watch.look(health({0: (1.0, heard(in_step_s=2.0))}), 0.0).troubles
    (trouble,) = watch.look(health({0: (1.0, heard(in_step_s=9.0))}), 8.0).troubles
    assert "actor 0: its environments hang, 10 s in one step" in trouble
    assert watch.look(health({0: (1.0, heard(in_step_s=31.0))}), 30.0).hung_actors == [0]
    assert watch.look(health({0: (5.0, heard(in_step_s=31.0))}), 34.0).hung_actors == []
    again = watch.look(health({0: (0.1, heard(starts=2))}), 40.0)
    assert again.events == ["actor 0 was started anew, with fresh episodes"]
    assert watch.look(health({0: (1.0, heard(starts=2, in_step_s=31.0))}), 80.0).hung_actors == [0]


def test_a_silent_process_has_the_time_of_a_start_before_it_is_ended() -> None:
    watch = ActorWatch(30.0)
    findings = watch.look(health({0: (40.0, heard())}), 0.0)
    assert findings.troubles == ["actor 0 has been silent for 40 s"]
    assert not findings.hung_actors
    assert watch.look(health({0: (91.0, heard())}), 51.0).hung_actors == [0]


def test_an_environment_that_fails_every_time_ends_the_run_with_its_reason() -> None:
    watch = ActorWatch(30.0)
    for count in range(1, MOST_FAILURES):
        failures = ("ZeroDivisionError: x",) * count
        findings = watch.look(health({0: (0.1, heard(0, count, failures))}), float(count))
        assert "actor 0 failed: ZeroDivisionError: x" in findings.events
    with pytest.raises(UserError, match="actor 0 failed 5 times in a row: ZeroDivisionError"):
        watch.look(health({0: (0.1, heard(0, 5, ("ZeroDivisionError: x",) * MOST_FAILURES))}), 9.0)


def test_failures_with_work_between_them_do_not_end_the_run() -> None:
    watch = ActorWatch(30.0)
    for count in range(1, 20):
        watch.look(health({0: (0.1, heard(100 * count, count, ("E",) * count))}), float(count))


def test_an_actor_s_user_mistake_ends_the_run_at_once() -> None:
    with pytest.raises(UserError, match="NaN in rewards"):
        ActorWatch(30.0).look(
            health({0: (0.1, heard(failures=("NaN in rewards",), users_mistake=True))}), 0.0
        )


# -- who goes where ------------------------------------------------------------------------------


def cluster_config(**more: object) -> Config:
    return make_config(env="x", agent="r2d2", launch="ray", **more)


def test_resources_are_ray_s_own_and_an_operator_s() -> None:
    said = '{"num_cpus": 4, "num_gpus": 1, "gpu_node": 0.5}'
    asked = options(cluster_config(learner_resources=said), "learner")
    assert (asked["num_cpus"], asked["num_gpus"]) == (4, 1)
    assert asked["resources"] == {"gpu_node": 0.5}
    assert options(cluster_config(actor_resources="{}"), "actor")["num_cpus"] == 0
    assert asked["max_restarts"] == -1


def test_the_learner_gets_the_gpu_of_a_cluster_that_has_one() -> None:
    assert options(cluster_config(), "learner", gpus=1.0)["num_gpus"] == 1
    assert "num_gpus" not in options(cluster_config(), "learner", gpus=0.0)
    assert "num_gpus" not in options(cluster_config(device="cpu"), "learner", gpus=1.0)
    assert "num_gpus" not in options(cluster_config(), "actor", gpus=1.0)


def test_there_is_an_acting_process_for_each_cpu_left() -> None:
    assert number_of_actors(cluster_config(), 2.0) == 1  # one is the learner's
    assert number_of_actors(cluster_config(), 17.0) == 16
    assert number_of_actors(cluster_config(actors=4), 17.0) == 4
    assert number_of_actors(cluster_config(), 0.0) == 1
    assert number_of_actors(cluster_config(actor_processes=3), 99.0) == 3
    two_each = cluster_config(actor_resources='{"num_cpus": 2}')
    assert number_of_actors(two_each, 17.0) == 8


# -- who may listen, who may talk ----------------------------------------------------------------


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_loopback_address_is_fine_whatever_else_the_machine_has(address: str) -> None:
    check_listening(address, False, ["93.184.216.34"])


@pytest.mark.parametrize(
    ("address", "machine"),
    [
        ("93.184.216.34", []),
        ("0.0.0.0", []),
        ("2606:2800:220:1::1", []),
        # Ray listens on all of a machine's addresses, not only on the one it was given.
        ("10.0.0.5", ["127.0.0.1", "10.0.0.5", "93.184.216.34"]),
    ],
)
def test_a_public_address_needs_consent(address: str, machine: list[str]) -> None:
    with pytest.raises(UserError, match="--listen-publicly"):
        check_listening(address, False, machine)
    check_listening(address, True, machine)


def test_a_private_address_is_fine_on_a_machine_that_has_no_other() -> None:
    check_listening("10.0.0.5", False, ["127.0.0.1", "10.0.0.5", "::1", "fd00::2", "fe80::1"])


def test_the_machine_knows_its_own_addresses() -> None:
    if sys.platform.startswith("linux"):
        assert "127.0.0.1" in machine_addresses()


def test_a_token_is_made_that_only_its_owner_can_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "folder" / "token"))
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    os.umask(os.umask(0o022))
    prepare_token(new=True)
    path = tmp_path / "folder" / "token"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(path.read_text()) == 64
    first = path.read_text()
    prepare_token(new=True)
    assert path.read_text() == first
    path.chmod(0o640)
    with pytest.raises(UserError, match="can be read by others: chmod 600"):
        prepare_token(new=True)


def test_joining_without_a_token_is_a_users_mistake(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    with pytest.raises(UserError, match="no token for the cluster"):
        prepare_token(new=False)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"address": "auto"}, "needs --launch ray"),
        ({"launch": "ray", "actor_processes": 99}, "--actor-processes 99"),
        ({"launch": "ray", "actor_resources": '{"CPU": "two"}'}, "'CPU' must be a number"),
        ({"launch": "ray", "learner_resources": "[1]"}, "must be a JSON object"),
        ({"launch": "ray", "replay_shards": 0}, "--replay-shards must be at least 1"),
        ({"launch": "ray", "hang_seconds": 0.0}, "--hang-seconds"),
    ],
)  # fmt: skip
def test_settings_of_a_cluster_that_cannot_work_are_refused(
    said: dict[str, object], reason: str
) -> None:
    with pytest.raises(UserError, match=reason):
        make_config(env="x", agent="r2d2", **said)

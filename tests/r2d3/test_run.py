"""Whole runs, small but real: deterministic, resumable, overlapped, and stopped with a reason."""

from __future__ import annotations

import io
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from typing import Any

import minari
import numpy as np
import pytest
from agent_fakes import CorridorEnv, episode

from r2d3.config import Config, make_config
from r2d3.demos import load_demonstrations, save_demonstrations
from r2d3.environments import make_environment
from r2d3.errors import UserError
from r2d3.launch.inline import Run
from r2d3.metrics import read_metrics
from r2d3.sequences import Episode
from r2d3.spaces import observation_spec
from r2d3.terminal import Reporter


def settings(folder: pathlib.Path, **more: Any) -> Config:
    small = {
        "env": "TestCorridor-v0", "agent": "r2d2", "out": str(folder), "features": 16, "hidden": 16,
        "sequence_length": 8, "burn_in": 4, "overlap": 4, "batch_size": 8, "actors": 4,
        "min_replay": 20, "samples_per_insert": 4.0, "learner_steps": 60, "log_every": 10,
        "evaluate_every": 25, "evaluation_episodes": 3, "final_episodes": 4, "threads": 0,
        "learning_rate": 2e-3, "replay_capacity": 80, "tensorboard": False, "target_period": 20,
    }  # fmt: skip
    return make_config(**{**small, **more})


def run(config: Config, resume: bool = False) -> tuple[Run, str]:
    said = io.StringIO()
    training = Run(config, Reporter(said))
    if resume:
        training.resume()
    else:
        training.start()
    training.train()
    return training, said.getvalue()


def comparable(folder: pathlib.Path) -> list[dict[str, Any]]:
    """All that does not depend on the machine's speed."""
    return [{k: v for k, v in row.items() if k != "time"} for row in read_metrics(folder)]


def walk_right(name: str = "test/corridor/right-v0", count: int = 4) -> str:
    """Demonstrations that solve the corridor, as a Minari dataset (written once)."""
    if name in minari.list_local_datasets():
        return name
    env = make_environment("TestCorridor-v0", {})
    episodes = []
    for seed in range(count):
        observation, _ = env.reset(seed=seed)
        seen, rewards, over = [observation], [], False
        while not over:
            observation, reward, over, _, _ = env.step(1)
            seen.append(observation)
            rewards.append(float(reward))
        steps = len(rewards)
        episodes.append(
            Episode({"observation": np.stack(seen)}, np.ones(steps, np.int64), np.array(rewards),
                    True, {"seed": seed})
        )  # fmt: skip
    save_demonstrations(name, episodes, env)
    return name


# -- the same seed, the same metrics -----------------------------------------------------------


def test_the_same_seed_gives_the_same_metrics_twice(tmp_path: pathlib.Path) -> None:
    run(settings(tmp_path / "one"))
    run(settings(tmp_path / "two"))
    assert comparable(tmp_path / "one") == comparable(tmp_path / "two")
    run(settings(tmp_path / "three", seed=1))
    assert comparable(tmp_path / "one") != comparable(tmp_path / "three")


@pytest.mark.parametrize("agent", ["r2d3", "r2d2", "dqfd", "bc"])
@pytest.mark.parametrize("stop_at", [23, 40])
def test_a_resumed_run_equals_the_unbroken_one_metric_for_metric(
    tmp_path: pathlib.Path, agent: str, stop_at: int
) -> None:
    demos = "" if agent == "r2d2" else walk_right()
    more: dict[str, Any] = {"agent": agent, "demos": demos}
    if agent == "bc":
        more["actors"] = 0
    if agent == "r2d3":
        more["demo_ratio"] = 0.3
        more["stored_state"] = True
        more["averaged_weights"] = 0.9
    run(settings(tmp_path / "whole", **more))
    # The same run, stopped on the way (final evaluation off, as a kill would have it) ...
    run(settings(tmp_path / "broken", learner_steps=stop_at, final_episodes=0, **more))
    # ... and taken up again.
    _, said = run(settings(tmp_path / "broken", **more), resume=True)
    assert f"resumed at learner step {stop_at}" in said
    assert "could not be rebuilt" not in said
    assert comparable(tmp_path / "whole") == comparable(tmp_path / "broken")


def test_the_run_learns(tmp_path: pathlib.Path) -> None:
    config = settings(
        tmp_path, agent="r2d3", demos=walk_right(), demo_ratio=0.25, learner_steps=700,
        samples_per_insert=8.0, evaluate_every=0, final_episodes=20, log_every=100,
    )  # fmt: skip
    run(config)
    final = read_metrics(tmp_path)[-1]
    assert final["kind"] == "final"
    assert final["success"] == 1.0


def test_metrics_say_what_the_issue_asks_for(tmp_path: pathlib.Path) -> None:
    config = settings(tmp_path, agent="r2d3", demos=walk_right(), demo_ratio=0.25)
    run(config)
    rows = read_metrics(tmp_path)
    last = [row for row in rows if row["kind"] == "train"][-1]
    for name in (
        "return", "success", "length", "learner_steps", "decisions", "episodes", "q_agent",
        "discounted_return", "predicted_return", "gradient_norm", "priority_mean", "priority_max",
        "demo_share", "samples_per_insert", "replay_bytes", "skipped_steps", "late_updates",
    ):  # fmt: skip
        assert name in last, name
    assert {"decisions_per_s", "learner_steps_per_s", "learner_waited_s"} <= set(last["time"])
    assert last["demo_share"] == pytest.approx(0.25, abs=0.15)
    assert last["samples_per_insert"] == pytest.approx(4.0, rel=0.2)
    assert {row["kind"] for row in rows} == {"train", "evaluation", "final"}


# -- two threads -------------------------------------------------------------------------------


def test_acting_beside_learning_keeps_the_ratio_and_ends_its_thread(tmp_path: pathlib.Path) -> None:
    training, _ = run(settings(tmp_path, threads=1, learner_steps=150))
    limiter = training.parts.limiter
    assert limiter.sampled == 150 * 8
    drawn_per_insert = limiter.sampled / (limiter.inserted - limiter.min_size)
    assert drawn_per_insert == pytest.approx(4.0, rel=0.25)
    assert training.acting is None


def test_a_run_of_two_threads_can_be_resumed(tmp_path: pathlib.Path) -> None:
    run(settings(tmp_path, threads=1, learner_steps=40, checkpoint_steps=10))
    training, _ = run(settings(tmp_path, threads=1, learner_steps=70), resume=True)
    assert training.parts.learner.steps == 70
    steps = [row["learner_steps"] for row in read_metrics(tmp_path)]
    assert steps == sorted(steps)


def test_an_error_while_acting_reaches_the_user(tmp_path: pathlib.Path) -> None:
    training = Run(settings(tmp_path, threads=1), Reporter(io.StringIO()))
    training.start()
    assert training.parts.actor is not None
    envs = training.parts.actor.stream.envs

    def fall_over(*_: Any) -> None:
        raise UserError("the floor is gone")

    envs.step = fall_over  # type: ignore[method-assign, assignment]
    with pytest.raises(UserError, match="the floor is gone"):
        training.train()


# -- before and between ----------------------------------------------------------------------


def test_checkpoints_are_also_written_while_the_replay_fills(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the paper's preset an hour or more; a kill must not lose that."""
    training = Run(settings(tmp_path, checkpoint_minutes=1e-6), Reporter(io.StringIO()))
    training.start()

    def killed() -> None:
        if training._decisions() >= 40:
            raise KeyboardInterrupt

    monkeypatch.setattr(training, "_report_now_and_then", killed)
    with pytest.raises(KeyboardInterrupt):
        training.train()
    assert training.parts.learner.steps == 0
    run(settings(tmp_path / "whole"))
    _, said = run(settings(tmp_path), resume=True)
    assert "resumed at learner step 0, decision 36" in said
    assert comparable(tmp_path) == comparable(tmp_path / "whole")


def test_acting_starts_with_what_the_warm_up_has_learned(tmp_path: pathlib.Path) -> None:
    config = settings(
        tmp_path, agent="r2d3", demos=walk_right(), warmup_steps=7, learner_steps=7,
        actor_update_period=100,
    )  # fmt: skip
    training, _ = run(config)
    assert training.parts.actor is not None
    of_actor = training.parts.actor.policy.network.parameters()
    newest = training.parts.learner.acting_network()
    for a, b in zip(of_actor, newest.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_a_full_disk_is_told_in_a_line(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Run(settings(tmp_path), Reporter(io.StringIO()))
    training.start()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(training.store, "save", full)
    with pytest.raises(UserError, match=r"no checkpoint written: .*No space left"):
        training.checkpoint()


# -- NaN ---------------------------------------------------------------------------------------


def test_a_diverging_run_stops_and_its_checkpoint_is_clean(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(tmp_path, checkpoint_steps=10, bad_steps_allowed=3)
    training = Run(config, Reporter(io.StringIO()))
    training.start()
    network = training.parts.learner.network
    weight = next(network.head.parameters())

    def spoil(gradient: Any) -> Any:
        late = training.parts.learner.steps >= 25
        return gradient * float("nan") if late else gradient

    weight.register_hook(spoil)
    with pytest.raises(UserError, match="3 learner steps in a row"):
        training.train()
    assert training.parts.learner.steps == 25
    assert training.parts.learner.skipped == 3
    assert training.parts.actor is not None
    for parameters in (network.parameters(), training.parts.actor.policy.network.parameters()):
        assert all(bool(p.isfinite().all()) for p in parameters)
    # The run can be taken up again, from step 20.
    again = Run(settings(tmp_path, learner_steps=22), Reporter(io.StringIO()))
    again.resume()
    assert again.parts.learner.steps == 20
    assert all(bool(p.isfinite().all()) for p in again.parts.learner.network.parameters())


# -- beginnings that are refused -----------------------------------------------------------------


def test_a_run_folder_is_not_overwritten(tmp_path: pathlib.Path) -> None:
    run(settings(tmp_path, learner_steps=10))
    with pytest.raises(UserError, match="holds a run already"):
        run(settings(tmp_path, learner_steps=10))


def test_resuming_without_a_checkpoint_is_a_users_mistake(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UserError, match="no checkpoint"):
        run(settings(tmp_path), resume=True)


# -- SIGKILL -------------------------------------------------------------------------------------

# Imports once, then forks a run for every line it reads: torch takes seconds to load.
NURSERY = """
import os, pathlib, sys
sys.path.insert(0, {tests!r})
import agent_fakes; agent_fakes.register()
from r2d3.config import Config
from r2d3.launch.inline import Run
from r2d3.terminal import Reporter

def run():
    config = Config.from_json(pathlib.Path({config!r}).read_text())
    training = Run(config, Reporter())
    if training.store.steps():
        training.resume()
    else:
        (training.folder / "metrics.jsonl").unlink(missing_ok=True)
        training.start()
    steps, decisions = training.parts.learner.steps, training._decisions()
    print("COUNTERS", os.getpid(), steps, decisions, flush=True)
    training.train()

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run()
        os._exit(0)
    os.waitpid(child, 0)
    print("GONE", flush=True)
"""


@pytest.mark.slow
def test_a_run_killed_at_twenty_random_moments_always_goes_on(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "run"
    config = settings(
        folder, learner_steps=1_000_000, checkpoint_steps=5, evaluate_every=0, threads=1
    )
    (tmp_path / "config.json").write_text(config.to_json())
    (tmp_path / "nursery.py").write_text(
        NURSERY.format(
            tests=str(pathlib.Path(__file__).parent), config=str(tmp_path / "config.json")
        )
    )
    with (tmp_path / "errors").open("w") as errors:
        nursery = subprocess.Popen(
            [sys.executable, str(tmp_path / "nursery.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    moments = random.Random(0)
    last_step, resumes = 0, 0
    for _ in range(20):
        nursery.stdin.write("another\n")
        nursery.stdin.flush()
        said = ""
        while not said.startswith(("COUNTERS", "GONE")):
            said = nursery.stdout.readline()
            assert said, "the nursery has died: " + (tmp_path / "errors").read_text()[-2000:]
        assert said.startswith("COUNTERS"), (tmp_path / "errors").read_text()[-2000:]
        pid, steps, decisions = (int(x) for x in said.split()[1:])
        # Never behind the newest checkpoint that was there when the run was killed.
        assert steps >= last_step
        assert decisions > 0 or steps == 0
        resumes += steps > 0
        time.sleep(moments.uniform(0.05, 0.9))
        os.kill(pid, signal.SIGKILL)
        while not nursery.stdout.readline().startswith("GONE"):
            pass
        whole = [int(p.name) for p in (folder / "checkpoints").iterdir() if p.name.isdigit()]
        last_step = max(whole, default=0)
        assert len(whole) <= 3  # a kill may fall between writing the third and removing the first
        assert len(list((folder / "checkpoints").glob(".tmp-*"))) <= 2
    nursery.stdin.close()
    assert nursery.wait() == 0
    assert resumes >= 15
    assert last_step > 50
    rows = read_metrics(folder)
    steps_logged = [row["learner_steps"] for row in rows if row["kind"] == "train"]
    assert steps_logged == sorted(set(steps_logged)), "a line was written twice or went back"
    assert json.loads((folder / "config.json").read_text())["checkpoint_steps"] == 5


# -- demonstrations ------------------------------------------------------------------------------


def test_demonstrations_come_back_from_minari_as_they_went_in() -> None:
    env = make_environment("TestDiary-v0", {})
    written = [episode(5, 0), episode(3, 1, terminated=False)]
    save_demonstrations("test/diary/some-v0", written, env)
    spec = observation_spec(env.observation_space)
    read = load_demonstrations("test/diary/some-v0", spec, 3)
    assert len(read) == 2
    for got, want in zip(read, written, strict=True):
        np.testing.assert_array_equal(
            got.observations["observation"], want.observations["observation"]
        )
        np.testing.assert_array_equal(got.actions, want.actions)
        np.testing.assert_array_equal(got.rewards, want.rewards)
        assert got.terminated == want.terminated


@pytest.mark.parametrize(
    ("name", "spoil", "reason"),
    [
        ("nan", lambda e: e.rewards.__setitem__(1, np.nan), "NaN"),
        (
            "infinity",
            lambda e: e.observations["observation"].__setitem__((1, 1), np.inf),
            "NaN or infinity",
        ),
        ("action", lambda e: e.actions.__setitem__(2, 7), r"action outside 0\.\.2"),
    ],
)
def test_a_bad_demonstration_is_refused_by_name_before_training(
    name: str, spoil: Any, reason: str
) -> None:
    env = make_environment("TestDiary-v0", {})
    bad = episode(5, 0)
    spoil(bad)
    save_demonstrations(f"test/bad/{name}-v0", [episode(4), bad], env)
    with pytest.raises(UserError, match=f"demonstration 1 .*{reason}"):
        load_demonstrations(f"test/bad/{name}-v0", observation_spec(env.observation_space), 3)


def test_demonstrations_with_too_many_actions_are_refused() -> None:
    env = make_environment("TestDiary-v0", {})
    save_demonstrations("test/many/actions-v0", [episode(4)], env)
    with pytest.raises(UserError, match="3 actions, the environment has 2"):
        load_demonstrations("test/many/actions-v0", observation_spec(env.observation_space), 2)


def test_a_dataset_that_is_not_there_is_a_users_mistake() -> None:
    spec = observation_spec(CorridorEnv().observation_space)
    with pytest.raises(UserError, match="nowhere"):
        load_demonstrations("test/nowhere/at-all-v0", spec, 2)


def test_a_dataset_with_other_observations_is_refused() -> None:
    walk_right("test/corridor/other-v0")
    spec = observation_spec(make_environment("TestDiary-v0", {}).observation_space)
    with pytest.raises(UserError, match=r"shape .* expected"):
        load_demonstrations("test/corridor/other-v0", spec, 3)

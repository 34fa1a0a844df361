"""Vector environments in all three ways of resetting, seen as the same stream of episodes."""

from __future__ import annotations

import copy
import pathlib
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from agent_fakes import CorridorEnv, DiaryEnv, replay
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from r2d3.actor import Actor, EpisodeSummary, epsilon_ladder
from r2d3.config import Config, make_config
from r2d3.environments import (
    FIRST_EVALUATION_SEED,
    EpisodeStream,
    environment_args,
    evaluation_seed,
    find_environment,
    make_environments,
    success_of,
    training_seed,
)
from r2d3.errors import UserError
from r2d3.launch.parts import make_network
from r2d3.replay import EMPTY, PrioritisedReplay
from r2d3.sequences import SequenceShape

MODES = list(AutoresetMode)


def stream(mode: AutoresetMode, count: int = 3, **env: Any) -> EpisodeStream:
    # Different lengths, so that episodes end at different times.
    makers = [lambda i=i: DiaryEnv(**{"length": 3 + 2 * i, **env}) for i in range(count)]
    return EpisodeStream(SyncVectorEnv(makers, autoreset_mode=mode), lambda i, e: 1000 * i + e)


def settings(**more: Any) -> Config:
    small = {
        "env": "TestDiary-v0", "agent": "r2d2", "features": 8, "hidden": 8, "actors": 3,
        "sequence_length": 6, "burn_in": 2, "overlap": 2,
    }  # fmt: skip
    return make_config(**{**small, **more})


def actor(
    s: EpisodeStream, c: Config | None = None
) -> tuple[Actor, PrioritisedReplay, list[EpisodeSummary]]:
    c = c or settings()
    shape = SequenceShape(c.sequence_length, c.burn_in, c.overlap)
    store = replay(shape, capacity=500, state_size=c.hidden if c.stored_state else 0)
    ended: list[EpisodeSummary] = []
    a = Actor(s, make_network(c, s.spec, s.actions), c, store, 0, ended.append)
    a.start()
    return a, store, ended


@pytest.mark.parametrize("mode", MODES)
def test_no_sequence_crosses_an_episodes_end(mode: AutoresetMode) -> None:
    a, store, _ = actor(stream(mode))
    for _ in range(60):
        a.step()
    rows = 0
    for _ in range(40):
        batch = store.new_batch(16)
        store.read(store.draw(16), batch, np.arange(16))
        for row in range(16):
            steps = int(batch.mask[row].sum())
            first = int(batch.left_pad[row])
            seen = batch.observations["observation"][row, first : first + steps + 1]
            assert len(set(seen[:, 0].tolist())) == 1, "two episodes in one sequence"
            assert np.diff(seen[:, 1]).tolist() == [1.0] * steps, "steps missing or doubled"
            # The reward says which step and action it belongs to.
            step = seen[:-1, 1]
            reward = batch.reward[row, first : first + steps]
            action = batch.action[row, first : first + steps]
            np.testing.assert_array_equal(reward, 10.0 * step + action)
            rows += 1
    assert rows == 640


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_episodes_are_whole_and_end_as_they_ended(mode: AutoresetMode, ends: str) -> None:
    a, store, ended = actor(stream(mode, ends=ends))
    for _ in range(50):
        a.step()
    assert {(e.env_index, e.length) for e in ended} == {(0, 3), (1, 5), (2, 7)}
    assert all(e.success and e.milestones == {"halfway": True} for e in ended)
    terminal = store.layout[store.key != EMPTY, 3]
    assert terminal.any() == (ends == "terminated")


@pytest.mark.parametrize("mode", MODES)
def test_decisions_count_real_steps_only(mode: AutoresetMode) -> None:
    a, _, _ = actor(stream(mode))
    for _ in range(40):
        a.step()
    vector = a.stream.envs
    assert a.decisions == sum(env.unwrapped.total_steps for env in vector.envs)  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", MODES)
def test_recurrent_state_begins_anew_with_each_episode(mode: AutoresetMode) -> None:
    """The state stored at an episode's first step is zero, and not so later on."""
    a, store, _ = actor(stream(mode, count=2, length=9), settings(stored_state=True))
    for _ in range(45):
        a.step()
    first_steps = later = 0
    for slot in np.flatnonzero(store.key != EMPTY).tolist():
        at_start = store.layout[slot, 1] > 0  # padded, so it begins with the episode
        assert (store.states[slot] == 0).all() == at_start
        first_steps, later = first_steps + at_start, later + (not at_start)
    assert first_steps > 3
    assert later > 3


def test_with_autoreset_off_every_episode_has_its_own_seed() -> None:
    s = stream(AutoresetMode.DISABLED)
    s.reset()
    for _ in range(12):
        s.step(np.zeros(3, np.int64))
    assert s.envs.envs[0].unwrapped.seeds == [0, 1, 2, 3, 4]  # type: ignore[attr-defined]
    assert s.envs.envs[2].unwrapped.seeds == [2000, 2001]  # type: ignore[attr-defined]


@pytest.mark.parametrize("env_id", ["CartPole-v1", "FrozenLake-v1", "HardEight/WallSensor-v0"])
def test_an_episode_is_its_seeds_whatever_batch_the_environment_brings_itself(env_id: str) -> None:
    """CartPole's own batch takes one seed for all and resets itself: it is passed over."""
    args = {"height": 12, "width": 16} if env_id.startswith("HardEight") else {}
    s = EpisodeStream(make_environments(env_id, 3, args), lambda i, e: 7)
    s.reset()
    assert s.mode == AutoresetMode.DISABLED
    for array in s.observations.values():  # all three play episode 7
        assert (array == array[:1]).all()
    native = type(s.envs).__name__ == "HardEightVectorEnv"
    assert native == env_id.startswith("HardEight")
    s.close()


def test_training_and_evaluation_seeds_never_meet() -> None:
    training = {training_seed(run, i, e) for run in range(3) for i in range(20) for e in range(50)}
    assert max(training) < FIRST_EVALUATION_SEED <= evaluation_seed(0)
    assert len(training) > 2990  # drawn from a billion: next to no repeats
    assert training_seed(1, 2, 3) == training_seed(1, 2, 3)


def corridors(count: int = 3) -> EpisodeStream:
    envs = SyncVectorEnv([CorridorEnv] * count, autoreset_mode=AutoresetMode.DISABLED)
    return EpisodeStream(envs, lambda i, e: 1000 * i + e)


def test_running_episodes_are_rebuilt_by_playing_them_again() -> None:
    one, other = corridors(), corridors()
    one.reset()
    rng = np.random.default_rng(0)
    for _ in range(41):
        one.step(rng.integers(0, 2, 3))
    rebuilt = other.load_state_dict(copy.deepcopy(one.state_dict()))
    assert rebuilt.all()
    for _ in range(41):
        np.testing.assert_array_equal(
            one.observations["observation"], other.observations["observation"]
        )
        actions = rng.integers(0, 2, 3)
        mine, its = one.step(actions), other.step(actions)
        np.testing.assert_array_equal(mine.reward, its.reward)
        np.testing.assert_array_equal(mine.ended, its.ended)


def test_episodes_that_cannot_be_rebuilt_begin_anew_and_are_named() -> None:
    one, other = corridors(), corridors()
    one.reset()
    one.step(np.ones(3, np.int64))
    saved = one.state_dict()
    saved["observation/observation"][1] += 1.0  # as if environment 1 did not follow its seed
    assert other.load_state_dict(saved).tolist() == [True, False, True]
    assert [len(actions) for actions in other.played] == [1, 0, 1]


def test_the_ladder_of_epsilons() -> None:
    ladder = epsilon_ladder(256, 0.4, 8.0)
    assert ladder[0] == pytest.approx(0.4)
    assert ladder[-1] == pytest.approx(0.4**8)
    ratios = ladder[1:] / ladder[:-1]
    np.testing.assert_allclose(ratios, ratios[0])
    assert epsilon_ladder(1, 0.4, 8.0).tolist() == [0.4]


# -- NaN -----------------------------------------------------------------------------------------


def test_nan_from_an_environment_is_counted_and_not_learned_from() -> None:
    s = stream(AutoresetMode.DISABLED, count=2, length=5)
    a, store, _ = actor(s, settings(actors=2))
    bad_env = s.envs.envs[1].unwrapped  # type: ignore[attr-defined]
    for step in range(40):
        bad_env.nan_at = 0 if step == 12 else None  # one NaN, in the middle of an episode
        a.step()
    assert a.bad_steps == 1
    batch = store.new_batch(400)
    store.read(store.draw(400), batch, np.arange(400))
    assert np.isfinite(batch.reward).all()
    assert np.isfinite(batch.prev_reward).all()
    assert torch_finite(a)


@pytest.mark.parametrize("mode", MODES)
def test_nan_in_an_episodes_first_observation_spoils_that_episode_not_the_one_before(
    mode: AutoresetMode,
) -> None:
    s = stream(mode, count=1, length=5)
    a, store, _ = actor(s, settings(actors=1))
    bad_env = s.envs.envs[0].unwrapped  # type: ignore[attr-defined]
    for _ in range(40):
        bad_env.first_observation = np.nan if bad_env.episode == 2 else None
        a.step()
    assert a.bad_steps == 1
    batch = store.new_batch(400)
    store.read(store.draw(400), batch, np.arange(400))
    learned_from = set(batch.observations["observation"][:, :-1, 0][batch.mask > 0].tolist())
    assert {1.0, 2.0, 4.0} <= learned_from
    assert 3.0 not in learned_from
    assert torch_finite(a)


@pytest.mark.parametrize("too_large", [float("inf"), 1e300])
def test_a_reward_beyond_float32_is_as_bad_as_nan(too_large: float) -> None:
    s = stream(AutoresetMode.DISABLED, count=1, length=5)
    a, store, _ = actor(s, settings(actors=1, clip_rewards=False))
    bad_env = s.envs.envs[0].unwrapped  # type: ignore[attr-defined]
    bad_env.nan = too_large
    for step in range(40):
        bad_env.nan_at = 0 if step == 12 else None
        a.step()
    assert a.bad_steps == 1
    assert np.isfinite(store.tree.total)


def test_an_observation_beyond_all_measure_spoils_its_episode_alone() -> None:
    """It is finite, but what the network makes of it is not: a NaN in a state would stay."""
    s = stream(AutoresetMode.DISABLED, count=2, length=5)
    a, store, _ = actor(s, settings(actors=2))
    bad_env = s.envs.envs[1].unwrapped  # type: ignore[attr-defined]
    torso = a.policy.network.torsos["observation"]
    torso.forward = lambda x: torch.where(x > 1e38, torch.nan, x)
    for _ in range(40):
        bad_env.first_observation = 3e38 if bad_env.episode == 2 else None
        a.step()
    assert a.bad_steps == 1
    assert torch_finite(a)
    assert np.isfinite(store.tree.total)


def test_an_environment_that_does_not_speak_of_success_is_not_taken_to_have_failed() -> None:
    infos = {"success": np.array([True, False]), "_success": np.array([True, False])}
    assert [success_of(infos, i) for i in (0, 1)] == [True, None]


def torch_finite(a: Actor) -> bool:
    return bool(np.isfinite(a.policy.state_rows()).all())


def test_nan_again_and_again_stops_the_run_with_a_clear_message() -> None:
    a, _, _ = actor(stream(AutoresetMode.DISABLED, nan_at=6), settings(bad_steps_allowed=4))

    def play_on() -> None:
        for _ in range(40):
            a.step()

    with pytest.raises(UserError, match=r"NaN or infinity .* 4 steps in a row"):
        play_on()


# -- names ---------------------------------------------------------------------------------------


def test_unknown_environments_are_a_users_mistake() -> None:
    with pytest.raises(UserError, match="NoSuchThing"):
        find_environment("NoSuchThing-v0")


def test_an_environment_of_ones_own_module(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/own-environment.md says: module:Id-v0."""
    (tmp_path / "my_envs.py").write_text(
        "import gymnasium\ngymnasium.register('Mine-v0', entry_point='agent_fakes:DiaryEnv')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert make_environments("my_envs:Mine-v0", 2, {}).num_envs == 2
    with pytest.raises(UserError, match="no_such_module"):
        find_environment("no_such_module:Mine-v0")


def test_a_wrong_argument_of_an_environment_is_a_users_mistake() -> None:
    """Whatever it raises: FrozenLake says KeyError."""
    with pytest.raises(UserError, match=r"FrozenLake-v1.*9x9"):
        make_environments("FrozenLake-v1", 1, {"map_name": "9x9"})


def test_actions_may_start_anywhere() -> None:
    taken: list[int] = []

    class Late(DiaryEnv):
        def __init__(self) -> None:
            super().__init__(5)
            self.action_space = gym.spaces.Discrete(3, start=7)

        def step(self, action: int) -> Any:
            taken.append(int(action))
            return super().step(action - 7)

    s = EpisodeStream(SyncVectorEnv([Late], autoreset_mode=AutoresetMode.DISABLED), lambda i, e: e)
    a, store, _ = actor(s, settings(actors=1, epsilon_power=1.0, epsilon_base=1.0))
    for _ in range(40):
        a.step()
    assert set(taken) == {7, 8, 9}
    batch = store.new_batch(200)
    store.read(store.draw(200), batch, np.arange(200))
    assert set(batch.action[batch.mask > 0].tolist()) == {0, 1, 2}


def test_continuous_actions_are_refused() -> None:
    envs = gym.make_vec("Pendulum-v1", num_envs=1, vectorization_mode="sync")
    with pytest.raises(UserError, match="Discrete"):
        EpisodeStream(envs, lambda i, e: 0)


def test_a_native_batch_is_used_with_every_setting_of_ours() -> None:
    """Stepped one by one, the same environments are several times slower."""
    args = environment_args('{"height": 36, "width": 48}', max_episode_steps=600)
    envs = make_environments("HardEight/WallSensor-v0", 2, args)
    assert type(envs).__name__ == "HardEightVectorEnv"
    envs.close()

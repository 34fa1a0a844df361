"""Datasets that cannot be used are refused by name and with the reason: one line, status 2."""

import dataclasses
import json
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from r2d3.demos import load_demonstrations
from r2d3.errors import UserError
from r2d3.spaces import observation_spec
from studio import datasets
from studio.recording import make_env

NAME = "hardeight/wall-sensor/scripted-v0"


def truncated_file(folder, tools):
    (path,) = (folder / "data" / "1").glob("part-*")
    path.write_bytes(path.read_bytes()[:5000])


def wrong_shape(folder, tools):
    episode = tools.recording(folder, 1)
    spaces = dict(make_env("wall_sensor").observation_space.spaces)
    spaces["rgb"] = gymnasium.spaces.Box(0, 255, (36, 48, 3), np.uint8)
    env = SimpleNamespace(
        observation_space=gymnasium.spaces.Dict(spaces),
        action_space=make_env("wall_sensor").action_space,
    )
    small = {**episode.observations, "rgb": episode.observations["rgb"][:, ::2, ::2].copy()}
    tools.rewrite(folder, 1, dataclasses.replace(episode, observations=small), env)


def action_out_of_range(folder, tools):
    episode = tools.recording(folder, 1)
    episode.actions[3] = 46
    tools.rewrite(folder, 1, episode)


def nan_reward(folder, tools):
    episode = tools.recording(folder, 1)
    episode.rewards[3] = np.nan
    tools.rewrite(folder, 1, episode)


def nan_observation(folder, tools):
    episode = tools.recording(folder, 1)
    episode.observations["acceleration"][3, 0] = np.nan
    tools.rewrite(folder, 1, episode)


def episode_gone(folder, tools):
    (folder / "data" / "1").rename(folder / "gone")


def no_episodes(folder, tools):
    note = folder / "data" / "metadata.json"
    metadata = json.loads(note.read_text())
    note.write_text(json.dumps(metadata | {"total_episodes": 0, "total_steps": 0}))


BROKEN = [
    (truncated_file, "episode 1 of '{name}' cannot be read"),
    (wrong_shape, "episode 1 of '{name}'"),
    (action_out_of_range, "episode 1 of '{name}' has an action outside 0..45"),
    (nan_reward, "episode 1 of '{name}' holds NaN"),
    (nan_observation, "episode 1 of '{name}' holds NaN"),
    (episode_gone, "dataset '{name}' lacks the metadata of an episode"),
    (no_episodes, "'{name}' holds no episodes"),
]


@pytest.mark.parametrize(("damage", "reason"), BROKEN)
def test_check_refuses_it_by_name_with_the_reason(copy, tools, r2d3, damage, reason):
    damage(copy, tools)
    status, _, error = r2d3("demos", "check", copy, "--workers", 1)
    complaint = error.splitlines()[-1]
    assert status == 2
    assert reason.format(name=NAME) in complaint
    assert sum("r2d3:" in line for line in error.splitlines()) == 1


@pytest.mark.parametrize(
    ("damage", "reason"), [case for case in BROKEN if case[0] not in (wrong_shape, nan_observation)]
)
def test_stats_refuse_it_too(copy, tools, r2d3, damage, reason):
    damage(copy, tools)
    status, out, error = r2d3("demos", "stats", copy)
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert reason.format(name=NAME) in error


@pytest.mark.parametrize("damage", [damage for damage, _ in BROKEN])
def test_the_agent_learns_from_none_of_them(copy, tools, damage):
    damage(copy, tools)
    space = make_env("wall_sensor").observation_space
    with pytest.raises(UserError, match=str(copy)):
        load_demonstrations(str(copy), observation_spec(space), 46)


def test_metadata_that_is_no_json_is_refused(copy, r2d3):
    (copy / "data" / "metadata.json").write_text('{"total_episodes"')
    status, _, error = r2d3("demos", "stats", copy)
    assert (status, error.count("\n")) == (2, 1)
    assert str(copy) in error


def test_a_name_that_nothing_has_is_refused(r2d3):
    status, _, error = r2d3("demos", "stats", "hardeight/wall-sensr/scripted-v0")
    assert (status, error.count("\n")) == (2, 1)
    assert "hardeight/wall-sensr/scripted-v0" in error


def test_a_dataset_without_seeds_cannot_be_checked(copy, r2d3):
    note = copy / "data" / "2" / "metadata.json"
    metadata = json.loads(note.read_text())
    del metadata["seed"]
    note.write_text(json.dumps(metadata))
    status, _, error = r2d3("demos", "check", copy)
    assert status == 2
    assert "episode 2 does not name its seed" in error


def test_a_sound_one_is_accepted(made):
    dataset = datasets.open_dataset(made)
    assert [len(datasets.read_episode(dataset, k)) > 0 for k in range(3)] == [True] * 3

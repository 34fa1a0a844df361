"""Datasets: the same seeds give the same bytes, a killed run goes on, nothing half looks whole."""

import json
import os
import signal
import subprocess
import sys
import time

import gymnasium
import minari
import numpy as np
import pytest

from hard_eight.experts import habits
from r2d3.environments import evaluation_seed, training_seed
from r2d3.errors import UserError
from studio import datasets, making
from studio.recording import record


def contents(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_same_seeds_give_the_same_bytes_with_any_number_of_workers(made, tmp_path, tools):
    assert contents(tools.make(tmp_path, workers=2)) == contents(made)


def test_a_folder_may_be_named_from_where_one_stands(tmp_path, monkeypatch, r2d3):
    monkeypatch.chdir(tmp_path)
    make = ("demos", "make", "wall_sensor", "--episodes", 1, "--workers", 1)
    assert r2d3(*make, "--out", "here")[0] == 0
    assert r2d3("demos", "check", "here", "--workers", 1)[0] == 0


def test_another_seed_gives_other_episodes(made, tmp_path, tools):
    other = tools.make(tmp_path, episodes=1, first_seed=making.FIRST_SEED + 1)
    first = tools.recording(made, 0).actions
    assert not np.array_equal(tools.recording(other, 0).actions, first)
    assert np.array_equal(tools.recording(other, 0).actions, tools.recording(made, 1).actions)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_killed_run_leaves_nothing_that_looks_whole_and_goes_on(made, tmp_path, tools, r2d3):
    command = "from r2d3.cli.main import main; import sys; sys.exit(main())"
    options = ["wall_sensor", "--episodes", "3", "--workers", "1", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-c", command, "demos", "make", *options], stderr=subprocess.DEVNULL
    )
    folder = tmp_path / making.default_id("wall_sensor", 1.0)
    first = datasets.half_made(folder) / "data" / "0" / "metadata.json"
    wait_for(first.exists)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not folder.exists()
    assert datasets.find_below(tmp_path) == []
    assert "half made: hardeight/wall-sensor/scripted-v0" in r2d3("demos", "list", tmp_path)[1]

    kept = first.stat().st_mtime_ns
    status, _, _ = r2d3("demos", "make", *options)
    assert status == 0
    assert (folder / "data" / "0" / "metadata.json").stat().st_mtime_ns == kept
    assert contents(folder) == contents(made)


def test_what_was_half_made_with_other_options_is_not_mixed_in(tmp_path, tools):
    plan = making.make_plan("wall_sensor", 2, 1.0)
    growing = datasets.half_made(tmp_path / plan.dataset_id)
    growing.mkdir(parents=True)
    making._begin(plan, growing)
    with pytest.raises(UserError, match=r"half-made.*first_seed 2147483648 there, 5 now"):
        tools.make(tmp_path, episodes=2, first_seed=5)


def test_a_dataset_is_not_overwritten_unless_asked(copy, tmp_path, r2d3):
    there = tmp_path / "hardeight" / "wall-sensor" / "scripted-v0"
    there.parent.mkdir(parents=True)
    copy.rename(there)
    make = ("demos", "make", "wall_sensor", "--out", tmp_path, "--workers", 1, "--episodes")
    status, _, error = r2d3(*make, 1)
    assert (status, error.count("\n")) == (2, 1)
    assert "episodes 3 there, 1 now" in error
    assert r2d3(*make, 1, "--anew")[0] == 0
    assert len(datasets.open_dataset(there)) == 1

    note = there / "data" / "metadata.json"
    metadata = json.loads(note.read_text())
    del metadata["plan"]  # as if a person had recorded it
    note.write_text(json.dumps(metadata))
    status, _, error = r2d3(*make, 1, "--anew")
    assert status == 2
    assert "left alone" in error


def test_two_runs_do_not_fill_the_same_folder(tmp_path, tools):
    plan = making.make_plan("wall_sensor", 3, 1.0)
    growing = [datasets.half_made(tmp_path / plan.dataset_id)]
    with making._locked(growing, anew=False), pytest.raises(UserError, match="being filled"):
        tools.make(tmp_path)


def test_reward_and_end_belong_to_the_action_that_earned_them(made, tools):
    """Played again by hand: action t, then reward t and observation t + 1."""
    episode = tools.recording(made, 1)
    env = gymnasium.make("HardEight/WallSensor-v0")
    observation, _ = env.reset(seed=episode.seed)
    for t, action in enumerate(episode.actions):
        assert np.array_equal(episode.observations["rgb"][t], observation["rgb"])
        observation, reward, terminated, truncated, _ = env.step(action)
        assert episode.rewards[t] == reward
        assert episode.terminations[t] == terminated
        assert episode.truncations[t] == truncated
    assert np.array_equal(episode.observations["rgb"][-1], observation["rgb"])
    assert episode.rewards[-1] == 10
    assert episode.terminations[-1]
    assert len(episode.observations["rgb"]) == len(episode.actions) + 1


def test_who_gives_up_is_cut_off_and_not_ended(monkeypatch):
    monkeypatch.setitem(habits.PEOPLE, "wall_sensor", habits.Person(1.0, 2.0, 0.0))
    episode = record("wall_sensor", 7, "human")
    assert episode.gave_up
    assert not episode.success
    assert len(episode.actions) == 30  # 2 s
    assert episode.truncations.tolist() == [False] * 29 + [True]
    assert not episode.terminations.any()


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_minari_reads_it_without_loss(made, tmp_path, tools, monkeypatch, form):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    tools.make(tmp_path, episodes=1, form=form)
    (name,) = minari.list_local_datasets()
    dataset = minari.load_dataset(name)
    (read,) = list(dataset)
    played = record("wall_sensor", making.FIRST_SEED)
    for field, array in played.observations.items():
        assert np.array_equal(read.observations[field], array)
    assert np.array_equal(read.actions, played.actions)
    assert np.array_equal(read.rewards, played.rewards)
    assert dataset.recover_environment().spec.id == "HardEight/WallSensor-v0"
    (metadata,) = dataset.storage.get_episode_metadata([0])
    assert metadata["seed"] == making.FIRST_SEED
    assert metadata["demonstrator"] == habits.demonstrator_of(making.FIRST_SEED)
    assert metadata["success"] is True


def test_seeds_are_kept_apart_from_training_and_evaluation():
    training = max(training_seed(run, env, 0) for run in range(9) for env in range(99))
    assert max(training, evaluation_seed(10**6)) < making.FIRST_SEED

"""`demos check`: what happened passes; one planted action, pixel or reward does not."""

import dataclasses
import json

import numpy as np
import pytest

from hard_eight.actions import ACTION_INDEX, NOOP
from studio.checking import check_dataset

EPISODE, STEP = 1, 40


def test_what_was_recorded_happens_again(made, r2d3):
    status, out, _ = r2d3("demos", "check", made, "--workers", 1)
    assert status == 0
    assert "3 episodes, every bit as recorded" in out


def turn_the_other_way(episode):
    left, right = ACTION_INDEX["look_left"], ACTION_INDEX["look_right"]
    episode.actions[STEP] = right if episode.actions[STEP] == left else left


def another_reward(episode):
    episode.rewards[STEP] += 1


def another_pixel(episode):
    episode.observations["rgb"][STEP + 1, 10, 20, 2] ^= 1


def another_feeling(episode):
    episode.observations["acceleration"][STEP + 1, 0] += 1e-3


def ended_instead_of_cut_off(episode):
    episode.terminations[-1], episode.truncations[-1] = False, True


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (turn_the_other_way, f"step {STEP}:"),
        (another_reward, f"step {STEP}: reward is 0.0, recorded was 1.0"),
        (another_pixel, f"step {STEP}: 1 pixel of the picture after it differ"),
        (another_feeling, f"step {STEP}: acceleration is"),
        (ended_instead_of_cut_off, "terminated is True, recorded was False"),
    ],
)
def test_one_planted_change_is_found_and_named(copy, tools, r2d3, change, what):
    episode = tools.recording(copy, EPISODE)
    change(episode)
    tools.rewrite(copy, EPISODE, episode)
    status, out, _ = r2d3("demos", "check", copy, "--workers", 1)
    assert status == 1
    assert what in out
    assert "1 of 3 episodes differ" in out
    assert {finding.episode for finding in check_dataset(copy, 1)} == {EPISODE}


def test_a_changed_action_without_any_effect_is_found_too(copy, tools):
    """Grasping at nothing looks just like doing nothing: only the fingerprint can tell."""
    episode = tools.recording(copy, EPISODE)
    note = copy / "data" / str(EPISODE) / "metadata.json"
    metadata = note.read_text()
    effectless = np.append(episode.actions[:-1], [NOOP])
    tools.rewrite(copy, EPISODE, dataclasses.replace(episode, actions=effectless))
    note.write_text(metadata)
    findings = check_dataset(copy, 1)
    assert any("SHA-256" in finding.what for finding in findings)
    assert json.loads(metadata)["actions_sha256"]


def test_steps_after_the_end_are_found(copy, tools):
    episode = tools.recording(copy, EPISODE)
    longer = dataclasses.replace(
        episode,
        observations={k: np.concatenate([v, v[-1:]]) for k, v in episode.observations.items()},
        actions=np.append(episode.actions, NOOP),
        rewards=np.append(episode.rewards, 0.0),
        terminations=np.append(np.zeros(len(episode.actions), bool), True),
        truncations=np.append(episode.truncations, False),
    )
    tools.rewrite(copy, EPISODE, longer)
    whats = " ".join(finding.what for finding in check_dataset(copy, 1))
    assert "the episode ends here" in whats


def test_a_dataset_of_another_world_is_told_from_a_tampered_one(copy, tools, r2d3):
    episode = tools.recording(copy, EPISODE)
    another_pixel(episode)
    tools.rewrite(copy, EPISODE, episode)
    assert "made with" not in r2d3("demos", "check", copy, "--workers", 1)[1]
    note = copy / "data" / "0" / "metadata.json"
    metadata = json.loads(note.read_text())
    metadata["versions"]["hard_eight_source"] = "elsewhere"
    note.write_text(json.dumps(metadata))
    out = r2d3("demos", "check", copy, "--workers", 1)[1]
    assert "hard_eight_source elsewhere" in out

"""The figures of `demos stats`, against arrays made by hand."""

import json
import warnings

import minari
import numpy as np
import pytest
from minari.data_collector import EpisodeBuffer

from hard_eight.actions import ACTION_INDEX
from studio import datasets, stats
from studio.recording import Recording, make_env

FORWARD, FINE = ACTION_INDEX["forward"], ACTION_INDEX["forward_fine"]


def episode(demonstrator, actions, rewards, success):
    steps = len(actions)
    space = make_env("wall_sensor").observation_space
    ends = np.append(np.zeros(steps - 1, bool), True)
    return Recording(
        seed=0,
        task="wall_sensor",
        demonstrator=demonstrator,
        skill=1.0,
        observations={
            name: np.zeros((steps + 1, *part.shape), part.dtype) for name, part in space.items()
        },
        actions=np.array(actions),
        rewards=np.array(rewards, float),
        terminations=ends & success,
        truncations=ends & (not success),
        success=success,
        gave_up=False,
    )


@pytest.fixture
def folder(tmp_path):
    """Two people: one wins in 2 and in 4 decisions, the other loses one point in 6."""
    episodes = [
        episode("brisk", [FORWARD, FORWARD], [0, 10], True),
        episode("brisk", [FORWARD, FINE, FINE, FORWARD], [1, 0, 0, 10], True),
        episode("careful", [FORWARD, 5, 5, 5, 5, 5], [0, 0, -1, 0, 0, 0], False),
    ]
    env = make_env("wall_sensor")
    data = tmp_path / "hand" / "made-v0" / "data"
    for number, made in enumerate(episodes):
        datasets.write_episode(data, number, made, env, "arrow")
    datasets.write_metadata(data, "hand/made-v0", env, "arrow", {})
    return data.parent


def test_the_figures_are_those_counted_by_hand(folder):
    everyone, brisk, careful = stats.facts(folder)
    assert (everyone["demonstrator"], brisk["demonstrator"]) == ("all", "brisk")
    assert everyone["episodes"] == 3
    assert everyone["score"] == pytest.approx((10 + 11 - 1) / 3)
    assert everyone["frames"] == pytest.approx((4 + 8 + 12) / 3)  # 2 frames a decision
    assert everyone["frames_spread"] == pytest.approx(np.sqrt(32 / 3))
    assert everyone["success"] == pytest.approx(2 / 3)
    assert everyone["actions_used"] == 3
    assert everyone["fine"] == pytest.approx((2 + 5 * ("_fine" in name_of(5))) / 12)
    assert everyone["human"]["score"] == 9.1
    assert (brisk["score"], brisk["score_spread"], brisk["success"]) == (10.5, 0.5, 1.0)
    assert (careful["score"], careful["frames"], careful["success"]) == (-1, 12, 0.0)


def name_of(number):
    return next(name for name, index in ACTION_INDEX.items() if index == number)


def test_the_table_shows_people_beside_them(folder, r2d3):
    status, out, _ = r2d3("demos", "stats", folder)
    assert status == 0
    line = " ".join(out.splitlines()[1].split())
    assert line == "hand/made-v0 all 3 6.7 ± 5.4 8 ± 3 67% 3 58% 9.1 ± 2.8 280 ± 87"
    assert json.loads(r2d3("demos", "stats", folder, "--json")[1])[2]["demonstrator"] == "careful"


def test_the_table_goes_into_a_page_again_and_again(folder, tmp_path, r2d3):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- demos stats -->\nold\n<!-- end of demos stats -->\nafter\n")
    for _ in range(2):
        assert r2d3("demos", "stats", folder, "--into", page)[0] == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert text.count("hand/made-v0") == 1
    assert "old" not in text


def test_a_page_may_hold_several_tables(folder, tmp_path, r2d3):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- demos stats -->\n<!-- end of demos stats -->\n<!-- b -->\n<!-- end of b -->"
    )
    assert r2d3("demos", "stats", folder, "--into", page, "--mark", "b")[0] == 0
    assert page.read_text().split("<!-- b -->")[1].count("hand/made-v0") == 1
    status, _, error = r2d3("demos", "stats", folder, "--into", page, "--mark", "c")
    assert (status, error.count("\n")) == (2, 1)


def test_list_names_what_there_is(folder, tmp_path, r2d3):
    _, out, _ = r2d3("demos", "list", tmp_path)
    name, episodes, steps, _, success = out.splitlines()[1].split()
    assert (name, episodes, steps, success) == ("hand/made-v0", "3", "12", "67%")


def test_somebody_elses_dataset_is_counted_too_but_cannot_be_played_again(r2d3):
    """CartPole, written by Minari: no demonstrators, no successes, no frames to speak of."""
    buffer = EpisodeBuffer(
        id=0,
        observations=np.zeros((4, 4), np.float32),
        actions=np.array([0, 1, 1]),
        rewards=[1.0, 1.0, 1.0],
        terminations=[False, False, True],
        truncations=[False] * 3,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari would like to know the author
        minari.create_dataset_from_buffers(
            "cart/pole-v0", [buffer], env="CartPole-v1", data_format="arrow"
        )
    status, out, _ = r2d3("demos", "stats", "cart/pole-v0")
    assert status == 0
    assert out.splitlines()[1].split() == (
        ["cart/pole-v0", "all", "1", "3.0", "±", "0.0", "3", "±", "0", "unknown", "2"]
    )
    status, _, error = r2d3("demos", "check", "cart/pole-v0")
    assert (status, error.count("\n")) == (2, 1)
    assert "names no Hard-Eight environment" in error

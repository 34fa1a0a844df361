"""Demonstrators differ, err as their skill says, and do the same again on the same seed."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from hard_eight import experts
from hard_eight.actions import ACTIONS
from hard_eight.errors import HardEightError
from hard_eight.experts.habits import DEMONSTRATORS, demonstrator_of
from studio.recording import record

SEEDS = range(100, 106)


@cache
def played(demonstrator, skill=1.0):
    return [record("wall_sensor", seed, skill, demonstrator) for seed in SEEDS]


def share(episodes, wanted):
    actions = np.concatenate([episode.actions for episode in episodes])
    return float(np.mean([wanted(ACTIONS[action].name) for action in actions]))


def length(episodes):
    return float(np.mean([len(episode.actions) for episode in episodes]))


def test_the_careful_one_uses_more_fine_actions_than_the_brisk_one():
    fine = {who: share(played(who), lambda name: "_fine" in name) for who in DEMONSTRATORS}
    assert fine["careful"] > 1.3 * fine["brisk"]


def test_the_brisk_one_is_done_first_and_pauses_least():
    lengths = {who: length(played(who)) for who in DEMONSTRATORS}
    pauses = {who: share(played(who), lambda name: name == "noop") for who in DEMONSTRATORS}
    assert min(lengths, key=lengths.get) == "brisk"
    assert min(pauses, key=pauses.get) == "brisk"


def test_two_of_them_turn_to_different_sides():
    def first_turn(episode):
        names = [ACTIONS[action].name for action in episode.actions]
        return next(name for name in names if name.startswith(("look_left", "look_right")))

    firsts = {who: Counter(map(first_turn, played(who))) for who in ("brisk", "careful")}
    assert firsts["brisk"].most_common(1) != firsts["careful"].most_common(1)


def test_all_three_win_at_full_skill():
    assert all(episode.success for who in DEMONSTRATORS for episode in played(who))


def test_less_skill_takes_longer():
    assert length(played("brisk", 0.3)) > 1.4 * length(played("brisk"))


def test_the_same_again_on_the_same_seed():
    again = record("wall_sensor", SEEDS[0], 0.3, "brisk")
    assert np.array_equal(again.actions, played("brisk", 0.3)[0].actions)
    assert not np.array_equal(again.actions, played("brisk")[0].actions)


def test_a_third_of_the_seeds_is_each_ones():
    turns = Counter(demonstrator_of(seed) for seed in range(2**31, 2**31 + 99))
    assert dict(turns) == dict.fromkeys(DEMONSTRATORS, 33)


def test_people_give_up_and_experts_do_not():
    human = experts.make("wall_sensor", seed=5, skill="human")
    expert = experts.make("wall_sensor", seed=5)
    assert human.habits.patience < 60
    assert expert.habits.patience == float("inf")


@pytest.mark.parametrize("skill", [-0.1, 1.1, "expert", float("nan"), None])
def test_an_unknown_skill_is_refused(skill):
    with pytest.raises(HardEightError, match="skill"):
        experts.make("wall_sensor", skill=skill)


def test_an_unknown_demonstrator_is_refused():
    with pytest.raises(HardEightError, match="brisk, careful, curious"):
        experts.make("wall_sensor", demonstrator="nobody")

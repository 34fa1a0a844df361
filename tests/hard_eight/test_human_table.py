"""What is said of people stands in the paper so."""

import pytest

from hard_eight.task import find_task

# Gulcehre et al. 2019, table of human demonstrations: reward and its spread, length and its spread.
PAPER = """
baseball           7.8 4.1 492 121
drawbridge        12.3 2.5 641 137
navigate_cubes     7.9 4.1 638 185
push_blocks        9.1 2.9 683 270
remember_sensor    7.7 1.4 853 188
throw_across       5.4 4.9 464 172
wall_sensor        9.1 2.8 280  87
wall_sensor_stack  8.6 3.5 521 107
"""


@pytest.mark.parametrize("line", PAPER.strip().splitlines())
def test_the_human_figures_are_the_papers(line):
    name, *figures = line.split()
    assert find_task(name).human == tuple(map(float, figures))

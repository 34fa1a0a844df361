"""The evaluator's process: the same `Evaluator`, apart from everything else."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from r2d3.config import Config
from r2d3.evaluator import Evaluator
from r2d3.launch.parts import make_network
from r2d3.launch.ray.acting import load_weights
from r2d3.machine import prepare
from r2d3.spaces import ObservationSpec


class EvaluatingProcess:
    def __init__(self, config: Config, spec: ObservationSpec, actions: int):
        prepare(1)
        self.newest = make_network(config, spec, actions)
        self.evaluator = Evaluator(config, self.newest)

    def play(
        self, weights: dict[str, np.ndarray], episodes: int, video: str | None
    ) -> dict[str, Any]:
        load_weights(self.newest, weights)
        result = self.evaluator.evaluate(self.newest, episodes)
        if video is not None:
            self.evaluator.record(self.newest, pathlib.Path(video))
        return result

"""Moving pictures and maps, as data that the page carries in itself."""

from __future__ import annotations

import base64
import json
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from hard_eight.pictures import TRAIL_RGB, top_down, write_png
from r2d3.cli.runs import load_trained_network
from r2d3.environments import evaluation_seed
from r2d3.errors import UserError
from r2d3.evaluator import film, follow, save_video
from r2d3.networks import AgentNetwork
from studio.datasets import find, open_dataset
from studio.video import compose, write_video

from .reading import RunData

VIDEO_HEIGHT, MAP_SIDE = 240, 320  # pixels
MAPS = 4
LIFELIKE_SECONDS, SPED_UP = 20.0, 8
FRAMES_PER_SECOND = 30
LOST_RGB = (226, 84, 52)


@dataclass(frozen=True)
class Clip:
    title: str
    data: str  # a data: URL
    note: str = ""


@dataclass(frozen=True)
class Media:
    clips: list[Clip] = field(default_factory=list)
    maps: list[Clip] = field(default_factory=list)


def as_data(path: Path) -> str:
    kind = {".mp4": "video/mp4", ".png": "image/png"}[path.suffix]
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def make_media(run: RunData) -> Media:
    """The newest agent at play, beside a demonstration; on Hard-Eight also maps of its ways."""
    hard_eight = run.human is not None
    clips: list[Clip] = []
    maps: list[Clip] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with suppress(UserError):  # no checkpoint yet, or an environment that draws no pictures
            network = load_trained_network(run.config)
            if hard_eight:
                clips.append(_agent_with_map(run, network, folder / "agent.mp4"))
                maps = _maps(run, network, folder / "map.png")
            else:
                clips.append(_agent(run, network, folder / "agent.mp4"))
        if hard_eight and run.config.demos:
            with suppress(UserError):  # a dataset that cannot be played again
                clips.append(_demonstration(run, folder / "demonstration.mp4"))
    return Media(clips, maps)


def _agent(run: RunData, network: AgentNetwork, path: Path) -> Clip:
    save_video(path, film(network, run.config))
    return Clip("The newest agent", as_data(path), "The first evaluation episode.")


def _agent_with_map(run: RunData, network: AgentNetwork, path: Path) -> Clip:
    """The whole episode: a beaten agent wanders for minutes, so what comes late is shown faster."""
    rate = FRAMES_PER_SECOND / run.frames_per_decision
    trail: list[np.ndarray] = []

    def look(env: Any) -> np.ndarray | None:
        world = env.unwrapped.world
        late = len(trail) >= LIFELIKE_SECONDS * rate
        skipped = late and len(trail) % SPED_UP != 0
        trail.append(world.position[:2])
        if skipped:
            return None
        text = f"{len(trail) / rate:6.2f} s" + (f"   shown {SPED_UP} times as fast" if late else "")
        return compose(world, trail, text, VIDEO_HEIGHT)

    seen, played = follow(network, run.config, evaluation_seed(0), look)
    save_video(path, [picture for picture in seen if picture is not None], round(rate))
    note = f"The first evaluation episode: return {played.undiscounted_return:g}."
    return Clip("The newest agent", as_data(path), note)


def _demonstration(run: RunData, path: Path) -> Clip:
    folder = find([run.config.demos])[0]
    who = open_dataset(folder).episodes[0].get("demonstrator", "unknown")
    write_video(folder, 0, path, VIDEO_HEIGHT, quiet=True)
    return Clip("A demonstration", as_data(path), f"The dataset's first episode, by '{who}'.")


def _maps(run: RunData, network: AgentNetwork, path: Path) -> list[Clip]:
    """Each evaluation seed's world as the episode begins, with the way taken through it."""
    maps = []
    env = gymnasium.make(run.config.env, **json.loads(run.config.env_args))
    for number in range(MAPS):
        seed = evaluation_seed(number)
        trail, played = follow(
            network, run.config, seed, lambda e: np.array(e.unwrapped.world.position[:2])
        )
        env.reset(seed=seed)
        world = env.unwrapped.world  # type: ignore[attr-defined]
        trails = [(np.array(trail), TRAIL_RGB if played.success else LOST_RGB)]
        write_png(path, top_down(world, height=MAP_SIDE, width=MAP_SIDE, trails=trails))
        end = "won" if played.success else "not won"
        seconds = played.length * run.frames_per_decision / FRAMES_PER_SECOND
        title = f"episode {number}: {end}, return {played.undiscounted_return:g}, {seconds:.0f} s"
        maps.append(Clip(title, as_data(path)))
    env.close()
    return maps

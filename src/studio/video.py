"""One recorded episode as a video: the first person's view, larger, with the map beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hard_eight.actions import ACTIONS
from hard_eight.pictures import TRAIL_RGB, first_person, top_down
from hard_eight.world import World
from r2d3.errors import UserError

from .checking import environment, resimulable
from .datasets import Dataset, read_episode
from .progress import progress

FRAMES_PER_SECOND = 30
LAST_PICTURE = 1.0  # s for which the end stays
CAPTION = 20  # pixels
PALETTE_PICTURES = 24  # of a film, from which a GIF's colours are chosen
SUFFIXES = (".mp4", ".gif")


def write_video(
    folder: Path, episode: int, out: Path, height: int = 480, *, quiet: bool = False
) -> float:
    """Re-simulate an episode and film it in real time; returns its length in seconds."""
    if out.suffix not in SUFFIXES:
        raise UserError(f"--out {out}: the name must end in {' or '.join(SUFFIXES)}")
    if not out.resolve().parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.parent}")
    if height % 16 or not 96 <= height <= 960:
        raise UserError(f"--height is {height}; it must be a multiple of 16 from 96 to 960")
    dataset = resimulable(folder)
    if not 0 <= episode < len(dataset):
        raise UserError(
            f"no episode {episode} in '{dataset.name}'; there are 0 to {len(dataset) - 1}"
        )
    raw = read_episode(dataset, episode)
    repeat = int(dataset.minari.env_spec.kwargs.get("action_repeat", 2))
    rate = FRAMES_PER_SECOND / repeat
    pictures = _pictures(dataset, raw, dataset.episodes[episode], height, rate)
    filmed = pictures if quiet else progress(pictures, len(raw.actions) + 1, "pictures")
    growing = out.with_name(f".{out.name}.part{out.suffix}")
    try:
        (_write_gif if out.suffix == ".gif" else _write_mp4)(growing, filmed, rate)
        growing.replace(out)
    finally:
        growing.unlink(missing_ok=True)
    return len(raw.actions) / rate


def _pictures(
    dataset: Dataset, raw: Any, metadata: dict[str, Any], height: int, rate: float
) -> Iterator[np.ndarray]:
    env = environment(dataset)
    env.reset(seed=metadata["seed"])
    world: World = env.unwrapped.world  # type: ignore[attr-defined]
    trail = [world.position[:2]]
    total = 0.0
    for t in range(len(raw.actions) + 1):
        action = "" if t == 0 else ACTIONS[int(raw.actions[t - 1])].name
        if t > 0:
            _, reward, *_ = env.step(int(raw.actions[t - 1]))
            total += float(reward)
            trail.append(world.position[:2])
        text = f"{t / rate:6.2f} s   return {total:g}   {action}"
        yield compose(world, trail, text, height)


def compose(world: World, trail: list[np.ndarray], text: str, height: int) -> np.ndarray:
    """The first person's view, the map with the way come, and a line of text below both."""
    width = height * 4 // 3
    view = first_person(world, height=height, width=width)
    trails = [(np.array(trail), TRAIL_RGB)]
    overview = top_down(world, height=height, width=height, trails=trails)
    return np.concatenate([np.concatenate([view, overview], 1), _caption(text, width + height)])


def _caption(text: str, width: int) -> np.ndarray:
    from PIL import Image, ImageDraw

    strip = Image.new("RGB", (width, CAPTION), (245, 245, 245))
    ImageDraw.Draw(strip).text((8, 4), text, fill=(20, 20, 20))
    return np.asarray(strip)


def _write_mp4(path: Path, pictures: Iterator[np.ndarray], rate: float) -> None:
    import imageio_ffmpeg

    picture = next(pictures)
    height, width, _ = picture.shape
    writer = imageio_ffmpeg.write_frames(
        str(path), (width, height), fps=rate, quality=8, macro_block_size=2
    )
    writer.send(None)
    writer.send(np.ascontiguousarray(picture))
    for picture in pictures:
        writer.send(np.ascontiguousarray(picture))
    for _ in range(round(LAST_PICTURE * rate)):
        writer.send(np.ascontiguousarray(picture))
    writer.close()


def _write_gif(path: Path, pictures: Iterator[np.ndarray], rate: float) -> None:
    from PIL import Image

    images = list(pictures)
    # One palette for all, without dithering: else what stands still would flicker.
    sample = images[:: max(1, len(images) // PALETTE_PICTURES)]
    palette = Image.fromarray(np.concatenate(sample)).quantize(256)
    frames = [
        Image.fromarray(image).quantize(palette=palette, dither=Image.Dither.NONE)
        for image in images
    ]
    times = _gif_times(len(frames), rate)
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=times, loop=0)


def _gif_times(frames: int, rate: float) -> list[int]:
    """Milliseconds for each picture. GIF counts in hundredths: rounded so that no time is lost."""
    ends = [round(100 * (k + 1) / rate) for k in range(frames)]
    times = [10 * (end - begin) for begin, end in zip([0, *ends], ends, strict=False)]
    times[-1] += round(1000 * LAST_PICTURE)
    return times

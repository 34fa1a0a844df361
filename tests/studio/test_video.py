"""Films: one picture for the start and one after each action, in real time."""

import imageio_ffmpeg
import pytest
from PIL import Image

from studio import datasets


def steps_of(folder, number):
    return datasets.open_dataset(folder).episodes[number]["total_steps"]


def test_a_gif_shows_every_step_in_real_time(made, tmp_path, r2d3):
    out = tmp_path / "episode.gif"
    status, _, _ = r2d3("demos", "video", made, "--episode", 1, "--height", 96, "--out", out)
    assert status == 0
    steps = steps_of(made, 1)
    with Image.open(out) as film:
        assert film.size == (96 * 4 // 3 + 96, 96 + 20)
        lasting = 0
        for k in range(film.n_frames):  # pictures that do not change are joined into one
            film.seek(k)
            lasting += film.info["duration"]
    assert lasting == pytest.approx(1000 * ((steps + 1) / 15 + 1), abs=20)


def test_all_pictures_of_a_gif_share_their_colours(made, tmp_path, r2d3):
    """With a choice of colours for each, what stands still would flicker."""
    out = tmp_path / "episode.gif"
    assert r2d3("demos", "video", made, "--height", 96, "--out", out)[0] == 0
    colours = set()
    with Image.open(out) as film:
        for k in range(film.n_frames):
            film.seek(k)
            colours |= {colour for _, colour in film.convert("RGB").getcolors(1 << 16)}
    assert len(colours) <= 256


def test_an_mp4_shows_every_step_in_real_time(made, tmp_path, r2d3):
    out = tmp_path / "episode.mp4"
    assert r2d3("demos", "video", made, "--height", 96, "--out", out)[0] == 0
    frames, _ = imageio_ffmpeg.count_frames_and_secs(str(out))
    assert frames == steps_of(made, 0) + 1 + 15
    assert next(imageio_ffmpeg.read_frames(str(out)))["fps"] == pytest.approx(15, abs=0.01)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--out", "film.avi"], ".mp4 or .gif"),
        (["--out", "nowhere/film.gif"], "there is no folder nowhere"),
        (["--out", "film.gif", "--episode", "3"], "there are 0 to 2"),
        (["--out", "film.gif", "--height", "100"], "multiple of 16"),
    ],
)
def test_what_cannot_be_filmed_is_refused(made, r2d3, options, reason):
    status, _, error = r2d3("demos", "video", made, *options)
    assert (status, error.count("\n")) == (2, 1)
    assert reason in error

"""The run's page: everything in one file, what was measured and nothing else."""

import json
import re
from html.parser import HTMLParser

import pytest

from r2d3.config import make_config
from r2d3.errors import UserError
from studio.report import Media, write_report
from studio.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Chart, Line, draw, ticks
from studio.report.page import command, recent
from studio.report.reading import read_run

VOID = {"meta", "br", "img", "link", "input", "hr"}
TINY = (
    *("--agent", "r2d3", "--features", "8", "--hidden", "8", "--sequence-length", "8"),
    *("--burn-in", "4", "--overlap", "4", "--batch-size", "4", "--actors", "2"),
    *("--min-replay", "10", "--learner-steps", "12", "--threads", "0", "--log-every", "5"),
    *("--evaluate-every", "6", "--evaluation-episodes", "2", "--final-episodes", "2"),
    *("--demo-ratio", "1/4", "--env-args", '{"time_limit": 2.0}', "--no-tensorboard"),
)


class Tags(HTMLParser):
    """Checks that tags close in order, and keeps what the page refers to."""

    def __init__(self, text):
        super().__init__()
        self.open, self.referred, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        self.referred += [value for name, value in attributes if name in ("src", "href")]

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)


def rows(evaluations):
    for k in range(1, evaluations + 1):
        time = {"elapsed_s": 60.0 * k, "decisions_per_s": 500.0, "learner_steps_per_s": 20.0}
        common = {"learner_steps": 100 * k, "decisions": 1000 * k, "time": time}
        yield {"kind": "train", "success": 0.1 * k, "return": k, "milestone/held": 0.5, **common}
        yield {
            "kind": "evaluation", "episodes": 10, "success": 0.2 * k, "return": 2.0 * k,
            "length": 30.0, **common,
        }  # fmt: skip


@pytest.fixture
def run_folder(tmp_path):
    config = make_config(env="Some/Env-v0", agent="r2d2", minutes=5.0, seed=7)
    (tmp_path / "config.json").write_text(config.to_json())
    lines = [json.dumps(row) + "\n" for row in rows(4)]
    (tmp_path / "metrics.jsonl").write_text("".join(lines) + '{"kind": "train", "cut')
    return tmp_path


def test_the_page_is_whole_in_itself_and_shows_what_was_measured(run_folder):
    page = Tags(write_report(run_folder, Media()).read_text())
    assert all(link.startswith("data:") for link in page.referred)
    assert "R2D2 on Some/Env-v0" in page.text
    assert "80%" in page.text  # the newest evaluation's success
    assert "4.0 min" in page.text
    assert "stopped before its end" in page.text
    assert "r2d3 train Some/Env-v0 --agent r2d2 --preset laptop --out runs/" in page.text
    assert "--seed 7 --minutes 5" in page.text


def test_a_page_of_a_running_run_renews_itself_and_a_finished_one_does_not(run_folder):
    assert 'http-equiv="refresh"' in write_report(run_folder, Media(), running=True).read_text()
    with (run_folder / "metrics.jsonl").open("w") as file:
        for row in rows(2):
            file.write(json.dumps(row) + "\n")
        file.write(json.dumps({**row, "kind": "final"}) + "\n")
    text = write_report(run_folder, Media()).read_text()
    assert "refresh" not in text
    assert "finished" in text
    assert not list(run_folder.glob(".*"))


def test_a_run_without_a_single_line_has_a_page_too(run_folder):
    (run_folder / "metrics.jsonl").unlink()
    assert "Nothing measured yet." in Tags(write_report(run_folder, Media()).read_text()).text


def test_text_from_outside_cannot_break_the_page(run_folder):
    config = make_config(env="<script>alert(1)</script>", agent="r2d2", minutes=1.0)
    (run_folder / "config.json").write_text(config.to_json())
    assert "<script" not in write_report(run_folder, Media()).read_text()


def test_the_command_makes_the_same_configuration_again():
    from r2d3.cli import train
    from r2d3.cli.parser import Parser

    config = make_config(
        env="A/B-v0", agent="dqfd", demos="x/y-v0", minutes=2.5, demo_ratio=1 / 3,
        clip_rewards=False, env_args='{"height": 36}', seed=4, out="runs/a b",
    )  # fmt: skip
    import shlex

    parser = Parser("r2d3 train", train.HELP, train.EPILOG)
    train.add_arguments(parser)
    said = vars(parser.parse(shlex.split(command(config))[2:]))
    said = {k: v for k, v in said.items() if v is not None and k in config.__dict__}
    assert make_config(**said) == config


def test_success_over_the_last_25_episodes_needs_25_episodes():
    points = [(1.0, 0.0), (2.0, 1.0), (3.0, 1.0), (4.0, 0.5)]
    assert recent(points, 10) == [(3.0, pytest.approx(2 / 3)), (4.0, pytest.approx(2.5 / 3))]
    assert recent(points, 25) == points


def test_a_chart_draws_every_point_where_it_belongs():
    chart = Chart("t", "x", "y", [Line("l", [(0.0, 0.0), (5.0, 1.0), (10.0, 0.5)], "a")])
    (path,) = re.findall(r'<polyline[^>]*points="([^"]*)"', draw(chart))
    at = [tuple(map(float, pair.split(","))) for pair in path.split()]
    right, floor, middle = WIDTH - RIGHT, HEIGHT - BOTTOM, (TOP + HEIGHT - BOTTOM) / 2
    assert at == [(LEFT, floor), ((LEFT + right) / 2, TOP), (right, middle)]


def test_a_long_line_is_thinned_without_losing_its_level():
    points = [(float(i), float(i % 2)) for i in range(4000)]
    (path,) = re.findall(r'points="([^"]*)"', draw(Chart("t", "x", "y", [Line("l", points, "a")])))
    heights = {pair.split(",")[1] for pair in path.split()}
    assert len(path.split()) == 400
    assert heights == {f"{(TOP + HEIGHT - BOTTOM) / 2:.1f}"}  # the mean of 0 and 1


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 0.003), (-7, 12), (0, 123456), (0.5, 0.51)])
def test_ticks_are_few_round_and_inside(low, high):
    marks = ticks(low, high)
    assert 3 <= len(marks) <= 8
    assert all(low - 1e-9 <= mark <= high + 1e-9 for mark in marks)


def test_what_is_no_run_folder_is_refused(tmp_path, r2d3):
    status, _, said = r2d3("report", tmp_path)
    assert status == 2
    assert "holds no config.json" in said
    with pytest.raises(UserError):
        read_run(tmp_path)


def test_a_training_run_leaves_a_page_with_videos_and_maps(made, tmp_path, r2d3):
    out = tmp_path / "run"
    status, said, wrong = r2d3(
        "train", "HardEight/WallSensor-v0", "--demos", made, "--out", out, *TINY
    )
    assert status == 0, wrong
    assert f"report: {out / 'report.html'}" in said
    page = Tags((out / "report.html").read_text())
    kinds = [link.split(";")[0] for link in page.referred]
    assert kinds == ["data:video/mp4"] * 2 + ["data:image/png"] * 4
    assert "demonstrators: 100%" in page.text
    assert "key held" in page.text  # a milestone
    assert "people: 9.1" in page.text

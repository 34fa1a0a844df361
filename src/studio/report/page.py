"""The report's one page: text, charts and moving pictures in a single file that needs no other."""

from __future__ import annotations

import dataclasses
import sys
from html import escape
from itertools import pairwise
from pathlib import Path

from r2d3.config import Config, make_config

from .charts import Chart, Level, Line, draw, short
from .media import Media
from .reading import LAST_EPISODES, RunData

STYLE = Path(__file__).with_name("style.css")
MILESTONE_LOOKS = "abcdef"
REFRESH_SECONDS = 30
AGENTS = {"r2d3": "R2D3", "r2d2": "R2D2", "dqfd": "DQfD", "bc": "Behavioural cloning"}


def page(run: RunData, media: Media, *, running: bool) -> str:
    """The whole HTML document."""
    title = f"{AGENTS[run.config.agent]} on {run.config.env}"
    refresh = f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">' if running else ""
    sections = [
        _header(title, run, running),
        _tiles(run),
        _section("Learning", _grid(_success(run), _returns(run))),
        _section("How far episodes get", _milestones(run)),
        _section("See it play", _pictures(media)),
        _section("Speed, and who waits for whom", _grid(_speed(run), _waiting(run))),
        _section("Does it understand?", _grid(_values(run), _agreement(run), _gradients(run))),
        _section("Reproduce", _reproduce(run.config)),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{refresh}<title>{escape(title)}</title><style>{STYLE.read_text()}</style></head>"
        f"<body><main>{''.join(sections)}</main></body></html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def _grid(*charts: Chart) -> str:
    across = min(len(charts), 3)
    return f'<div class="grid{across}">{"".join(draw(chart) for chart in charts)}</div>'


# --- the head -----------------------------------------------------------------------------------


def _header(title: str, run: RunData, running: bool) -> str:
    state = "running" if running else "finished" if run.is_finished else "stopped"
    what = {
        "running": f"still training; this page renews itself every {REFRESH_SECONDS} s",
        "finished": "finished",
        "stopped": "stopped before its end; r2d3 train --resume goes on",
    }[state]
    return (
        f'<header><p class="state {state}"><i></i>{escape(what)}</p><h1>{escape(title)}</h1>'
        f'<p class="sub">{escape(str(run.folder))} · seed {run.config.seed} · '
        f"preset {run.config.preset}</p></header>"
    )


def _tiles(run: RunData) -> str:
    latest = run.last("final") or run.last("evaluation")
    train = run.last("train") or {}
    tiles = []
    if latest is not None:
        kind = "final evaluation" if latest["kind"] == "final" else "newest evaluation"
        tiles.append(("success", f"{latest['success']:.0%}", f"{kind}, {latest['episodes']}×"))
        compared = f"people: {run.human.score:g}" if run.human else f"{kind}"
        tiles.append(("return", f"{latest['return']:.3g}", compared))
        frames = latest["length"] * run.frames_per_decision
        people = f"people: {run.human.length:.0f} frames" if run.human else "decisions an episode"
        tiles.append(("episode", f"{frames:.0f}", people))
        tiles.append(("trained", _duration(run), f"{short(latest['learner_steps'])} learner steps"))
        tiles.append(("experience", short(latest["decisions"]), "decisions of the actors"))
    if "time" in train:
        rate = train["time"].get("decisions_per_s", 0.0)
        steps = train["time"].get("learner_steps_per_s", 0.0)
        tiles.append(("speed", f"{short(rate)}/s", f"decisions; {short(steps)} learner steps/s"))
    return (
        '<div class="tiles">'
        + "".join(
            f'<div class="tile"><span>{escape(name)}</span><b>{escape(value)}</b>'
            f"<small>{escape(note)}</small></div>"
            for name, value, note in tiles
        )
        + "</div>"
    )


def _duration(run: RunData) -> str:
    seconds = max((row.get("time", {}).get("elapsed_s", 0.0) for row in run.rows), default=0.0)
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


# --- the charts ---------------------------------------------------------------------------------

MINUTES = "minutes of training"


def recent(points: list[tuple[float, float]], each: int) -> list[tuple[float, float]]:
    """Success over the last 25 evaluation episodes, as the paper judges an agent."""
    many = max(1, -(-LAST_EPISODES // each))
    return [
        (x, sum(y for _, y in points[k - many + 1 : k + 1]) / many)
        for k, (x, _) in enumerate(points)
        if k + 1 >= many
    ]


def _success(run: RunData) -> Chart:
    evaluated = run.series("evaluation", "success")
    each = run.evaluations[0]["episodes"] if run.evaluations else LAST_EPISODES
    lines = [
        Line("training, all exploration rates", run.series("train", "success"), "b"),
        Line(f"evaluation, {each} episodes each", evaluated, "a", dots=True),
    ]
    if each < LAST_EPISODES:
        lines.append(Line(f"the last {LAST_EPISODES} of them", recent(evaluated, each), "c"))
    levels = [Level("75%: the paper's mark", 0.75, "mark")]
    if run.demonstrations and run.demonstrations["success"] is not None:
        shown = run.demonstrations["success"]
        levels.append(Level(f"demonstrators: {shown:.0%}", shown, "demo"))
    return Chart("Success", MINUTES, "share of episodes", lines, levels, (0.0, 1.0), percent=True)


def _returns(run: RunData) -> Chart:
    lines = [
        Line("training", run.series("train", "return"), "b"),
        Line("evaluation", run.series("evaluation", "return"), "a", dots=True),
    ]
    levels = []
    if run.human is not None:
        levels.append(Level(f"people in the paper: {run.human.score:g}", run.human.score, "human"))
    if run.demonstrations:
        score = run.demonstrations["score"]
        levels.append(Level(f"demonstrators: {score:.3g}", score, "demo"))
    return Chart("Return", MINUTES, "rewards of an episode", lines, levels)


def _milestones(run: RunData) -> str:
    if not run.milestones:
        return '<p class="note">This environment reports no milestones.</p>'
    charts = [
        Chart(
            f"In {name}", MINUTES, "share of episodes that came so far",
            [
                Line(m.replace("_", " "), run.series(kind, f"milestone/{m}"), look, dots=dots)
                for m, look in zip(run.milestones, MILESTONE_LOOKS, strict=False)
            ],
            y_range=(0.0, 1.0), percent=True,
        )
        for name, kind, dots in (("evaluation", "evaluation", True), ("training", "train", False))
    ]  # fmt: skip
    return _grid(*charts)


def _speed(run: RunData) -> Chart:
    decisions = run.series("train", "time/decisions_per_s")
    steps = run.series("train", "time/learner_steps_per_s")
    trained = run.config.batch_size * (run.config.sequence_length - run.config.burn_in)
    return Chart(
        "Speed", MINUTES, "per second",
        [
            Line("decisions made", decisions, "a"),
            Line("steps trained on", [(x, y * trained) for x, y in steps], "b"),
        ],
    )  # fmt: skip


def _waiting(run: RunData) -> Chart:
    lines = [
        Line(who, _rate(run.series("train", f"time/{name}")), look)
        for who, name, look in (
            ("learner waits for actors", "learner_waited_s", "b"),
            ("actors wait for the learner", "actors_waited_s", "a"),
        )
    ]
    note = (
        f"The rate limiter holds {run.config.samples_per_insert:g} sequences drawn for each one "
        "inserted; whoever is ahead waits."
    )
    return Chart(
        "Time spent waiting", MINUTES, "share of the time", lines, (), (0.0, 1.0), True, note
    )


def _rate(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """From seconds in all, by minutes, to shares of the time between."""
    return [
        (x, min(1.0, max(0.0, (y - before) / (60.0 * (x - then)))))
        for (then, before), (x, y) in pairwise(points)
        if x > then
    ]


def _values(run: RunData) -> Chart:
    return Chart(
        "Predicted against earned", MINUTES, "discounted return from an episode's start",
        [
            Line("predicted by the network", run.series("train", "predicted_return"), "b"),
            Line("earned", run.series("train", "discounted_return"), "a"),
        ],
        note="Far above what is earned: values run away. Near zero: no reward has spread back yet.",
    )  # fmt: skip


def _agreement(run: RunData) -> Chart:
    return Chart(
        "Agreement with demonstrators", MINUTES, "share of demonstrated steps",
        [Line("greedy action = shown action", run.series("train", "demo_agreement"), "a")],
        y_range=(0.0, 1.0), percent=True,
        empty="No demonstrations in this run.",
    )  # fmt: skip


def _gradients(run: RunData) -> Chart:
    return Chart(
        "Gradient norm and priorities", MINUTES, "",
        [
            Line("gradient norm", run.series("train", "gradient_norm"), "a"),
            Line("mean priority", run.series("train", "priority_mean"), "b"),
        ],
    )  # fmt: skip


# --- pictures and settings ----------------------------------------------------------------------


def _pictures(media: Media) -> str:
    clips = "".join(
        f'<figure><figcaption>{escape(clip.title)}</figcaption><video src="{clip.data}" '
        f'autoplay loop muted playsinline controls></video><p class="note">{escape(clip.note)}</p>'
        "</figure>"
        for clip in media.clips
    )
    maps = "".join(
        f'<figure><img src="{shot.data}" alt="{escape(shot.title)}"><p class="note">'
        f"{escape(shot.title)}</p></figure>"
        for shot in media.maps
    )
    body = f'<div class="grid2">{clips}</div>' if clips else ""
    if maps:
        body += (
            '<h3>Where it went</h3><p class="note">Evaluation episodes of the newest weights, '
            f'from above: walls, things, and the way taken.</p><div class="maps">{maps}</div>'
        )
    return body


def command(config: Config) -> str:
    """The command line that makes this run again."""
    usual = dataclasses.asdict(
        make_config(env=config.env, agent=config.agent, preset=config.preset, demos=config.demos)
    )
    words = ["r2d3 train", config.env]
    for name, value in dataclasses.asdict(config).items():
        if name in ("env", "preset", "agent") or (value == usual[name] and name != "demos"):
            continue
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(flag if value else "--no-" + name.replace("_", "-"))
        elif value != "":
            words.append(f"{flag} {_quoted(value)}")
    words.insert(2, f"--agent {config.agent} --preset {config.preset}")
    return " ".join(words)


def _quoted(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
    return text if all(c.isalnum() or c in "-_./:" for c in text) else f"'{text}'"


def _reproduce(config: Config) -> str:
    usual = dataclasses.asdict(Config())  # its defaults are the paper
    cells = "".join(
        f'<tr class="{"changed" if value != usual[name] else ""}"><td>{escape(name)}</td>'
        f"<td>{escape(_shown(value))}</td><td>{escape(_shown(usual[name]))}</td></tr>"
        for name, value in dataclasses.asdict(config).items()
    )
    return (
        f"<pre>{escape(command(config))}</pre>"
        f"<p class=note>Python {sys.version.split()[0]}. Set in bold: what differs from the "
        "paper's table.</p><details><summary>All settings</summary><table><tr><th>setting</th>"
        f"<th>this run</th><th>paper preset</th></tr>{cells}</table></details>"
    )


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

"""The command line of the agent: every setting a flag, every mistake one line."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import pytest

from r2d3.cli import evaluate, train, watch
from r2d3.cli.parser import Parser
from r2d3.config import PRESETS, Config, check, flag, make_config
from r2d3.errors import UserError
from r2d3.evaluator import save_video
from r2d3.launch.inline import Run

SMALL = (
    *("--agent", "r2d2", "--features", "8", "--hidden", "8", "--sequence-length", "8"),
    *("--burn-in", "4", "--overlap", "4", "--batch-size", "4", "--actors", "2"),
    *("--min-replay", "10", "--learner-steps", "12", "--threads", "0", "--log-every", "5"),
    *("--evaluate-every", "0", "--final-episodes", "3", "--no-tensorboard", "--no-report"),
)


def parse(module: Any, *argv: str) -> Any:
    parser = Parser("r2d3 test", module.HELP, module.EPILOG)
    module.add_arguments(parser)
    return parser.parse(argv)


def command(module: Any, *argv: str) -> int:
    status: int = module.run(parse(module, *argv))
    return status


def test_every_setting_is_a_flag_with_a_line_of_help() -> None:
    parser = Parser("r2d3 train", train.HELP, train.EPILOG)
    train.add_arguments(parser)
    flags = {flag for action in parser._actions for flag in action.option_strings}
    for field in dataclasses.fields(Config):
        assert field.metadata["help"]
        if field.name != "env":
            assert flag(field.name) in flags


def test_what_is_said_comes_last() -> None:
    args = parse(train, "TestDiary-v0", "--demos", "d", "--demo-ratio", "1/256", "--n-step", "3")
    config = make_config(
        env=args.env, demos=args.demos, demo_ratio=args.demo_ratio, n_step=args.n_step
    )
    assert config.demo_ratio == 1 / 256
    assert config.n_step == 3
    assert config.hidden == PRESETS["laptop"]["hidden"]


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["x", "--batch-sise", "3"], "--batch-size"),
        (["x", "--batch-size", "three"], "'three' is no whole number"),
        (["x", "--demo-ratio", "1/0"], "'1/0' is no number"),
        (["x", "--discount", "nan"], "no finite number"),
        (["x", "--agent", "r2d4"], "r2d4"),
    ],
)
def test_a_wrong_flag_is_one_line_and_status_2(
    argv: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse(train, *argv)
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"agent": "r2d3"}, "needs --demos"),
        ({"agent": "r2d2", "demos": "d"}, "never be used"),
        ({"agent": "bc", "demos": "d", "actors": 4}, "--actors must be 0"),
        ({"agent": "bc", "demos": "d", "demo_ratio": 0.5}, "--demo-ratio must be 1"),
        ({"agent": "r2d2", "actors": 0}, "--demo-ratio must be 1"),
        ({"agent": "r2d2", "burn_in": 30}, "--burn-in"),
        ({"agent": "r2d2", "overlap": 5}, "--overlap"),
        ({"agent": "r2d2", "min_replay": 10**6}, "--min-replay"),
        ({"agent": "r2d2", "margin_weight": 1.0}, "--margin-weight"),
        ({"agent": "dqfd", "demos": "d", "stored_state": True}, "--stored-state"),
        ({"agent": "r2d2", "demo_ratio_steps": 5}, "go together"),
        ({"agent": "r2d2", "discount": 1.5}, "--discount"),
        ({"agent": "r2d2", "batch_size": 0}, "--batch-size"),
        ({"agent": "r2d2", "env_args": "{"}, "--env-args"),
        ({"agent": "r2d2", "averaged_weights": 1.0}, "--averaged-weights"),
        ({"agent": "r2d2", "threads": 7}, "--threads"),
    ],
)
def test_settings_that_cannot_work_together_are_refused(said: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        make_config(env="TestDiary-v0", **said)


def test_the_paper_preset_is_the_papers_table() -> None:
    c = make_config(env="x", demos="d", preset="paper")
    check(c)
    table = {
        "learning_rate": 2e-4, "discount": 0.997, "batch_size": 32, "target_period": 400,
        "actor_update_period": 200, "n_step": 5, "sequence_length": 80, "burn_in": 40,
        "overlap": 40, "actors": 256, "replay_capacity": 500_000, "min_replay": 25_000,
        "demo_ratio": 1 / 256, "torso": "resnet", "core": "lstm", "clip_rewards": True,
        "epsilon_base": 0.4, "epsilon_power": 8.0,
    }  # fmt: skip
    assert {name: getattr(c, name) for name in table} == table


def test_a_config_survives_its_file() -> None:
    c = make_config(env="x", demos="d", seed=3)
    assert Config.from_json(c.to_json()) == c
    with pytest.raises(UserError, match="does not know"):
        Config.from_json(json.dumps({"env": "x", "nonsense": 1}))


def test_train_evaluate_and_resume(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run")
    assert command(train, "TestDiary-v0", *SMALL, "--out", out) == 0
    assert "final" in capsys.readouterr().out
    assert command(evaluate, out, "--episodes", "5", "--json", str(tmp_path / "e.json")) == 0
    figures = json.loads((tmp_path / "e.json").read_text())
    assert (figures["episodes"], figures["success"], figures["length"]) == (5, 1.0, 7.0)
    assert command(train, "--resume", "--out", out, "--learner-steps", "20") == 0
    assert "resumed at learner step 12" in capsys.readouterr().out
    with pytest.raises(UserError, match="--hidden cannot change"):
        command(train, "--resume", "--out", out, "--hidden", "9")


def test_a_resumed_run_is_checked_too(tmp_path: pathlib.Path) -> None:
    c = make_config(env="TestDiary-v0", agent="r2d2")
    (tmp_path / "config.json").write_text(c.to_json())
    with pytest.raises(UserError, match="--threads"):
        command(train, "--resume", "--out", str(tmp_path), "--threads", "7")


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_a_config_that_cannot_be_read_is_a_users_mistake(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError, match=r"config\.json"):
        command(evaluate, str(tmp_path))


def test_results_that_cannot_be_written_are_a_users_mistake(tmp_path: pathlib.Path) -> None:
    out = str(tmp_path / "run")
    assert command(train, "TestDiary-v0", *SMALL, "--out", out) == 0
    nowhere = str(tmp_path / "nowhere" / "e.json")
    with pytest.raises(UserError, match="no such folder"):
        command(evaluate, out, "--json", nowhere)
    with pytest.raises(UserError, match="cannot be written"):
        command(evaluate, out, "--episodes", "2", "--json", str(tmp_path))
    a_file = tmp_path / "file"
    a_file.touch()
    for path in (a_file / "w.mp4", tmp_path / "w.nonsense", tmp_path):
        with pytest.raises(UserError, match="no video can be written"):
            save_video(path, [np.zeros((8, 8, 3), np.uint8)] * 2)


def test_an_interrupt_says_whether_there_is_something_to_resume(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: Run) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "train", interrupted)
    out = str(tmp_path / "run")
    assert command(train, "TestDiary-v0", *SMALL, "--out", out) == 130
    assert "before the first checkpoint" in capsys.readouterr().out


def test_a_run_without_an_end_is_refused() -> None:
    with pytest.raises(UserError, match="how long"):
        command(train, "TestDiary-v0", "--agent", "r2d2")


@pytest.mark.parametrize("module", [evaluate, watch])
def test_a_folder_without_a_run_is_a_users_mistake(module: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(UserError, match="no run folder"):
        command(module, str(tmp_path))


def test_watching_writes_a_video(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("minigrid")
    out = str(tmp_path / "run")
    assert command(train, "BabyAI-GoToRedBallGrey-v0", *SMALL, "--out", out) == 0
    assert command(watch, out, "--video", str(tmp_path / "w.mp4")) == 0
    assert (tmp_path / "w.mp4").stat().st_size > 1000

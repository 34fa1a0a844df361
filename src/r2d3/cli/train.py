"""`r2d3 train`: every setting of the config is a flag."""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import typing

from r2d3.config import AGENTS, PRESET_HELP, PRESETS, Config, check, flag, make_config
from r2d3.errors import UserError

if typing.TYPE_CHECKING:
    from studio.report.keeper import PageKeeper

HELP = "train an agent in a Gymnasium environment, with demonstrations or without"
EPILOG = """examples:
  r2d3 train BabyAI-UnlockPickup-v0 --demos minigrid/BabyAI-UnlockPickup/bot-v0 --minutes 5
  r2d3 train HardEight/WallSensor-v0 --demos hardeight/wall-sensor/scripted-v0 --demo-ratio 1/64
  r2d3 train BabyAI-UnlockPickup-v0 --agent r2d2 --minutes 5 --out runs/r2d2
  r2d3 train HardEight/WallSensor-v0 --demos D --preset paper --launch ray --address auto ...
  r2d3 train --resume --out runs/r2d2"""

# What may be changed when a run is taken up again: how long, and where.
_RESUMABLE = {
    *("minutes", "learner_steps", "threads", "torch_threads", "device", "final_episodes"),
    *("address", "listen", "listen_publicly", "dashboard", "actor_processes", "prefetch"),
    *("actor_resources", "learner_resources", "replay_resources", "evaluator_resources"),
    "hang_seconds",
}


# The settings from here on, under this headline of the help.
_GROUPS = {
    "env_args": "what is trained, on what",
    "demo_ratio": "what makes the agents differ",
    "torso": "network",
    "sequence_length": "sequences",
    "batch_size": "learning",
    "priority_exponent": "priorities and replay",
    "actors": "acting",
    "margin_weight": "options beyond the paper",
    "minutes": "the run",
    "launch": "more than one process (docs/cluster.md)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} ENV [--agent A] [--demos D] [--preset P] [--out FOLDER] ..."
    parser.description = f"{HELP}\n\n{_presets_and_agents()}"
    parser.add_argument(
        "env", nargs="?", help="id of a Gymnasium environment with discrete actions"
    )
    parser.add_argument("--resume", action="store_true", help="go on from --out's last checkpoint")
    hints = typing.get_type_hints(Config)
    group: argparse._ArgumentGroup | argparse.ArgumentParser = parser
    for field in dataclasses.fields(Config):
        if field.name == "env":
            continue
        if field.name in _GROUPS:
            group = parser.add_argument_group(_GROUPS[field.name])
        name, hint = flag(field.name), hints[field.name]
        text = (field.metadata["help"] + _defaults(field)).replace("%", "%%")
        choices = typing.get_args(hint)
        if hint is bool:
            on_or_off = argparse.BooleanOptionalAction
            group.add_argument(name, action=on_or_off, default=None, help=text)
        elif choices:
            group.add_argument(name, choices=choices, default=None, help=text)
        else:
            reader, metavar = _reader(hint), _metavar(hint)
            group.add_argument(name, type=reader, default=None, help=text, metavar=metavar)


def _defaults(field: dataclasses.Field[typing.Any]) -> str:
    """What the presets say; one value where they agree."""
    values = {preset: said.get(field.name, field.default) for preset, said in PRESETS.items()}
    if field.default == "" or field.name == "preset" or field.default == -1:
        return ""
    if len(set(values.values())) == 1:
        return f" [{_shown(field.default)}]"
    return f" [{', '.join(f'{preset} {_shown(value)}' for preset, value in values.items())}]"


def _shown(value: typing.Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float) and 0 < value < 1 and (1 / value).is_integer() and value < 0.1:
        denominator = int(1 / value)
        return f"1/{denominator}" if denominator & (denominator - 1) == 0 else f"{value:g}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _presets_and_agents() -> str:
    lines = ["presets, sets of values to start from (in brackets below):"]
    lines += [f"  {name:<12}{text}" for name, text in PRESET_HELP.items()]
    lines += ["", "agents, one system with other settings:"]
    for name, said in AGENTS.items():
        settings = " ".join(f"{flag(key)} {_shown(value)}" for key, value in said.items())
        lines.append(f"  {name:<12}{settings or 'demonstrations and experience in one batch'}")
    return "\n".join(lines)


def run(args: argparse.Namespace) -> int:
    said = {
        f.name: getattr(args, f.name)
        for f in dataclasses.fields(Config)
        if getattr(args, f.name, None) is not None
    }
    config = _resumed_config(said) if args.resume else _new_config(said)
    from r2d3.terminal import make_reporter

    Run = _launcher(config)
    reporter = make_reporter()
    page = _page_keeper(config, reporter.say)
    try:
        training = Run(config, reporter, page.renew if page else lambda: None)
        if args.resume:
            training.resume()
        else:
            training.start()
        training.train()
    except KeyboardInterrupt:
        if page is not None:
            page.close(interrupted=True)
        reporter.say(_after_an_interrupt(config.out))
        return 130
    finally:
        reporter.close()
    if page is not None:
        page.close()
    reporter.say(f"run folder: {config.out}")
    return 0


def _launcher(config: Config) -> typing.Any:
    """Imported here, so that a wrong flag is refused before torch or Ray has been loaded."""
    if config.launch == "ray":
        from r2d3.launch.ray.safety import prepare_environment

        prepare_environment(config)
        from r2d3.launch.ray.run import RayRun

        return RayRun
    from r2d3.launch.inline import Run

    return Run


def _after_an_interrupt(out: str) -> str:
    if any((pathlib.Path(out) / "checkpoints").glob("[0-9]*")):
        return f"interrupted; go on with: r2d3 train --resume --out {out}"
    return "interrupted before the first checkpoint: start again, with another --out"


def _page_keeper(config: Config, say: typing.Callable[[str], None]) -> PageKeeper | None:
    if not config.report:
        return None
    from studio.report.keeper import PageKeeper

    return PageKeeper(pathlib.Path(config.out), say)


def _new_config(said: dict[str, typing.Any]) -> Config:
    config = make_config(**said)
    if not (config.minutes or config.learner_steps):
        raise UserError("say how long to train: --minutes or --learner-steps")
    return config


def _resumed_config(said: dict[str, typing.Any]) -> Config:
    if "out" not in said:
        raise UserError("--resume needs --out, the folder of the run to take up again")
    path = pathlib.Path(said["out"]) / "config.json"
    if not path.exists():
        raise UserError(f"{said['out']} is no run folder: it holds no config.json")
    config = Config.from_json(path.read_text())
    config = dataclasses.replace(config, out=said["out"])
    changed = {
        name for name, value in said.items() if name != "out" and value != getattr(config, name)
    }
    refused = sorted(changed - _RESUMABLE)
    if refused:
        raise UserError(
            f"{flag(refused[0])} cannot change when a run is resumed; only "
            + ", ".join(flag(name) for name in sorted(_RESUMABLE))
        )
    config = dataclasses.replace(config, **{name: said[name] for name in changed})
    check(config)
    return config


def _reader(hint: type) -> typing.Callable[[str], typing.Any]:
    if hint is str:
        return str
    return _whole_number if hint is int else _number


def _whole_number(text: str) -> int:
    try:
        return int(text.replace("_", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number") from None


def _number(text: str) -> float:
    """Fractions too: --demo-ratio 1/256."""
    try:
        above, _, below = text.partition("/")
        value = float(above) / float(below) if below else float(above)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"'{text}' is no number") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise argparse.ArgumentTypeError(f"'{text}' is no finite number")
    return value


def _metavar(hint: type) -> str:
    return {int: "N", float: "X"}.get(hint, "TEXT")

"""The frame of the command line: verbs are found, mistakes are one line, imports are late."""

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace

import pytest

from hard_eight.errors import HardEightError
from r2d3.cli import main as cli
from r2d3.cli.guess import nearest
from r2d3.errors import UserError


def r2d3(*argv, capsys):
    """Run the command here; return its exit status, stdout and stderr."""
    try:
        status = cli.main(argv)
    except SystemExit as stop:  # argparse's own way out
        status = stop.code
    return status, *capsys.readouterr()


def verbs(group=cli.TOP, path=()):
    for name, entry in group.verbs.items():
        if isinstance(entry, cli.Group):
            yield from verbs(entry, (*path, name))
        else:
            yield (*path, name), entry


@pytest.fixture
def verb(monkeypatch):
    """A verb `probe` whose `run` the test gives."""

    def add_arguments(parser):
        parser.add_argument("--colour", choices=["red", "green"])
        parser.add_argument("--count", type=int)

    module = SimpleNamespace(HELP="Probe.", EPILOG="examples:", add_arguments=add_arguments)
    monkeypatch.setitem(sys.modules, "probe_verb", module)
    monkeypatch.setitem(cli.VERBS, "probe", cli.Verb("probe_verb", "probe"))

    def install(run):
        module.run = run

    install(lambda args: 0)
    return install


def raising(error):
    def run(args):
        raise error

    return run


@pytest.mark.parametrize(("path", "entry"), list(verbs()), ids=lambda value: str(value))
def test_every_listed_verb_exists_and_helps_with_examples(path, entry, capsys):
    module = import_module(entry.module)
    status, out, _ = r2d3(*path, "--help", capsys=capsys)
    assert status == 0
    assert callable(module.run)
    assert f"r2d3 {' '.join(path)}" in module.EPILOG
    assert module.EPILOG.strip() in out


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
def test_help_lists_every_verb(argv, capsys):
    status, out, err = r2d3(*argv, capsys=capsys)
    assert (status, err) == (0, "")
    for name, entry in cli.VERBS.items():
        assert f"{name} " in out
        assert entry.summary in out


def test_a_group_helps_too(capsys):
    status, out, _ = r2d3("bench", "--help", capsys=capsys)
    assert status == 0
    assert "usage: r2d3 bench VERB" in out
    assert "env" in out


def test_version(capsys):
    status, out, _ = r2d3("--version", capsys=capsys)
    assert status == 0
    assert out == f"r2d3 {version('r2d3')}\n"


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["tasl"], "r2d3: no verb 'tasl'; did you mean 'tasks'?"),
        (["zzz"], "r2d3: no verb 'zzz'; known: tasks"),
        (["--vresion"], "r2d3: no option '--vresion'; did you mean '--version'?"),
        (["bench"], "r2d3: 'r2d3 bench' needs one of: env"),
        (["bench", "emv"], "r2d3: no 'r2d3 bench' verb 'emv'; did you mean 'env'?"),
        (["probe", "--color=red"], "r2d3 probe: no option '--color'; did you mean '--colour'?"),
        (["probe", "--cou", "3"], "r2d3 probe: no option '--cou'; did you mean '--count'?"),
        (["probe", "--colour", "gren"], "r2d3 probe: --colour: no choice 'gren'; did you mean"),
        (["probe", "--count", "many"], "r2d3 probe: --count: invalid int value: 'many'"),
        (["probe", "--count"], "r2d3 probe: --count: expected one argument"),
        (["probe", "extra"], "r2d3 probe: unexpected argument 'extra' (see 'r2d3 probe --help')"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_with_a_guess(argv, line, verb, capsys):
    status, out, err = r2d3(*argv, capsys=capsys)
    assert status == 2
    assert out == ""
    assert err.startswith(line)
    assert err.count("\n") == 1


@pytest.mark.parametrize("error", [UserError("no such\nthing"), HardEightError("no such thing")])
def test_a_users_mistake_is_one_line_and_status_2(error, verb, capsys):
    verb(raising(error))
    assert r2d3("probe", capsys=capsys) == (2, "", "r2d3: no such thing\n")


@pytest.mark.parametrize("argv", [["--debug", "probe"], ["probe", "--debug"]])
def test_debug_anywhere_shows_where(argv, verb, capsys):
    verb(raising(UserError("no such thing")))
    status, _, err = r2d3(*argv, capsys=capsys)
    assert status == 2
    assert "Traceback" in err
    assert "no such thing" in err


def test_an_unexpected_error_is_one_line_and_its_traceback_is_kept(
    verb, capsys, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    verb(raising(KeyError("hand")))
    status, _, err = r2d3("probe", capsys=capsys)
    assert status == 1
    (kept,) = tmp_path.iterdir()
    assert err == f"r2d3: unexpected KeyError: 'hand' (traceback in {kept})\n"
    assert "Traceback" in kept.read_text()


def test_an_unexpected_error_on_a_full_disk_is_still_one_line(verb, capsys, monkeypatch):
    monkeypatch.setattr("tempfile.mkstemp", raising_anything(OSError("no space left")))
    verb(raising(OSError("no space left")))
    status, _, err = r2d3("probe", capsys=capsys)
    assert status == 1
    assert err == "r2d3: unexpected OSError: no space left (--debug shows where)\n"


def raising_anything(error):
    def function(*args, **kwargs):
        raise error

    return function


def test_ctrl_c_ends_with_one_line_and_status_130(verb, capsys):
    verb(raising(KeyboardInterrupt()))
    assert r2d3("probe", capsys=capsys) == (130, "", "r2d3: interrupted\n")


def test_the_status_of_a_verb_is_that_of_the_command(verb, capsys):
    verb(lambda args: 7)
    assert r2d3("probe", capsys=capsys)[0] == 7


@pytest.mark.parametrize("argv", [["--help"], ["tasks", "--help"], ["tasks", "--actions"]])
def test_a_reader_that_leaves_is_no_error(argv):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "r2d3.cli.main", *argv]
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 141


def test_a_workers_broken_pipe_is_not_taken_for_our_own():
    program = (
        "import sys, types\n"
        "from r2d3.cli import main as cli\n"
        "def run(args): raise BrokenPipeError('worker 3 is gone')\n"
        "sys.modules['probe'] = types.SimpleNamespace(\n"
        "    HELP='', EPILOG='', add_arguments=lambda parser: None, run=run)\n"
        "cli.VERBS['probe'] = cli.Verb('probe', '')\n"
        "sys.exit(cli.main(['probe', '--debug']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "worker 3 is gone" in done.stderr


def imported_by(*argv):
    """The top-level modules that a run of the command leaves imported."""
    program = (
        "import sys\n"
        "from r2d3.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *argv], capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in done.stderr.split()}


def test_tasks_never_imports_what_only_training_needs():
    assert imported_by("tasks") & {"torch", "minari", "tensorboard", "matplotlib", "ray"} == set()


@pytest.mark.parametrize("argv", [["--help"], ["tasks", "--help"], ["taskz"]])
def test_help_and_mistakes_import_nothing_heavy(argv):
    assert imported_by(*argv) & {"torch", "numpy", "mujoco", "numba", "rich"} == set()


# --- r2d3 tasks -----------------------------------------------------------------------------------

NAMES = [
    "baseball",
    "drawbridge",
    "navigate_cubes",
    "push_blocks",
    "remember_sensor",
    "throw_across",
    "wall_sensor",
    "wall_sensor_stack",
]


def test_tasks_lists_the_eight_as_plain_aligned_lines_when_piped(capsys):
    status, out, _ = r2d3("tasks", capsys=capsys)
    header, *lines = out.splitlines()
    assert status == 0
    assert [line.split()[0] for line in lines] == NAMES
    column = header.index("Gymnasium id")
    assert all(line[column:].startswith("HardEight/") for line in lines)


def test_tasks_on_a_terminal_is_a_drawn_table_with_every_name(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "160")
    _, out, _ = r2d3("tasks", capsys=capsys)
    assert "─" in out
    assert all(name in out for name in NAMES)


def test_one_task_tells_its_milestones_in_order(capsys):
    from hard_eight.task import find_task

    task = find_task("wall_sensor")
    status, out, _ = r2d3("tasks", "wall_sensor", capsys=capsys)
    assert status == 0
    places = [out.index(f"{i}. {name}") for i, name in enumerate(task.milestones, start=1)]
    assert places == sorted(places)
    assert places
    assert "HardEight/WallSensor-v0" in out


@pytest.mark.parametrize("given", ["wallsensor", "wall-sensor", "wall_senser"])
def test_a_task_that_is_nearly_named_is_guessed(given, capsys):
    status, out, err = r2d3("tasks", given, capsys=capsys)
    assert (status, out) == (2, "")
    assert err.startswith(f"r2d3: no task '{given}'; did you mean 'wall_sensor'?")
    assert err.count("\n") == 1


def test_one_task_tells_what_varies_and_how_people_do(capsys):
    from hard_eight.task import find_task

    task = find_task("wall_sensor")
    _, out, _ = r2d3("tasks", "wall_sensor", capsys=capsys)
    assert task.varies
    assert all(what in out for what in task.varies)
    assert "9.1 ± 2.8" in out
    assert "280 ± 87 frames" in out


def test_tasks_as_json(capsys):
    _, out, _ = r2d3("tasks", "--json", capsys=capsys)
    tasks = json.loads(out)
    assert [task["name"] for task in tasks] == NAMES
    _, out, _ = r2d3("tasks", "baseball", "--json", capsys=capsys)
    assert json.loads(out) == tasks[0]
    assert tasks[0]["gym_id"] == "HardEight/Baseball-v0"


def test_actions_are_listed_with_their_keys(capsys):
    _, out, _ = r2d3("tasks", "--actions", capsys=capsys)
    lines = out.splitlines()
    assert len(lines) == 1 + 46
    assert ["0", "forward", "W"] in [line.split() for line in lines]
    _, out, _ = r2d3("tasks", "--actions", "--json", capsys=capsys)
    assert json.loads(out)[0] == {"index": 0, "name": "forward", "key": "W"}


def test_tasks_takes_a_task_or_actions_but_not_both(capsys):
    status, _, err = r2d3("tasks", "wall_sensor", "--actions", capsys=capsys)
    assert status == 2
    assert "not allowed with" in err
    assert err.count("\n") == 1


def test_nearest_gives_nothing_for_what_is_far():
    assert nearest("quicksort", NAMES) is None

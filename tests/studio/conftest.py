import dataclasses

import pytest

from studio import datasets, making
from studio.recording import Recording, make_env

TASK, EPISODES = "wall_sensor", 3


@pytest.fixture(autouse=True)
def _minari_in_a_folder_of_our_own(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def make(root, workers=1, **options):
    """Make a small dataset; return its folder."""
    plan = making.make_plan(TASK, **({"episodes": EPISODES, "skill": 1.0} | options))
    ((_, folder, _),) = making.make_datasets([plan], root, workers)
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A dataset of three episodes, not to be changed."""
    return make(tmp_path_factory.mktemp("made"))


@pytest.fixture
def copy(made, tmp_path):
    """The same, to be damaged."""
    import shutil

    return shutil.copytree(made, tmp_path / "copy")


def recording(folder, number):
    """An episode of a dataset as a Recording again."""
    dataset = datasets.open_dataset(folder)
    raw, metadata = datasets.read_episode(dataset, number), dataset.episodes[number]
    names = {field.name for field in dataclasses.fields(Recording)}
    known = {name: value for name, value in metadata.items() if name in names}
    return Recording(
        observations={name: array.copy() for name, array in raw.observations.items()},
        actions=raw.actions.copy(),
        rewards=raw.rewards.copy(),
        terminations=raw.terminations.copy(),
        truncations=raw.truncations.copy(),
        **known,
    )


def rewrite(folder, number, episode, env=None, form="arrow"):
    """Put other arrays in an episode's place."""
    import shutil

    shutil.rmtree(folder / "data" / str(number), ignore_errors=True)
    datasets.write_episode(folder / "data", number, episode, env or make_env(TASK), form)


@pytest.fixture
def tools():
    from types import SimpleNamespace

    return SimpleNamespace(make=make, recording=recording, rewrite=rewrite)


@pytest.fixture
def r2d3(capsys):
    """Run the command here; its exit status, stdout and stderr."""
    from r2d3.cli import main as cli

    def run(*argv):
        try:
            status = cli.main([str(word) for word in argv])
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    return run

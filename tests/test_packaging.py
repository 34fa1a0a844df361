"""What is installed: the world alone is light, versions are pinned, the wheel is whole."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# What numpy, mujoco-core, numba and gymnasium consist of or need in turn; and the standard library.
WORLD_NEEDS = {
    *("hard_eight", "numpy", "mujoco", "numba", "llvmlite", "gymnasium"),
    *("cloudpickle", "farama_notifications", "typing_extensions"),
    *sys.stdlib_module_names,
}

ONLY_WHAT_THE_WORLD_NEEDS = f"""
import importlib, pkgutil, sys

class Refuse:
    # Says what Python says of a package that is not installed.
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in {WORLD_NEEDS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refuse())
"""


def python(program, *argv, **kwargs):
    done = subprocess.run(
        [sys.executable, "-c", program, *argv],
        capture_output=True,
        text=True,
        check=False,
        **kwargs,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_of_the_world_imports_with_its_four_dependencies_alone():
    program = """
import hard_eight
names = [m.name for m in pkgutil.walk_packages(hard_eight.__path__, "hard_eight.")]
# The dm_env interface needs the extra `dm`.
for name in names:
    if name != "hard_eight.dm":
        importlib.import_module(name)
        print(name)
"""
    imported = python(ONLY_WHAT_THE_WORLD_NEEDS + program).split()
    assert "hard_eight.env" in imported
    assert "hard_eight.tasks.wall_sensor" in imported


def test_an_environment_plays_with_its_four_dependencies_alone():
    program = """
import gymnasium, hard_eight
env = gymnasium.make("HardEight/WallSensor-v0", render_mode="rgb_array")
env.reset(seed=0)
env.step(env.action_space.sample())
env.render()
"""
    python(ONLY_WHAT_THE_WORLD_NEEDS + program)


def test_the_refusal_refuses():
    python(ONLY_WHAT_THE_WORLD_NEEDS + "import numpy")
    with pytest.raises(AssertionError, match="No module named 'torch'"):
        python(ONLY_WHAT_THE_WORLD_NEEDS + "import torch")


def test_what_is_needed_is_pinned_to_an_allowed_version():
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    needed = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"]
    for requirement in map(Requirement, needed):
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} is not in requirements.txt"
        assert pins[name] in requirement.specifier, f"requirements.txt pins {name}=={pins[name]}"


def test_what_is_pinned_is_complete():
    """Everything that a pinned package requires is pinned too: nothing floats."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = {
        canonicalize_name(line.split("==")[0])
        for line in lines
        if line and not line.startswith("#")
    }
    for name in pins:
        for text in distribution(name).requires or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                assert canonicalize_name(requirement.name) in pins, f"{name} needs {text}"


def test_no_committed_file_names_a_package_index():
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    index = re.compile(r"(index-url|find-links)|(pypi|pythonhosted|npmjs)\.org")
    for name in filter(None, names):
        path = ROOT / name
        if path == Path(__file__) or not path.is_file():
            continue
        found = index.search(path.read_bytes().decode(errors="ignore"))
        assert not found, f"{name} names a package index: {found}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built without reaching for anything outside this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*command, "--no-index", "--quiet", "--wheel-dir", folder, ROOT],
        check=True,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    (path,) = folder.glob("r2d3-*.whl")
    return path


def test_the_wheel_holds_every_file_of_the_three_packages_and_nothing_else(wheel):
    made_by_running = {".pyc", ".nbi", ".nbc"}
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and path.suffix not in made_by_running
    }
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == source
    assert {name.split("/")[0] for name in packed} == {"hard_eight", "r2d3", "studio"}


def test_the_wheel_brings_its_licence_and_its_command(wheel):
    with zipfile.ZipFile(wheel) as archive:
        info = {Path(name).name: name for name in archive.namelist() if ".dist-info/" in name}
        assert "Apache License" in archive.read(info["LICENSE"]).decode()
        assert "r2d3 = r2d3.cli.main:main" in archive.read(info["entry_points.txt"]).decode()


def test_the_unpacked_wheel_runs_on_its_own(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = """
import sys
sys.path.insert(0, sys.argv[1])  # before the source tree, which is installed in place
import hard_eight, r2d3
from r2d3.cli.main import main
assert hard_eight.__file__.startswith(sys.argv[1]) and r2d3.__file__.startswith(sys.argv[1])
sys.exit(main(["tasks"]))
"""
    assert "wall_sensor" in python(program, str(tmp_path), cwd=tmp_path)

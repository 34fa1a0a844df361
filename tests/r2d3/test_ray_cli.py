"""`r2d3 train --launch ray` as a user types it: a Ray of its own, mistakes in one line."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from r2d3.metrics import read_metrics

R2D3 = (sys.executable, "-m", "r2d3.cli.main", "train")
SMALL = (
    *("CartPole-v1", "--agent", "r2d2", "--features", "8", "--hidden", "8", "--batch-size", "4"),
    *("--sequence-length", "8", "--burn-in", "4", "--overlap", "4", "--actors", "2"),
    *("--min-replay", "10", "--learner-steps", "60", "--log-every", "20", "--evaluate-every", "30"),
    *("--evaluation-episodes", "2", "--final-episodes", "3", "--no-tensorboard", "--no-report"),
)


def environment(tmp_path: pathlib.Path) -> dict[str, str]:
    return {**os.environ, "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")}


def listening(pid: int) -> set[str]:
    """Addresses on which a process, or one that it started, listens."""
    import psutil

    everyone = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    found = set()
    for process in everyone:
        try:
            connections = process.net_connections("tcp")
        except psutil.Error:
            continue
        found |= {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}
    return found


@pytest.mark.slow
@pytest.mark.cluster
def test_a_local_run_leaves_a_run_folder_and_listens_on_loopback_alone(
    tmp_path: pathlib.Path,
) -> None:
    folder, log = tmp_path / "run", tmp_path / "log"
    with log.open("w") as file:
        driver = subprocess.Popen(
            [*R2D3, *SMALL, "--launch", "ray", "--out", str(folder)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment(tmp_path),
        )
    heard: set[str] = set()
    until = time.monotonic() + 180.0
    while driver.poll() is None and time.monotonic() < until:
        heard |= listening(driver.pid)
        time.sleep(0.5)
    assert driver.wait(1.0) == 0, log.read_text()
    assert heard <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}, heard
    assert len(heard) >= 1
    said = log.read_text()
    assert "final: learner_steps 60, episodes 3" in said
    assert "Traceback" not in said
    rows = read_metrics(folder)
    assert {row["kind"] for row in rows} == {"train", "evaluation", "final"}
    assert json.loads((folder / "config.json").read_text())["launch"] == "ray"
    assert (tmp_path / "token").stat().st_mode & 0o077 == 0


def one_line(tmp_path: pathlib.Path, *said: str) -> str:
    done = subprocess.run(
        [*R2D3, *SMALL, "--out", str(tmp_path / "run"), *said],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment(tmp_path),
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "run" / "metrics.jsonl").exists()
    return done.stderr


def test_a_public_address_is_refused_in_one_line(tmp_path: pathlib.Path) -> None:
    assert "--listen-publicly" in one_line(tmp_path, "--launch", "ray", "--listen", "93.184.216.34")


def test_a_cluster_that_is_not_there_is_one_line(tmp_path: pathlib.Path) -> None:
    (tmp_path / "token").touch(mode=0o600)
    (tmp_path / "token").write_text("0" * 64)
    said = one_line(tmp_path, "--launch", "ray", "--address", "127.0.0.1:9")
    assert "--address 127.0.0.1:9: nothing answers there" in said


@pytest.mark.slow
def test_another_token_than_the_cluster_s_is_one_line(
    cluster: object, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "token").touch(mode=0o600)
    (tmp_path / "token").write_text("0" * 64)
    address = cluster.address  # type: ignore[attr-defined]
    said = one_line(tmp_path, "--launch", "ray", "--address", address)
    assert "with the same token as this machine?" in said


def test_inline_imports_no_ray() -> None:
    program = (
        "import sys; import r2d3.launch.inline, r2d3.cli.train, r2d3.cli.main; "
        "sys.exit('ray' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

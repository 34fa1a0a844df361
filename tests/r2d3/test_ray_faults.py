"""Real processes, real signals: what dies comes back, nothing comes twice, learning goes on.

One Ray cluster of three nodes and one long run for most of the tests; each waits until the run is
going well, does its damage, and waits until the run goes well again.
"""

from __future__ import annotations

import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from r2d3.config import Config, flag, make_config
from r2d3.metrics import read_metrics
from r2d3.terminal import Reporter

pytestmark = pytest.mark.slow

HERE = pathlib.Path(__file__).parent
HANG_SECONDS = 8.0


def settings(folder: pathlib.Path, **more: Any) -> Config:
    small = {
        "env": "ray_fakes:TestStamp-v0", "agent": "r2d2", "out": str(folder), "launch": "ray",
        "features": 8, "hidden": 8, "sequence_length": 8, "burn_in": 4, "overlap": 4,
        "batch_size": 8, "actors": 4, "min_replay": 40, "samples_per_insert": 4.0,
        "learner_steps": 10**9, "log_every": 20, "evaluate_every": 0, "evaluation_episodes": 2,
        "final_episodes": 2, "replay_capacity": 4000, "tensorboard": False, "target_period": 20,
        "replay_shards": 2, "actor_processes": 2,
        "actor_resources": '{"away": 1}', "replay_resources": '{"away": 1}',
        "learner_resources": '{"head": 1}', "evaluator_resources": '{"head": 1}',
        "hang_seconds": HANG_SECONDS, "report": False,
        "checkpoint_steps": 20, "checkpoint_minutes": 0.0,
    }  # fmt: skip
    return make_config(**{**small, **more})


class Enough(Exception):
    """The tests are through with the run."""


class Listener(Reporter):
    """Keeps what is said; ends the run when told to."""

    seconds = 0.5

    def __init__(self) -> None:
        super().__init__(io.StringIO())
        self.said: list[str] = []
        self.state: dict[str, Any] = {}
        self.enough = False

    def say(self, text: str) -> None:
        self.said.append(text)

    def progress(self, state: dict[str, Any]) -> None:
        self.state = state
        if self.enough:
            raise Enough


class Going:
    """A run in a thread of this process, its driver."""

    def __init__(self, config: Config, resume: bool = False):
        from r2d3.launch.ray.run import RayRun

        self.listener = Listener()
        self.run = RayRun(config, self.listener)
        if resume:
            self.run.resume()
        else:
            self.run.start()
        self.ended: BaseException | None = None
        self.thread = threading.Thread(target=self._train, daemon=True)
        self.thread.start()

    def _train(self) -> None:
        try:
            self.run.train()
        except BaseException as error:
            self.ended = error

    def stop(self) -> None:
        self.listener.enough = True
        self.thread.join(30.0)
        assert not self.thread.is_alive()

    def wait(self, what: str, condition: Callable[[], Any], seconds: float = 120.0) -> Any:
        """Polls; says what was waited for in vain, and what the run said meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert self.thread.is_alive(), f"the run ended: {self.ended!r}"
            found = condition()
            if found:
                return found
            time.sleep(0.1)
        pytest.fail(f"{what}: not in {seconds:.0f} s. Last: {self.listener.state}; "
                    f"said: {self.listener.said[-8:]}")  # fmt: skip

    def counter(self, name: str) -> int:
        return int(self.listener.state.get(name, 0))

    def learns(self, steps: int = 30) -> None:
        """Goes on by so many steps from now, with new experience coming in."""
        first, inserted = self.counter("learner_steps"), self.counter("inserted")
        self.wait("learning", lambda: self.counter("learner_steps") >= first + steps)
        self.wait("experience", lambda: self.counter("inserted") > inserted)

    def said(self, *words: str) -> str | None:
        """The last line with all of these words in it."""
        lines = [line for line in self.listener.said if all(word in line for word in words)]
        return lines[-1] if lines else None

    def actors(self) -> dict[int, Any]:
        return {
            worker: heard
            for health in self.run.healths.values()
            for worker, (_, heard) in health.actors.items()
        }

    def shard(self, number: int) -> Any:
        return self.run.healths[number]

    def sequences(self) -> list[tuple[float, float]]:
        """(episode, first step) of all that lies in the replay, out of the shards' own memory."""
        import ray

        assert self.run.roles is not None
        answers = [shard.__ray_call__.remote(_identities) for shard in self.run.roles.shards]
        return [identity for answer in answers for identity in ray.get(answer, timeout=30.0)]

    def nothing_came_twice(self) -> None:
        found = self.sequences()
        assert len(found) > 40
        assert len(set(found)) == len(found)


def _identities(shard: Any) -> list[tuple[float, float]]:
    from r2d3.replay import EMPTY

    replay, found = shard.replay, []
    for slot in np.flatnonzero(replay.key != EMPTY).tolist():
        offset = int(replay.layout[slot, 0])
        blob, steps = replay.chunks[int(replay.sequence_chunks[slot, 0])]
        first = replay.codec.decode(blob, steps)["observation"][offset]
        # Sequence 0 and 1 of an episode may both begin at its first step: the padding differs.
        found.append((float(first[0]), float(first[1]) - int(replay.layout[slot, 1])))
    return found


@pytest.fixture(scope="module")
def going(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Going]:
    folder = tmp_path_factory.mktemp("going")
    # Slow enough that the learner waits for the actors: these are never held, always sending.
    args = json.dumps({"hang": str(folder / "hang"), "pause": 0.015})
    run = Going(settings(folder / "run", env_args=args))
    run.wait("the first steps", lambda: run.counter("learner_steps") > 30)
    yield run
    run.stop()
    assert isinstance(run.ended, Enough)


def test_a_killed_driver_s_run_is_resumed(cluster: Any, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "run"
    config = settings(folder, address=cluster.address, replay_shards=1, actor_processes=1)
    values = {name: value for name, value in vars(config).items() if not isinstance(value, bool)}
    said = [f"{flag(name)}={v}" for name, v in values.items() if name != "env" and v != ""]
    command = [sys.executable, "-m", "r2d3.cli.main", "train"]
    log = tmp_path / "log"
    with log.open("w") as file:
        driver = subprocess.Popen(
            [*command, config.env, *said, "--no-report", "--no-tensorboard"],
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        until = time.monotonic() + 120.0
        while not (read_metrics(folder) if folder.exists() else []):
            assert driver.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.2)
    finally:
        driver.kill()  # SIGKILL
        driver.wait()
    last = max(int(p.name) for p in (folder / "checkpoints").iterdir() if p.name.isdigit())
    resumed = [*command, "--resume", "--out", str(folder), "--learner-steps", str(last + 60)]
    done = subprocess.run(resumed, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"resumed at learner step {last}" in done.stdout
    rows = read_metrics(folder)
    assert rows[-1]["kind"] == "final"
    assert rows[-1]["learner_steps"] == last + 60
    steps = [row["learner_steps"] for row in rows if row["kind"] == "train"]
    assert steps == sorted(set(steps))


def test_a_killed_actor_is_respawned_and_nothing_comes_twice(going: Going) -> None:
    going.learns()
    before = going.actors()[0]
    os.kill(before.note.pid, signal.SIGKILL)
    going.wait("a new actor", lambda: going.said("actor 0 was started anew"))
    after = going.actors()[0]
    assert after.note.pid != before.note.pid
    assert len(after.incarnations) == len(before.incarnations) + 1
    going.learns()
    going.nothing_came_twice()


def test_a_killed_shard_restores_itself_and_states_its_loss(going: Going) -> None:
    going.learns()
    going.wait("saves", lambda: going.shard(0).saved_step > 0 and going.shard(0).sequences > 60)
    before, inserted = going.shard(0), going.counter("inserted")
    lost = going.counter("lost_sequences")
    os.kill(before.pid, signal.SIGKILL)
    line = going.wait("the loss", lambda: going.said("replay shard 0 was restarted, from its save"))
    restored, gone = int(line.split(": ")[1].split()[0]), int(line.split(", ")[-1].split()[0])
    assert restored > 0
    going.wait("the shard's word", lambda: going.shard(0).incarnation != before.incarnation)
    going.learns()
    # What was inserted stays counted, what was lost is counted as lost; orphans may come on top.
    assert going.counter("inserted") > inserted
    assert going.counter("lost_sequences") >= lost + gone
    assert going.shard(0).sequences >= restored
    going.nothing_came_twice()


def test_a_killed_learner_goes_on_from_its_checkpoint_and_actors_do_not_stop(going: Going) -> None:
    going.learns()
    steps, decisions = going.counter("learner_steps"), going.counter("decisions")
    actors = {worker: heard.incarnations[-1] for worker, heard in going.actors().items()}
    assert going.run.status is not None
    os.kill(going.run.status.pid, signal.SIGKILL)
    going.wait("a new learner", lambda: going.said("the learner was started anew"))
    line = going.wait("its beginning", lambda: going.said("resumed at learner step"))
    resumed = int(line.split("learner step ")[1].split(",")[0])
    assert steps - 60 <= resumed  # checkpoints are written every 20 steps
    going.wait("going on", lambda: going.counter("learner_steps") > steps + 30)
    assert going.counter("decisions") > decisions
    assert {w: heard.incarnations[-1] for w, heard in going.actors().items()} == actors
    going.nothing_came_twice()
    rows = [row["learner_steps"] for row in read_metrics(going.run.folder)]
    assert rows == sorted(set(rows)), "a line was written twice"


def test_a_stalled_shard_is_named_and_what_it_is_sent_again_comes_once(going: Going) -> None:
    going.learns()
    repeated, pid = going.counter("repeated_shipments"), going.shard(1).pid
    os.kill(pid, signal.SIGSTOP)
    try:
        going.wait(
            "the stall in the live view",
            lambda: any("replay shard 1 has not" in t for t in going.listener.state["troubles"]),
        )
        time.sleep(HANG_SECONDS / 2)  # its actors ask again after a quarter
    finally:
        os.kill(pid, signal.SIGCONT)
    going.wait("a repeated call", lambda: going.counter("repeated_shipments") > repeated)
    assert going.shard(1).pid == pid
    going.learns()
    going.nothing_came_twice()


def test_a_hung_environment_is_named_and_its_process_started_anew(going: Going) -> None:
    going.learns()
    pathlib.Path(json.loads(going.run.config.env_args)["hang"]).touch()
    going.wait(
        "the hang in the live view",
        lambda: any("its environments hang" in t for t in going.listener.state["troubles"]),
    )
    going.wait("its end", lambda: going.said("was in one step of its environments"))
    going.learns()
    going.nothing_came_twice()


def test_samples_per_insert_hold_across_processes_and_faults(going: Going) -> None:
    going.learns(100)
    assert going.listener.state["samples_per_insert"] == pytest.approx(4.0, rel=0.25)


def test_a_lost_node_s_processes_come_back_elsewhere(cluster: Any, going: Going) -> None:
    import ray

    going.learns()
    here = ray.get_runtime_context().get_node_id()
    away = [heard.note.node for heard in going.actors().values() if heard.note.node != here]
    node = next(n for n in cluster.list_all_nodes() if n.node_id == away[0])
    there = [w for w, heard in going.actors().items() if heard.note.node == node.node_id]
    before = {worker: going.actors()[worker].incarnations[-1] for worker in there}
    cluster.remove_node(node, allow_graceful=False)
    cluster.add_node(num_cpus=0, resources={"away": 10})

    def back() -> bool:
        heard = going.actors()
        return all(w in heard and heard[w].incarnations[-1] != before[w] for w in there)

    going.wait("actors on other nodes", back)
    assert all(going.actors()[w].note.node != node.node_id for w in there)
    going.learns()
    going.nothing_came_twice()

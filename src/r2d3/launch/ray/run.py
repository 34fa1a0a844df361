"""The driver: starts or joins Ray, places the roles, watches over them, and shows what they say.

The driver trains nothing and holds nothing that a run needs: killed, it takes the processes with
it, and `--resume` places them anew from what is in the run folder.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import ray
from ray.exceptions import RayActorError

from r2d3.checkpoint import CheckpointStore
from r2d3.config import Config
from r2d3.environments import environment_args, make_environment
from r2d3.errors import UserError
from r2d3.launch.loop import claim_folder
from r2d3.launch.ray.acting import ActingProcess
from r2d3.launch.ray.learning import Status
from r2d3.launch.ray.placement import Roles, demand, homeless
from r2d3.launch.ray.shard import Health
from r2d3.launch.ray.watch import START_SECONDS, ActorWatch, shard_events
from r2d3.spaces import number_of_actions, observation_spec
from r2d3.terminal import Reporter

LOOK_SECONDS = 0.5
MOST_FRUITLESS = 5  # starts of the learner that bring no learner step
OBJECT_STORE_BYTES = 512 << 20


class RayRun:
    """Like inline's `Run`: `start` or `resume`, then `train`."""

    def __init__(
        self, config: Config, reporter: Reporter, evaluated: Callable[[], None] = lambda: None
    ):
        self.config, self.reporter, self.evaluated = config, reporter, evaluated
        self.folder = pathlib.Path(config.out).resolve()
        self.roles: Roles | None = None
        self.watch = ActorWatch(config.hang_seconds)
        self.healths: dict[int, Health] = {}
        self.asked: dict[str, tuple[Any, float]] = {}  # who was asked: the answer, since when
        self.troubles: list[str] = []
        self.told: list[str] = []
        self.status: Status | None = None
        self.learner_starts = 0
        self.fruitless = 0
        self.steps_at_start = -1
        self.shown = float("-inf")
        self.acting_process: type = ActingProcess
        env = make_environment(config.env, environment_args(config.env_args))
        self.spec = observation_spec(env.observation_space)
        self.actions = number_of_actions(env.action_space)
        env.close()

    def start(self) -> None:
        CheckpointStore(self.folder / "checkpoints", self.reporter.say)  # makes the folder
        claim_folder(self.config)

    def resume(self) -> None:
        if not CheckpointStore(self.folder / "checkpoints", self.reporter.say).steps():
            raise UserError(f"{self.folder}: no checkpoint to resume from")

    def train(self) -> dict[str, Any]:
        connected_here = not ray.is_initialized()
        if connected_here:
            connect(self.config)
        try:
            cpus = ray.cluster_resources().get("CPU", 0.0)
            # Other machines must find the folder by the same path.
            config = Config(**{**vars(self.config), "out": str(self.folder)})
            self.roles = Roles(config, self.spec, self.actions, cpus, self.acting_process)
            self.reporter.say(
                f"Ray at {ray.get_runtime_context().gcs_address}: learner, evaluator, "
                f"{len(self.roles.shards)} replay shards, {len(self.roles.actors)} acting processes"
            )
            return self._supervise(self.roles)
        finally:
            self.reporter.close()
            if self.roles is not None:
                self.roles.kill()
            if connected_here:
                ray.shutdown()

    # -- watching ------------------------------------------------------------------------------

    def _supervise(self, roles: Roles) -> dict[str, Any]:
        while True:
            self.troubles = []
            status = self._ask("learner", roles.learner, roles.learner.status)
            if status is not None:
                self._learner_said(status)
                if status.finished:
                    result: dict[str, Any] = status.result
                    return result
            for number, shard in enumerate(roles.shards):
                health = self._ask(f"replay shard {number}", shard, shard.health)
                if health is not None:
                    for event in shard_events(self.healths, number, health):
                        self.reporter.say(event)
                    self.healths[number] = health
                elif number in self.healths:
                    self.healths[number].actors.clear()  # old news
            self._look_after_actors(roles)
            self._show()
            time.sleep(LOOK_SECONDS)

    def _ask(self, name: str, handle: Any, method: Any) -> Any:
        """Its answer, if it has come. One question at a time; a process that leaves one
        unanswered for too long is killed, whereupon Ray starts it anew."""
        answer, since = self.asked.get(name) or (method.remote(), time.monotonic())
        self.asked[name] = (answer, since)
        if ray.wait([answer], timeout=LOOK_SECONDS)[0]:
            del self.asked[name]
            try:
                return ray.get(answer)
            except RayActorError as error:
                if not _may_return(error):
                    raise UserError(f"the {name} cannot be started: {error}") from None
                self.troubles.append(f"{name} is being started anew")
                return None
        silent = time.monotonic() - since
        if silent > 2.0:
            self.troubles.append(f"{name} has not answered for {silent:.0f} s")
        if silent > self.config.hang_seconds + START_SECONDS:
            self.reporter.say(f"{name} was silent for {silent:.0f} s: started anew")
            del self.asked[name]
            ray.kill(handle, no_restart=False)
        return None

    def _learner_said(self, status: Status) -> None:
        if self.status is None or self.status.incarnation != status.incarnation:
            self._learner_started()
        self.status = status
        for kind, what in status.lines:
            if kind == "say":
                self.reporter.say(what)
            else:
                self.reporter.row(kind, what)
                if kind == "evaluation":
                    self.evaluated()
        if status.mistake:
            raise UserError(status.mistake)
        if status.error:
            raise RuntimeError(f"the learner failed: {status.error}")

    def _learner_started(self) -> None:
        self.learner_starts += 1
        before = (self.status.progress or {}).get("learner_steps", -1) if self.status else -1
        if self.learner_starts > 1:
            self.reporter.say("the learner was started anew, from its last checkpoint")
        self.fruitless = self.fruitless + 1 if before <= self.steps_at_start else 0
        self.steps_at_start = before
        if self.fruitless > MOST_FRUITLESS:
            raise UserError(
                f"stopped: the learner died {MOST_FRUITLESS} times without a step. Is there memory "
                "enough for it?"
            )

    def _look_after_actors(self, roles: Roles) -> None:
        findings = self.watch.look(list(self.healths.values()), time.monotonic())
        for event in findings.events:
            self.reporter.say(event)
        self.troubles += findings.troubles
        for worker in findings.hung_actors:
            ray.kill(roles.actors[worker], no_restart=False)
        heard = {worker for health in self.healths.values() for worker in health.actors}
        unheard = len(roles.actors) - len(heard)
        if unheard > 0:
            self.troubles.append(f"{unheard} acting processes are not heard of yet")

    def _show(self) -> None:
        if time.monotonic() - self.shown < self.reporter.seconds:
            return
        self.shown = time.monotonic()
        if self.troubles:
            self.troubles += homeless(self.config)
        if self.status is not None and self.status.progress is not None:
            self.reporter.progress({**self.status.progress, "troubles": self.troubles})
        elif self.troubles != self.told:  # there is nothing to show progress of yet
            self.told = self.troubles
            for trouble in self.troubles:
                self.reporter.say(f"waiting: {trouble}")


def _may_return(error: RayActorError) -> bool:
    """Ray starts a killed process anew; one whose constructor failed it does not."""
    return "creation task" not in str(error)


def connect(config: Config) -> None:
    """Joins the cluster at --address; without one, starts Ray here."""
    quiet = {"log_to_driver": False, "configure_logging": True, "logging_level": logging.ERROR}
    if config.address:
        _demand_an_answer(config.address)
        try:
            with _silent_stderr():
                ray.init(address=config.address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"--address {config.address}: {reason} (is it a Ray {ray.__version__}, with the "
                "same token as this machine?)"
            ) from None
        return
    needed = sum(demand(config, role, "num_cpus") for role in ("learner", "evaluator"))
    needed += demand(config, "replay", "num_cpus") * config.replay_shards
    needed += demand(config, "actor", "num_cpus") * max(config.actor_processes, 1)
    loopback = config.listen.startswith("127.") or config.listen == "::1"
    ray.init(
        address="local",  # whatever RAY_ADDRESS says
        num_cpus=max(os.cpu_count() or 1, int(needed + 0.999)),
        include_dashboard=config.dashboard,
        object_store_memory=OBJECT_STORE_BYTES,
        **({} if loopback else {"_node_ip_address": config.listen}),
        **quiet,
    )


def _demand_an_answer(address: str) -> None:
    """Ray itself tries for minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():  # auto, or something that Ray will have to judge
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
    except OSError as error:
        raise UserError(f"--address {address}: nothing answers there ({error})") from None


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Ray's C++ part warns on its own of what an exception says too, once a second."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)

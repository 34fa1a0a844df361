"""An acting process: an `Actor` with some of the environments, and its line to a replay shard."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import ray
import torch
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError

from r2d3.actor import Actor
from r2d3.config import Config
from r2d3.environments import training_seed
from r2d3.errors import UserError
from r2d3.launch.parts import Seeds, first_network, training_stream
from r2d3.launch.ray.shipping import Note, Reply, Shipment, ShippingSink, Weights
from r2d3.machine import prepare
from r2d3.networks import AgentNetwork

BEAT_SECONDS = 2.0
ANSWER_SECONDS = 10.0
SHORTEST_WAIT, LONGEST_WAIT = 0.01, 0.5  # seconds between two questions whether to go on


class ShardLink:
    """At most one shipment is under way; the next waits for its answer, and acting with it.

    So a shard that stalls holds its actors up, and no message piles up before it. A call that
    brought no answer is made again: the shard knows a shipment that it has had.
    """

    def __init__(
        self,
        shard: Any,
        worker: int,
        incarnation: str,
        note: Callable[[], Note],
        patience: float,
    ):
        self.shard, self.worker, self.incarnation, self.note = shard, worker, incarnation, note
        self.patience = patience  # seconds for an answer
        self.hold = False
        self.weights: Weights | None = None
        self._shipment: Shipment | None = None
        self._answer: Any = None

    def ship(self, shipment: Shipment) -> None:
        self.settle()
        self._shipment = shipment
        self._send()

    def _send(self) -> None:
        self._answer = self.shard.receive.remote(self._shipment, self.note())

    def settle(self) -> None:
        """Until the shipment under way has arrived."""
        while self._shipment is not None:
            try:
                self._take(ray.get(self._answer, timeout=self.patience))
                self._shipment = None
            except GetTimeoutError:
                self._send()
            except RayActorError:  # the shard is being restarted
                time.sleep(LONGEST_WAIT)
                self._send()

    def ask(self) -> None:
        """Whether to go on, and for new weights."""
        try:
            answer = self.shard.report.remote(self.worker, self.incarnation, self.note())
            self._take(ray.get(answer, timeout=self.patience))
        except (GetTimeoutError, RayActorError):
            self.hold = True

    def _take(self, reply: Reply) -> None:
        self.hold = reply.hold
        if reply.weights is not None:
            self.weights = reply.weights


class ActingProcess:
    """Acts in a thread from its construction on; a second thread gives signs of life."""

    def __init__(self, config: Config, worker: int, workers: int, shard: str):
        self.config, self.worker, self.workers = config, worker, workers
        self.incarnation = uuid.uuid4().hex
        self.doing, self.failed, self.mistake = "starting", "", False
        # Making the environments and their first observations count as a step: they may hang too.
        self.step_began: float | None = time.monotonic()
        self.node = ray.get_runtime_context().get_node_id()
        self.held_s = 0.0
        self.version = ""
        patience = min(ANSWER_SECONDS, config.hang_seconds / 4)
        self.link = ShardLink(ray.get_actor(shard), worker, self.incarnation, self.note, patience)
        for work in (self._live, self._beat):
            threading.Thread(target=work, name=work.__name__, daemon=True).start()

    def note(self) -> Note:
        began = self.step_began
        return Note(
            pid=os.getpid(),
            node=self.node,
            doing=self.doing,
            in_step_s=time.monotonic() - began if began is not None else 0.0,
            held_s=self.held_s,
            failed=self.failed,
            users_mistake=self.mistake,
        )

    def _beat(self) -> None:
        while True:
            # The answer is for nobody: a step that hangs must not keep this from being sent.
            self.link.shard.report.remote(self.worker, self.incarnation, self.note())
            time.sleep(BEAT_SECONDS)

    def _live(self) -> None:
        try:
            prepare(1)
            self._act(self._make_actor())
        except Exception as error:  # of the environment, most likely: told, and begun anew
            self.mistake = isinstance(error, UserError)
            self.failed = str(error) if self.mistake else f"{type(error).__name__}: {error}"
            self.doing = "failed"
            self.link.ask()
            os._exit(1)

    def _make_actor(self) -> Actor:
        c = self.config
        rungs = np.arange(self.worker, c.actors, self.workers)
        # Episodes of a process that was replaced are not played again: other seeds.
        salt = uuid.UUID(self.incarnation).int & 0xFFFFFFFF
        stream = training_stream(
            c, lambda i, episode: training_seed(c.seed, salt + int(rungs[i]), episode), len(rungs)
        )
        self.sink = ShippingSink(self.worker, self.incarnation, flush_at=len(rungs))
        network = first_network(c, stream.spec, stream.actions)
        seed = int(np.random.SeedSequence([Seeds.of(c).policy, salt]).generate_state(1)[0])
        return Actor(stream, network, c, self.sink, seed, self.sink.episode_ended, rungs)

    def _act(self, actor: Actor) -> None:
        self.doing, self.step_began = "waiting for weights", None
        while not self._take_weights(actor.policy.network):
            time.sleep(LONGEST_WAIT)
            self.link.ask()
        self.step_began = time.monotonic()
        actor.start()
        shipped, bad = 0, 0
        pause = SHORTEST_WAIT
        while True:
            if self.link.hold:
                self._wait(pause)
                pause = min(2 * pause, LONGEST_WAIT)
                continue
            pause = SHORTEST_WAIT
            self.doing = "acting"
            self._take_weights(actor.policy.network)
            self.step_began = time.monotonic()
            actor.step()
            self.step_began = None
            if self.sink.due():
                self.doing = "shipping"
                self.link.ship(self.sink.take(actor.decisions - shipped, actor.bad_steps - bad))
                shipped, bad = actor.decisions, actor.bad_steps

    def _wait(self, seconds: float) -> None:
        """For the learner to catch up."""
        self.doing = "held"
        before = time.monotonic()
        time.sleep(seconds)
        self.link.settle()
        self.link.ask()
        self.held_s += time.monotonic() - before

    def _take_weights(self, network: AgentNetwork) -> bool:
        """Whether there are any; fetched only if they are others than those in use."""
        weights = self.link.weights
        if weights is None:
            return bool(self.version)
        if weights.version != self.version:
            try:
                arrays = ray.get(weights.where[0], timeout=ANSWER_SECONDS)
            except (GetTimeoutError, ObjectLostError):  # their owner, the learner, has died
                self.link.weights = None
                return bool(self.version)
            load_weights(network, arrays)
            self.version = weights.version
        return True


def load_weights(network: AgentNetwork, arrays: dict[str, np.ndarray]) -> None:
    """Arrays out of the object store are read-only; they are copied into the network's own."""
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            tensor.copy_(torch.from_numpy(arrays[name].copy()))


def weight_arrays(network: AgentNetwork) -> dict[str, np.ndarray]:
    return {
        name: tensor.detach().cpu().contiguous().numpy()
        for name, tensor in network.state_dict().items()
    }

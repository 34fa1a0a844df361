"""One machine, one process, no server: acting and learning in turn, or in two threads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from r2d3.config import Config
from r2d3.launch.acting_thread import ActingThread
from r2d3.launch.loop import TrainingLoop, demo_ratio_now
from r2d3.launch.parts import Parts, build
from r2d3.machine import choose_device, prepare
from r2d3.mixture import Origin
from r2d3.networks import copy_weights
from r2d3.replay import SequenceBatch
from r2d3.terminal import Reporter


class Run(TrainingLoop):
    """A training run of this process alone."""

    parts: Parts

    def __init__(
        self, config: Config, reporter: Reporter, evaluated: Callable[[], None] = lambda: None
    ):
        super().__init__(config, reporter, evaluated)
        prepare(config.torch_threads)
        self.parts = build(config, choose_device(config.device), self._episode_ended)
        self.acting: ActingThread | None = None

    def start(self) -> None:
        super().start()
        if self.parts.actor is not None:
            self.parts.actor.start()

    # -- acting --------------------------------------------------------------------------------

    def _begin_acting(self) -> None:
        if self.config.threads and self.parts.actor is not None:
            assert self.parts.agent_replay is not None
            self.acting = ActingThread(
                self.parts.actor, self.parts.agent_replay, self.parts.limiter
            )
            self.acting.start()

    def _stop_acting(self) -> None:
        if self.acting is not None:
            acting, self.acting = self.acting, None
            acting.stop()

    def _gain_experience(self) -> bool:
        assert self.parts.actor is not None
        if self.acting is None:
            self.parts.actor.step()
            return True
        before = self._decisions()
        self.acting.wait_for_experience()
        return self._decisions() > before

    def _publish(self) -> None:
        if self.parts.actor is None:
            return
        if self.acting is not None:
            self.acting.publish(self.parts.learner)
        else:
            copy_weights(self.parts.learner.acting_network(), self.parts.actor.policy.network)

    # -- learning ------------------------------------------------------------------------------

    def _may_learn(self) -> bool:
        limiter, replay = self.parts.limiter, self.parts.agent_replay
        if replay is None:
            return True
        limiter.inserted = replay.next_key
        return limiter.may_sample(self.config.batch_size)

    def _next_batch(self) -> tuple[SequenceBatch, list[Origin]]:
        self.parts.limiter.sampled += self.config.batch_size
        return self.parts.mixture.sample(demo_ratio_now(self.config, self.parts.learner.steps))

    def _learn_once(self) -> None:
        super()._learn_once()
        if self.acting is not None:
            self.acting.learner_moved()

    # -- evaluation, counters ------------------------------------------------------------------

    def _evaluate(self) -> None:
        self._log_evaluation(self._counters(), self._played(self.config.evaluation_episodes))
        video = self._video_due()
        if video is not None:
            self.parts.evaluator.record(self.parts.learner.acting_network(), video)

    def _played(self, episodes: int) -> dict[str, Any]:
        return self.parts.evaluator.evaluate(self.parts.learner.acting_network(), episodes)

    def _decisions(self) -> int:
        return self.parts.actor.decisions if self.parts.actor is not None else 0

    def _replay_counters(self) -> dict[str, Any]:
        replay, actor = self.parts.agent_replay, self.parts.actor
        assert replay is not None
        assert actor is not None
        return {
            "bad_env_steps": actor.bad_steps,
            "replay_sequences": len(replay),
            "replay_bytes": replay.bytes,
            "late_updates": replay.late_updates,
        }

    # -- checkpoints ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def _standing_still(self) -> Iterator[None]:
        if self.acting is None:
            yield
        else:
            with self.acting.paused():
                yield

    def state_dict(self) -> dict[str, Any]:
        state, parts = super().state_dict(), self.parts
        if parts.actor is not None and parts.agent_replay is not None:
            state["actor"] = parts.actor.state_dict()
            state["actor_network"] = {
                "tensors": {"network": parts.actor.policy.network.state_dict()}
            }
            state["agent_replay"] = parts.agent_replay.state_dict()
        return state

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        super().load_state_dict(saved)
        parts = self.parts
        if parts.actor is None or parts.agent_replay is None:
            return
        parts.agent_replay.load_state_dict(saved["agent_replay"])
        parts.actor.policy.network.load_state_dict(saved["actor_network"]["tensors"]["network"])
        begun_anew = parts.actor.load_state_dict(saved["actor"])
        if begun_anew:
            self.reporter.say(
                f"{begun_anew} running episodes could not be rebuilt and were begun anew"
            )

    def _close(self) -> None:
        self.parts.close()

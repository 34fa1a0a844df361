"""Watching over the processes: who is slow, who is silent, who has to be started anew.

Nothing here talks to Ray: it is told what was heard, and says what it makes of it.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from r2d3.errors import UserError
from r2d3.launch.ray.shard import Health, Heard

NOTICED_SECONDS = 6.0  # three signs of life missed, or a step that takes as long: worth a word
START_SECONDS = 60.0  # in which a process that is being started may be silent
SLOW_SHARE = 0.25  # of the middle actor's speed
SPEED_SECONDS = 10.0  # over which speeds are measured
MOST_FAILURES = 5  # in a row, of one process


@dataclass
class Findings:
    """In words for the live view; and what is to be done."""

    troubles: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)  # said once
    hung_actors: list[int] = field(default_factory=list)


@dataclass
class _Actor:
    starts: int = 1
    failures: int = 0
    in_a_row: int = 0
    failed_at: int = -1  # decisions at the last failure
    killed: bool = False  # and not heard of since
    measured_at: float = 0.0
    decisions: int = 0
    held_s: float = 0.0
    speed: float | None = None  # decisions per second that it was not held


class ActorWatch:
    """What is known of all acting processes, from what their shards have heard."""

    def __init__(self, hang_seconds: float):
        self.hang_seconds = hang_seconds
        self.actors: dict[int, _Actor] = {}

    def look(self, healths: list[Health], now: float) -> Findings:
        findings = Findings()
        for health in healths:
            for worker, (age, heard) in health.actors.items():
                self._look_at(worker, age, heard, now, findings)
        speeds = {w: a.speed for w, a in self.actors.items() if a.speed is not None}
        if len(speeds) >= 3:
            middle = statistics.median(speeds.values())
            for worker, speed in speeds.items():
                if speed < SLOW_SHARE * middle:
                    findings.troubles.append(
                        f"actor {worker} is slow: {speed:.3g} decisions/s, others {middle:.3g}"
                    )
        return findings

    def _look_at(
        self, worker: int, age: float, heard: Heard, now: float, findings: Findings
    ) -> None:
        actor = self.actors.setdefault(worker, _Actor(measured_at=now))
        self._count_starts(worker, actor, heard, findings)
        note = heard.note
        in_step = note.in_step_s + age if note.in_step_s else 0.0
        silent = age > self.hang_seconds + START_SECONDS
        if (silent or in_step > self.hang_seconds) and not actor.killed:
            actor.killed = True
            findings.hung_actors.append(worker)
            what = "silent" if silent else "in one step of its environments"
            findings.events.append(
                f"actor {worker} was {what} for {max(age, in_step):.0f} s: started anew"
            )
        if age > NOTICED_SECONDS:
            findings.troubles.append(f"actor {worker} has been silent for {age:.0f} s")
        elif in_step > NOTICED_SECONDS:
            findings.troubles.append(
                f"actor {worker}: its environments hang, {in_step:.0f} s in one step"
            )
        if now - actor.measured_at >= SPEED_SECONDS:
            acted = now - actor.measured_at - (note.held_s - actor.held_s)
            made = heard.decisions - actor.decisions
            actor.speed = made / acted if acted > 0.5 * SPEED_SECONDS and made >= 0 else None
            actor.measured_at, actor.decisions = now, heard.decisions
            actor.held_s = note.held_s

    def _count_starts(self, worker: int, actor: _Actor, heard: Heard, findings: Findings) -> None:
        starts, failures = len(heard.incarnations), len(heard.failures)
        if starts > actor.starts:
            actor.held_s, actor.killed = 0.0, False
            findings.events.append(f"actor {worker} was started anew, with fresh episodes")
        if failures > actor.failures:
            reason = heard.failures[-1]
            if heard.note.users_mistake:
                raise UserError(reason)
            actor.in_a_row = 1 if heard.decisions > actor.failed_at else actor.in_a_row + 1
            actor.failed_at = heard.decisions
            findings.events.append(f"actor {worker} failed: {reason}")
            if actor.in_a_row >= MOST_FAILURES:
                raise UserError(f"actor {worker} failed {MOST_FAILURES} times in a row: {reason}")
        # A shard that was restarted has forgotten some; then counting begins again.
        actor.starts, actor.failures = starts, failures


def shard_events(before: dict[int, Health], number: int, now: Health) -> list[str]:
    """What changed for the worse in a shard."""
    trouble = now.trouble if number not in before or before[number].trouble != now.trouble else ""
    return [f"replay shard {number}: {trouble}"] if trouble else []

"""Keeps learning and acting in step: samples drawn per sequence inserted."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class RateLimiter:
    """Counts both sides, says who may go on, and who has been waiting for whom.

    The learner may be at most `slack` samples ahead of the ratio, the actors as far behind.
    """

    samples_per_insert: float
    min_size: int  # sequences that must have been inserted before the first sample
    slack: float
    inserted: int = 0
    sampled: int = 0
    waited_s: dict[str, float] = field(default_factory=lambda: {"learner": 0.0, "actors": 0.0})

    @property
    def balance(self) -> float:
        """Samples that the insertions have paid for and that were not drawn yet."""
        return self.samples_per_insert * (self.inserted - self.min_size) - self.sampled

    def may_sample(self, count: int) -> bool:
        return self.inserted >= max(self.min_size, 1) and self.balance + self.slack >= count

    def may_insert(self) -> bool:
        return self.inserted < max(self.min_size, 1) or self.balance <= self.slack

    def waiting(self, count: int) -> str:
        """Who waits for whom, in words."""
        if self.inserted < max(self.min_size, 1):
            return f"learner waits: {self.inserted} of {self.min_size} first sequences"
        if not self.may_sample(count):
            return "learner waits for actors"
        if not self.may_insert():
            return "actors wait for learner"
        return "nobody waits"

    def state_dict(self) -> dict[str, float]:
        return {"inserted": self.inserted, "sampled": self.sampled}

    def load_state_dict(self, saved: dict[str, float]) -> None:
        self.inserted, self.sampled = int(saved["inserted"]), int(saved["sampled"])

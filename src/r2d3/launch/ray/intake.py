"""The receiving end of shipments: each goes into the replay once, or not at all."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from r2d3.launch.ray.shipping import NewChunk, NewSequence, Shipment
from r2d3.replay import PrioritisedReplay


@dataclass
class Sender:
    """One incarnation of an acting process."""

    worker: int
    serial: int = 0  # of the last shipment taken in
    chunks: dict[int, int] = field(default_factory=dict)  # its numbers of its chunks -> ours


class Intake:
    """Puts shipments into a replay; repeated ones, and those of the replaced, it passes over."""

    def __init__(self, replay: PrioritisedReplay):
        self.replay = replay
        self.senders: dict[str, Sender] = {}
        self.replaced: list[str] = []  # incarnations that others have followed
        self.duplicates = 0  # shipments that had come before
        self.orphans = 0  # sequences whose first steps this replay has lost in a restart

    def take(self, shipment: Shipment) -> bool:
        """Whether it was new."""
        sender = self.senders.get(shipment.incarnation)
        if sender is None:
            if shipment.incarnation in self.replaced:
                return False
            sender = self._welcome(shipment.worker, shipment.incarnation)
        if shipment.serial <= sender.serial:
            self.duplicates += 1
            return False
        sender.serial = shipment.serial
        for operation in shipment.operations:
            if isinstance(operation, NewChunk):
                number = self.replay.add_chunk(operation.blob, operation.steps)
                sender.chunks[operation.number] = number
            elif isinstance(operation, NewSequence):
                record = operation.record
                if all(number in sender.chunks for number in record.chunks):
                    ours = tuple(sender.chunks[number] for number in record.chunks)
                    self.replay.add_sequence(dataclasses.replace(record, chunks=ours))
                else:
                    self.orphans += 1
            else:
                known = [sender.chunks.pop(n) for n in operation.numbers if n in sender.chunks]
                self.replay.release_chunks(known)
        return True

    def _welcome(self, worker: int, incarnation: str) -> Sender:
        """A new process acts in the place of an old one, whose unfinished episodes go."""
        for name in [name for name, sender in self.senders.items() if sender.worker == worker]:
            self.replay.release_chunks(list(self.senders.pop(name).chunks.values()))
            self.replaced = [*self.replaced[-999:], name]
        self.senders[incarnation] = sender = Sender(worker)
        return sender

    def state_dict(self) -> dict[str, Any]:
        return {
            "senders": {
                name: {
                    "worker": sender.worker,
                    "serial": sender.serial,
                    "chunks": np.array(sorted(sender.chunks.items()), np.int64).reshape(-1, 2),
                }
                for name, sender in self.senders.items()
            },
            "replaced": list(self.replaced),
            "duplicates": self.duplicates,
            "orphans": self.orphans,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.senders = {
            name: Sender(said["worker"], said["serial"], dict(said["chunks"].tolist()))
            for name, said in saved["senders"].items()
        }
        self.replaced = list(saved["replaced"])
        self.duplicates, self.orphans = saved["duplicates"], saved["orphans"]

"""The replay in other processes is the same replay: same batches, global priorities, once each."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import numpy as np
import torch
from agent_fakes import SPEC, episode

from r2d3.config import Config, make_config
from r2d3.demos import demonstration_replay
from r2d3.launch.parts import agent_replay, first_network
from r2d3.launch.ray.intake import Intake
from r2d3.launch.ray.shipping import Note, Shipment, ShippingSink
from r2d3.learner import Learner
from r2d3.mixture import DemoMixture
from r2d3.replay import SequenceBatch, SequenceReader
from r2d3.sequences import ChunkCodec, SequenceRecord, SequenceShape, SequenceWriter, write_episode

SHAPE = SequenceShape(length=8, burn_in=4, overlap=4)
NOTE = Note(pid=0, node="", doing="acting")


def settings(folder: pathlib.Path, **more: Any) -> Config:
    small = {
        "env": "TestDiary-v0", "agent": "r2d3", "demos": "by hand", "out": str(folder),
        "launch": "ray", "demo_ratio": 0.25, "features": 8, "hidden": 8, "sequence_length": 8,
        "burn_in": 4, "overlap": 4, "batch_size": 8, "actors": 2, "min_replay": 4,
        "replay_capacity": 24, "target_period": 3, "minutes": 1.0,
    }  # fmt: skip
    return make_config(**{**small, **more})


def script(seed: int = 0) -> list[tuple[str, int]]:
    """What happens, in order: an episode of so many steps, or a learner step."""
    rng = np.random.default_rng(seed)
    happens = [("episode", int(rng.integers(3, 20))) for _ in range(6)]
    for _ in range(30):
        happens.append(("learn", 0))
        if rng.random() < 0.6:
            happens.append(("episode", int(rng.integers(3, 20))))
    return happens


def learn_from(
    config: Config, source: Any, sink: Any, ship: Any
) -> tuple[list[SequenceBatch], Learner]:
    """Plays the script through these ends of a replay."""
    demos = demonstration_replay([episode(9, 90), episode(14, 91)], SPEC, config, seed=5)
    mixture = DemoMixture(source, demos, batch_size=8, importance_exponent=0.6, seed=6)
    learner = Learner(first_network(config, SPEC, 3), config)
    writer = SequenceWriter(SHAPE, ChunkCodec(SPEC), sink, lambda q, *_: 1.0 + len(q))
    batches = []
    for number, (what, steps) in enumerate(script()):
        if what == "episode":
            write_episode(writer, episode(steps, number))
            ship()
        else:
            batch, origins = mixture.sample(0.25)
            batches.append(batch)
            _, priorities = learner.step(batch)
            assert priorities is not None
            DemoMixture.update_priorities(origins, priorities)
    return batches, learner


def shard_actors(config: Config, count: int) -> list[Any]:
    import ray

    from r2d3.launch.ray.shard import ReplayShard

    config = dataclasses.replace(config, replay_shards=count)
    made = ray.remote(ReplayShard).options(num_cpus=0)
    return [made.remote(config, SPEC, number, 1000) for number in range(count)]


def sharded(config: Config, handles: list[Any]) -> Any:
    from r2d3.launch.ray.sharded import ShardedReplay

    replay = ShardedReplay(handles, SequenceReader(SPEC, SHAPE), 0, print, lambda _: None)
    replay.refresh(60.0)
    return replay


def test_a_script_gives_identical_batches_under_both_launchers(
    cluster: Any, tmp_path: pathlib.Path
) -> None:
    import ray

    config = settings(tmp_path)
    local = agent_replay(config, SPEC)
    want, want_learner = learn_from(config, local, local, lambda: None)

    (shard,) = shard_actors(config, 1)
    there, sink = sharded(config, [shard]), ShippingSink(0, "a", 1)

    def ship() -> None:
        ray.get(shard.receive.remote(sink.take(1, 0), NOTE))
        there.refresh()

    got, got_learner = learn_from(config, there, sink, ship)
    ray.kill(shard)
    assert len(got) == len(want) == 30
    assert local.next_key > local.capacity, "the script is too short for anything to be evicted"
    for mine, other in zip(got, want, strict=True):
        for field in dataclasses.fields(SequenceBatch):
            a, b = getattr(mine, field.name), getattr(other, field.name)
            if isinstance(a, dict):
                assert all((a[name] == b[name]).all() for name in b)
            elif b is not None:
                np.testing.assert_array_equal(a, b, err_msg=field.name)
    for a, b in zip(
        got_learner.network.parameters(), want_learner.network.parameters(), strict=True
    ):
        assert torch.equal(a, b)


def test_priorities_are_global_across_shards(cluster: Any, tmp_path: pathlib.Path) -> None:
    import ray

    config = settings(tmp_path, replay_capacity=300, priority_exponent=1.0)
    handles = shard_actors(config, 3)
    # Shards of very different size and mass: 2, 10 and 40 sequences, of priorities 1, 2, 3, ...
    priorities, number = {}, 0
    for shard, handle in enumerate(handles):
        sink = ShippingSink(shard, f"s{shard}", 1)
        for _ in range((2, 10, 40)[shard]):
            number += 1
            chunk = sink.add_chunk(encoded(number), 4)
            sink.add_sequence(SequenceRecord((chunk,), 0, 4, 4, False, float(number)))
            sink.release_chunks([chunk])
            priorities[number] = float(number)
        ray.get(handle.receive.remote(sink.take(0, 0), NOTE))
    replay = sharded(config, handles)
    assert len(replay) == 52
    counts, total = dict.fromkeys(priorities, 0), sum(priorities.values())
    for _ in range(40):
        draw = replay.draw(50)
        batch = replay.new_batch(50)
        replay.read(draw, batch, np.arange(50))
        stamps = batch.observations["observation"][:, 4, 0].astype(int).tolist()
        # Each with the probability that its share of the whole priority gives it.
        expected = np.array([priorities[stamp] for stamp in stamps]) / total
        np.testing.assert_allclose(draw.probabilities, expected, rtol=1e-9)
        assert draw.size == 52
        for stamp in stamps:
            counts[stamp] += 1
    shares = np.array([counts[n] for n in priorities]) / 2000
    np.testing.assert_allclose(shares, np.array(list(priorities.values())) / total, atol=0.012)
    # New priorities find their way to the shard they belong to: only number 1 is left to draw.
    every = replay.draw(200)
    batch = replay.new_batch(200)
    replay.read(every, batch, np.arange(200))
    stamps = batch.observations["observation"][:, 4, 0]
    rest = np.array([n not in stamps for n in priorities])
    replay.update_priorities(every, np.where(stamps == stamps.max(), 1e6, 1e-6))
    replay.refresh()
    again = replay.draw(50)
    batch = replay.new_batch(50)
    replay.read(again, batch, np.arange(50))
    assert rest.sum() < 40
    assert (batch.observations["observation"][:, 4, 0] == stamps.max()).mean() > 0.9
    for handle in handles:
        ray.kill(handle)


def test_a_shard_holds_its_actors_at_the_learner_s_limit(
    cluster: Any, tmp_path: pathlib.Path
) -> None:
    import ray

    config = settings(tmp_path, replay_capacity=100)
    (handle,) = shard_actors(config, 1)
    replay, sink = sharded(config, [handle]), ShippingSink(0, "a", 1)
    replay.room = 3
    replay.refresh()

    def insert(count: int) -> bool:
        writer = SequenceWriter(SHAPE, ChunkCodec(SPEC), sink)
        for number in range(count):
            write_episode(writer, episode(4, number))  # one sequence each
        return bool(ray.get(handle.receive.remote(sink.take(0, 0), NOTE)).hold)

    assert not insert(2)
    assert insert(1)
    replay.room = 5
    replay.refresh()
    assert not ray.get(handle.report.remote(0, "a", NOTE)).hold
    replay.stop = True
    replay.refresh()
    assert ray.get(handle.report.remote(0, "a", NOTE)).hold
    ray.kill(handle)


# -- without Ray -------------------------------------------------------------------------------


def encoded(stamp: int) -> bytes:
    observations = np.full((5, 2), stamp, np.float32)
    return ChunkCodec(SPEC).encode(
        {"observation": observations, "prev_action": np.zeros(5), "prev_reward": np.zeros(5)}
    )


def shipments(incarnation: str = "a", worker: int = 0, count: int = 3) -> list[Shipment]:
    sink = ShippingSink(worker, incarnation, 1)
    writer = SequenceWriter(SHAPE, ChunkCodec(SPEC), sink)
    made = []
    for number in range(count):
        # The second half of an episode's steps goes in another shipment than the first.
        for t in range(9):
            writer.append({"observation": np.array([number, t], np.float32)}, 0, 0.0)
        made.append(sink.take(9, 0))
        writer.finish({"observation": np.array([number, 9], np.float32)}, True)
        made.append(sink.take(0, 0))
    return made


def intake(tmp_path: pathlib.Path) -> Intake:
    return Intake(agent_replay(settings(tmp_path, replay_capacity=100), SPEC))


def test_a_repeated_shipment_is_passed_over(tmp_path: pathlib.Path) -> None:
    once, often = intake(tmp_path), intake(tmp_path)
    sent = shipments()
    for shipment in sent:
        assert once.take(shipment)
        assert often.take(shipment)
        assert not often.take(shipment)
    for shipment in sent:
        assert not often.take(shipment)
    assert often.duplicates == 2 * len(sent)
    assert len(often.replay) == len(once.replay) > 5
    assert often.replay.bytes == once.replay.bytes
    assert not often.senders["a"].chunks, "chunks are held that no sequence needs"


def test_a_replaced_process_s_unfinished_episode_goes_and_its_late_words_too(
    tmp_path: pathlib.Path,
) -> None:
    taking, sent = intake(tmp_path), shipments()
    taking.take(sent[0])  # an episode begun
    held = taking.replay.bytes
    assert taking.senders["a"].chunks
    assert taking.take(shipments("b")[0])
    assert "a" not in taking.senders
    assert not taking.take(sent[1]), "a dead process's word came after its successor's"
    # What sequences of the dead process's do not need any more has gone.
    assert taking.replay.bytes <= 2 * held
    counts = taking.replay.references
    owned = set(taking.senders["b"].chunks.values())
    needed = set(taking.replay.sequence_chunks[taking.replay.sequence_chunks >= 0].tolist())
    assert set(counts) == owned | needed


def test_what_a_restored_shard_has_never_seen_is_counted_not_guessed(
    tmp_path: pathlib.Path,
) -> None:
    before, sent = intake(tmp_path), shipments()
    before.take(sent[0])
    saved = {"replay": before.replay.state_dict(), "intake": before.state_dict()}
    before.take(sent[1])
    before.take(sent[2])
    # Killed and restored; the sender, who had answers to 1, 2 and 3, goes on with 4.
    after = intake(tmp_path)
    after.replay.load_state_dict(saved["replay"])
    after.load_state_dict(saved["intake"])
    assert not after.take(sent[0])
    assert after.take(sent[3])
    assert after.orphans > 0
    assert after.take(sent[4])
    assert len(after.replay) > 1

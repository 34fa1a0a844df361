"""Networks: time, padding, layouts, and what they can look at."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from agent_fakes import SPEC

from r2d3.errors import UserError
from r2d3.networks import AgentNetwork, Inputs, copy_weights
from r2d3.spaces import observation_spec
from r2d3.torsos import (
    FRAMES_AT_A_TIME,
    PIXEL_CENTRE,
    PIXEL_SPREAD,
    ConvTorso,
    GridTorso,
    make_torso,
    resnet_layers,
    small_cnn_layers,
)


def network(core: str = "lstm", head: str = "dueling", **more: object) -> AgentNetwork:
    torch.manual_seed(0)
    settings = {"torso": "cnn", "features": 8, "hidden": 8, "layer_norm": True, **more}
    return AgentNetwork(SPEC, 3, core=core, head=head, **settings)  # type: ignore[arg-type]


def inputs(batch: int, time: int, seed: int = 0) -> Inputs:
    g = torch.Generator().manual_seed(seed)
    return Inputs(
        {"observation": torch.randn(batch, time, 2, generator=g)},
        torch.randint(-1, 3, (batch, time), generator=g),
        torch.randn(batch, time, generator=g),
    )


def test_unrolling_in_pieces_equals_unrolling_at_once() -> None:
    net, x = network(), inputs(4, 9)
    whole, _ = net.unroll(x, net.initial_state(4))
    first, state = net.unroll(x.slice(0, 5), net.initial_state(4))
    second, _ = net.unroll(x.slice(5, None), state)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)


@pytest.mark.parametrize("pads", [[0, 0, 0], [4, 4, 4], [0, 2, 4], [4, 0, 3], [1, 1, 1]])
def test_padding_leaves_no_trace_in_the_recurrent_state(pads: list[int]) -> None:
    """Each row's state equals that of its real steps alone, whatever lies in the padding."""
    net, x = network(), inputs(3, 4)
    state = net.burn_in(x, torch.tensor(pads))
    for row, pad in enumerate(pads):
        alone = x.rows(torch.tensor([row])).slice(pad, None)
        expected = net.initial_state(1)
        if pad < 4:
            _, expected = net.unroll(alone, expected)
        for got, want in zip(state, expected, strict=True):
            torch.testing.assert_close(got[row], want[0])


def test_stored_states_are_where_rows_begin() -> None:
    net, x = network(), inputs(2, 4)
    stored = (torch.randn(2, 8), torch.randn(2, 8))
    state = net.burn_in(x, torch.tensor([4, 0]), stored)
    torch.testing.assert_close(state[0][0], stored[0][0])
    alone, one = x.rows(torch.tensor([1])), torch.tensor([1])
    _, expected = net.unroll(alone, (stored[0][one], stored[1][one]))
    torch.testing.assert_close(state[0][1], expected[0][0])


def test_the_feedforward_core_remembers_nothing_and_is_as_wide() -> None:
    net, x = network("feedforward"), inputs(2, 5)
    q, _ = net.unroll(x, net.initial_state(2))
    last, _ = net.unroll(x.slice(4, None), net.initial_state(2))
    torch.testing.assert_close(q[:, 4:], last)
    assert net.core[0].out_features == network("lstm").core.hidden_size


def test_dueling_values_average_to_the_state_value() -> None:
    net, x = network(), inputs(2, 3)
    core, _ = net.walk(net.embed(x), net.initial_state(2))
    value = net.head.value(core)
    torch.testing.assert_close(net.head(core).mean(-1, keepdim=True), value)


@pytest.mark.parametrize("height", [36, 72])
@pytest.mark.parametrize(
    "layers", [lambda height: small_cnn_layers(3, height), lambda _: resnet_layers(3)]
)
def test_frames_in_portions_and_centred_in_the_weights_equal_the_plain_way(
    layers: Any, height: int
) -> None:
    torch.manual_seed(0)
    torso = ConvTorso(layers(height), (height, 48, 3))
    frames = torch.randint(0, 256, (FRAMES_AT_A_TIME + 5, height, 48, 3), dtype=torch.uint8)
    centred = (frames.permute(0, 3, 1, 2).float() - PIXEL_CENTRE) / PIXEL_SPREAD
    plain = torso.layers(centred).permute(0, 2, 3, 1).flatten(1)
    torch.testing.assert_close(torso(frames), plain, atol=1e-4 * float(plain.max()), rtol=1e-4)


def test_grid_embedding_and_its_gradient_equal_plain_lookup() -> None:
    torch.manual_seed(0)
    torso = GridTorso((7, 7, 3))
    grid = torch.randint(0, 11, (5, 7, 7, 3), dtype=torch.uint8)
    torso(grid).square().sum().backward()
    got, gradient = torso(grid).detach(), torso.table.grad.clone()
    torso.table.grad = None
    tables = torso.table.view(3, 256, -1)
    x = sum(tables[c][grid[..., c].long()] for c in range(3))
    plain = torso.layers(x.permute(0, 3, 1, 2)).flatten(1)
    plain.square().sum().backward()
    torch.testing.assert_close(got, plain.detach())
    torch.testing.assert_close(gradient, torso.table.grad, rtol=1e-4, atol=1e-4)


def test_copying_weights_keeps_the_destinations_memory() -> None:
    one, other = network(), network()
    with torch.no_grad():
        next(one.parameters()).add_(1.0)
    place = next(other.parameters()).data_ptr()
    copy_weights(one, other)
    assert next(other.parameters()).data_ptr() == place
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b)


# -- observations --------------------------------------------------------------------------------


def test_kinds_of_observations() -> None:
    box = gym.spaces.Box
    spec = observation_spec(
        gym.spaces.Dict(
            {
                "camera": box(0, 255, (72, 96, 3), np.uint8),
                "map": box(0, 255, (7, 7, 3), np.uint8),
                "speed": box(-np.inf, np.inf, (3,), np.float32),
                "angle": box(-2.0, 2.0, (1,), np.float32),
                "heading": gym.spaces.Discrete(4, start=1),
                "mission": gym.spaces.Text(10),
            }
        )
    )
    kinds = {f.name: f.kind for f in spec.fields}
    assert kinds == {
        "camera": "pixels", "map": "grid", "speed": "vector", "angle": "vector",
        "heading": "category",
    }  # fmt: skip
    assert [name for name, _ in spec.left_out] == ["mission"]
    q = AgentNetwork(
        spec, 3, torso="cnn", core="lstm", head="softmax", features=8, hidden=8, layer_norm=True
    )
    zeros = spec.zeros(2, 3)
    x = Inputs(
        {name: torch.from_numpy(a) for name, a in zeros.items()},
        torch.full((2, 3), -1),
        torch.zeros(2, 3),
    )
    values, _ = q.unroll(x, q.initial_state(2))
    assert values.shape == (2, 3, 3)


@pytest.mark.parametrize("name", ["keys", "a.b", "training", "forward", "ordinary"])
def test_an_observation_may_have_any_name(name: str) -> None:
    spec = observation_spec(gym.spaces.Dict({name: gym.spaces.Box(-1.0, 1.0, (2,))}))
    net = AgentNetwork(
        spec, 3, torso="mlp", core="lstm", head="dueling", features=4, hidden=4, layer_norm=True
    )
    some = Inputs({name: torch.zeros(1, 2, 2)}, torch.zeros(1, 2).long(), torch.zeros(1, 2))
    assert net.unroll(some, net.initial_state(1))[0].shape == (1, 2, 3)


@pytest.mark.parametrize("stack", [(), (4,)])
@pytest.mark.parametrize("channels", [(), (3,)])
@pytest.mark.parametrize("torso", ["cnn", "resnet"])
def test_grey_and_stacked_pictures_are_the_same_picture_in_another_order(
    torso: str, channels: tuple[int, ...], stack: tuple[int, ...]
) -> None:
    """As Gymnasium's GrayscaleObservation and FrameStackObservation give them."""
    shape = (*stack, 36, 48, *channels)
    [field] = observation_spec(gym.spaces.Box(0, 255, shape, np.uint8)).fields
    assert field.kind == "pixels"
    frames = torch.randint(0, 256, (2, *shape), dtype=torch.uint8)
    made = make_torso(field, torso, 8)
    plain = frames if stack else frames[:, None]
    plain = plain if channels else plain[..., None]
    plain = plain.permute(0, 2, 3, 1, 4).flatten(3)  # [N, h, w, frames x channels]
    [usual] = observation_spec(gym.spaces.Box(0, 255, tuple(plain.shape[1:]), np.uint8)).fields
    other = make_torso(usual, torso, 8)
    other.load_state_dict(made.state_dict())
    torch.testing.assert_close(made(frames), other(plain), atol=1e-4, rtol=1e-4)


def test_a_small_board_is_no_picture() -> None:
    [field] = observation_spec(gym.spaces.Box(0, 255, (20, 10), np.uint8)).fields
    assert field.kind == "vector"


def test_a_category_counts_from_zero_inside() -> None:
    spec = observation_spec(gym.spaces.Discrete(4, start=1))
    assert spec.extract(np.array([1, 4]))["observation"].tolist() == [0, 3]


def test_extraction_copies() -> None:
    spec = observation_spec(gym.spaces.Box(0, 1, (2,), np.float32))
    original = np.zeros(2, np.float32)
    extracted = spec.extract(original)
    original[:] = 1.0
    assert extracted["observation"].tolist() == [0.0, 0.0]


def test_an_observation_without_anything_usable_is_refused_by_name() -> None:
    with pytest.raises(UserError, match="mission"):
        observation_spec(gym.spaces.Dict({"mission": gym.spaces.Text(10)}))


def test_pictures_too_small_for_the_cnn_are_refused_by_name() -> None:
    spec = observation_spec(gym.spaces.Dict({"eye": gym.spaces.Box(0, 255, (20, 20, 3), np.uint8)}))
    with pytest.raises(UserError, match="eye"):
        AgentNetwork(
            spec, 3, torso="cnn", core="lstm", head="dueling", features=8, hidden=8, layer_norm=True
        )

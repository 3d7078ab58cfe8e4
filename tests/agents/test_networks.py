"""The residual network."""

import pytest
import torch

import agents
from agents.networks.residual import ResidualConfig, ResidualNetwork, mask_logits, value_of
from reversi_env import Game

SMALL = ResidualConfig(num_channels=8, num_blocks=2, num_head_channels=4)


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    network = ResidualNetwork(SMALL)
    network.train()
    for _ in range(5):  # so that batch norm has statistics of its own
        network(torch.randn(16, 3, 8, 8))
    return network


@pytest.mark.parametrize("size", [4, 6, 8, 10])
def test_the_same_weights_accept_every_board_size(network, size):
    planes = torch.randn(5, 3, size, size)
    heads = network.eval()(planes)
    assert heads.policy_logits.shape == (5, size * size + 1)
    assert heads.result_logits.shape == (5, 3)
    assert heads.margin.shape == heads.value.shape == (5,)
    assert heads.owner.shape == (5, size * size)
    assert heads.owner.abs().max() < 1
    assert all(head.std() > 0 for head in heads)
    logits, values = network.policy_and_value(planes)
    assert torch.equal(logits, heads.policy_logits)
    assert torch.equal(values, heads.value)


def test_a_value_is_the_chance_to_win_less_that_to_lose():
    values = value_of(torch.log(torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.0, 1.0, 0.0]])))
    torch.testing.assert_close(values, torch.tensor([0.3, -0.6, 0.0]))


@pytest.mark.parametrize("symmetry", range(1, 8))
def test_the_owner_of_a_square_is_told_at_its_place(symmetry):
    torch.manual_seed(3)
    network = ResidualNetwork(ResidualConfig(8, 1, 4)).eval()
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d) and module.kernel_size == (3, 3):
            with torch.no_grad():  # with weights that look the same from everywhere the network does too
                module.weight.copy_(sum(transformed(module.weight, each) for each in range(8)) / 8)
    planes = torch.randn(4, 3, 6, 6)
    turned, straight = network(transformed(planes, symmetry)), network(planes)
    torch.testing.assert_close(
        turned.owner.reshape(4, 6, 6), transformed(straight.owner.reshape(4, 6, 6), symmetry), atol=1e-5, rtol=0
    )
    torch.testing.assert_close(turned.margin, straight.margin, atol=1e-5, rtol=0)


def transformed(planes, symmetry):
    planes = planes.transpose(-1, -2) if symmetry >= 4 else planes
    return torch.rot90(planes, symmetry % 4, dims=(-2, -1))


def test_policy_and_value_depend_on_the_parameters_that_are_named(network):
    logits, values = network.policy_and_value(torch.randn(2, 3, 8, 8))
    parameters = dict(network.named_parameters())
    gradients = torch.autograd.grad(logits.sum() + values.sum(), list(parameters.values()), allow_unused=True)
    used = {name for name, gradient in zip(parameters, gradients, strict=True) if gradient is not None}
    named = {id(parameter) for parameter in network.parameters_of_policy_and_value()}
    assert {name for name, parameter in parameters.items() if id(parameter) in named} == used
    assert used == parameters.keys() - {"margin.weight", "margin.bias", "owner.weight", "owner.bias"}


def test_masked_logits_of_a_row_without_legal_actions_stay_finite():
    masked = mask_logits(torch.zeros(2, 5), torch.tensor([[True, False, True, False, False], [False] * 5]))
    policy = torch.softmax(masked, dim=1)
    assert torch.isfinite(policy).all()
    torch.testing.assert_close(policy[0], torch.tensor([0.5, 0, 0.5, 0, 0]))


@pytest.mark.parametrize("fault", [{"num_channels": 0}, {"num_blocks": 5000}, {"num_head_channels": 1.5}])
def test_a_size_that_cannot_be_is_refused(fault):
    with pytest.raises(ValueError, match=next(iter(fault))):
        ResidualConfig(**fault)


@pytest.mark.parametrize(
    ("moves", "name", "chance", "value"),
    [
        ("", "e4", 0.259231, -0.027951),
        ("c2b4a5a4", "a3", 0.279413, -0.262858),
        ("c2b4a5a4a3d2c5b3a2", "c6", 0.24203, -0.22163),
    ],
)
def test_the_network_that_comes_along_says_what_it_said_when_it_told_a_value_alone(moves, name, chance, value):
    position = Game.from_transcript(moves, "othello-6x6").position
    told = agents.make("zero-6x6").intuition(position)
    assert position.move_name(told.move) == name
    assert told.policy.max() == pytest.approx(chance, abs=1e-5)
    assert told.value == pytest.approx(value, abs=1e-5)

"""The residual network and the way search asks it."""

import numpy as np
import pytest
import torch

import agents
from agents.networks.inference import NetworkEvaluator, TorchBackend
from agents.networks.residual import ResidualConfig, ResidualNetwork, mask_logits, value_of
from reversi_env import Game, Position, Variant, random_games

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


@pytest.mark.parametrize("name", Variant.NAMES)
def test_search_is_answered_what_the_network_says(network, name):
    variant = Variant.named(name)
    games = random_games(Position(variant), 4, seed=1)
    positions = [
        position
        for moves, length in zip(games.moves, games.lengths, strict=True)
        for position in Game.from_moves(moves[:length].tolist(), variant).positions[:-1]
    ]
    evaluator = NetworkEvaluator(TorchBackend(network, torch.device("cpu")))
    policy, value = evaluator(
        np.array([position.player for position in positions]),
        np.array([position.opponent for position in positions]),
        variant,
    )
    network.eval()
    for row, position in enumerate(positions):
        mover, other = ("X", "O") if position.is_black_to_move else ("O", "X")
        cells = np.array(list(position.board))
        legal = position.action_mask
        planes = np.stack([cells == mover, cells == other, legal[:-1] == 1]).reshape(1, 3, variant.size, variant.size)
        with torch.no_grad():
            logits, expected_value = network.policy_and_value(torch.tensor(planes, dtype=torch.float32))
        odds = np.exp(logits[0].double().numpy()) * legal
        np.testing.assert_allclose(policy[row], odds / odds.sum(), atol=2e-5)
        assert value[row] == pytest.approx(expected_value.item(), abs=2e-5)
        assert (policy[row][legal == 0] == 0).all()


def test_masked_logits_of_a_row_without_legal_actions_stay_finite():
    masked = mask_logits(torch.zeros(2, 5), torch.tensor([[True, False, True, False, False], [False] * 5]))
    policy = torch.softmax(masked, dim=1)
    assert torch.isfinite(policy).all()
    torch.testing.assert_close(policy[0], torch.tensor([0.5, 0, 0.5, 0, 0]))


def test_asking_a_backend_leaves_the_network_as_it_was(network):
    network.train()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    backend = TorchBackend(network, torch.device("cpu"))
    backend(np.zeros((2, 3, 8, 8), np.float32), np.ones((2, 65), np.bool_))
    assert network.training
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name]), name


@pytest.mark.parametrize("fault", [{"num_channels": 0}, {"num_blocks": 5000}, {"num_head_channels": 1.5}])
def test_a_size_that_cannot_be_is_refused(fault):
    with pytest.raises(ValueError, match=next(iter(fault))):
        ResidualConfig(**fault)


def test_a_network_that_answers_what_is_no_number_is_refused():
    broken = ResidualNetwork(SMALL)
    with torch.no_grad():
        broken.result.bias.fill_(float("nan"))
    evaluator = NetworkEvaluator(TorchBackend(broken, torch.device("cpu")))
    start = Position(Variant())
    with pytest.raises(ValueError, match="the network's answer is not a number"):
        evaluator(np.array([start.player]), np.array([start.opponent]), start.variant)


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

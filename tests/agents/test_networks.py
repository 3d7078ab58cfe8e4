"""The residual network and the way search asks it."""

import numpy as np
import pytest
import torch

from agents.networks.inference import NetworkEvaluator, TorchBackend
from agents.networks.residual import ResidualConfig, ResidualNetwork, mask_logits
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
    logits, values = network(torch.randn(5, 3, size, size))
    assert logits.shape == (5, size * size + 1)
    assert values.shape == (5,)
    assert values.abs().max() < 1


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
            logits, expected_value = network(torch.tensor(planes, dtype=torch.float32))
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
        broken.value.bias.fill_(float("nan"))
    evaluator = NetworkEvaluator(TorchBackend(broken, torch.device("cpu")))
    start = Position(Variant())
    with pytest.raises(ValueError, match="the network's answer is not a number"):
        evaluator(np.array([start.player]), np.array([start.opponent]), start.variant)

"""What runs a network: every backend says what torch says, and whatever strays from that is replaced."""

import copy
import logging
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import agents
from agents.checkpoint import read_checkpoint
from agents.evaluation import WEIGHTS
from agents.networks import published as publishing
from agents.networks import runtimes
from agents.networks.inference import NetworkEvaluator, ask
from agents.networks.published import BACKENDS, Deviation, InferenceConfig, Published, choose, publish
from agents.networks.residual import ResidualConfig, ResidualNetwork
from agents.networks.torch_backend import TorchBackend
from reversi_env import Game, Position, Variant, random_games
from reversi_env.naming import UsageError

SMALL = ResidualConfig(num_channels=8, num_blocks=2, num_head_channels=4)
EIGHT_BITS = [name for name in BACKENDS if name.endswith("-int8")]
RUNTIMES = [name for name in BACKENDS if not name.startswith("torch")]


def require(backend):
    """Skips the test where a backend cannot run here, and says why."""
    if backend == "torch-half":
        if not torch.cuda.is_available():
            pytest.skip("torch finds no CUDA device here")
    elif missing := publishing._missing(backend):
        pytest.skip(f"{missing[0]} is not installed")
    return "cuda" if backend == "torch-half" else "cpu"


@pytest.fixture(scope="module")
def network():
    """Returns a small network whose batch norms have statistics of their own."""
    torch.manual_seed(0)
    network = ResidualNetwork(SMALL)
    network.train()
    for _ in range(5):
        network(torch.randn(16, 3, 8, 8))
    return network.eval()


@pytest.fixture(scope="module")
def trained():
    """Returns a network that has learned 6×6."""
    return read_checkpoint(WEIGHTS / "zero-6x6").network.eval()


def some_positions(variant, num_games=2, seed=1):
    games = random_games(Position(variant), num_games, seed=seed)
    return [
        position
        for moves, length in zip(games.moves, games.lengths, strict=True)
        for position in Game.from_moves(moves[:length].tolist(), variant).positions[:-1]
    ]


def boards(positions):
    return (
        np.array([position.player for position in positions], np.uint64),
        np.array([position.opponent for position in positions], np.uint64),
    )


def expected(network, positions):
    """Returns what the unfolded network says, by torch's own functions in float64: policies and values."""
    network = copy.deepcopy(network).double().eval()
    policies, values = [], []
    for position in positions:
        mover, other = ("X", "O") if position.is_black_to_move else ("O", "X")
        size, cells = position.variant.size, np.array(list(position.board))
        legal = position.action_mask
        planes = np.stack([cells == mover, cells == other, legal[:-1] == 1]).reshape(1, 3, size, size)
        with torch.no_grad():
            heads = network(torch.tensor(planes, dtype=torch.float64))
        logits = heads.policy_logits[0].masked_fill(torch.tensor(legal == 0), -torch.inf)
        policies.append(torch.softmax(logits, 0).numpy())
        win, _, loss = torch.softmax(heads.result_logits[0], 0).tolist()
        values.append(win - loss)
    return np.array(policies), np.array(values)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name not in EIGHT_BITS])
def test_search_is_answered_what_the_network_says(network, backend):
    device = require(backend)
    found = publish(network, Variant(), backend, device=device)
    assert found.backend == backend
    evaluator = found.evaluator()  # one for boards of all sizes
    assert evaluator.backend.name == backend
    tolerance = 5e-3 if backend == "torch-half" else 2e-5
    for name in Variant.NAMES:
        positions = some_positions(Variant.named(name))
        policy, value = evaluator(*boards(positions), Variant.named(name))
        assert (policy.dtype, value.dtype) == (np.float32, np.float32)
        policies, values = expected(network, positions)
        np.testing.assert_allclose(policy, policies, atol=tolerance)
        np.testing.assert_allclose(value, values, atol=tolerance)
        assert all((policy[row][position.action_mask == 0] == 0).all() for row, position in enumerate(positions))


@pytest.mark.parametrize("backend", EIGHT_BITS)
def test_eight_bit_integers_say_nearly_what_the_network_says(trained, backend):
    require(backend)
    variant = Variant.named("othello-6x6")
    found = publish(trained, variant, backend)
    assert (found.backend, found.report.strayed) == (backend, ())
    assert len(found.data) < 0.5 * len(publish(trained, variant, backend.removesuffix("-int8")).data)
    positions = some_positions(variant, num_games=4, seed=5)  # others than it was calibrated with
    policy, value = (torch.tensor(array) for array in found.evaluator()(*boards(positions), variant))
    policies, values = (torch.tensor(array) for array in expected(trained, positions))
    assert F.kl_div((policy + 1e-30).log().double(), policies, reduction="batchmean") < 5e-4
    assert (value - values).abs().mean() < 0.02
    assert (value - values).abs().max() > 1e-4  # and not in float32


@pytest.mark.parametrize("backend", RUNTIMES)
def test_an_answer_does_not_depend_on_its_batch(trained, backend):
    require(backend)
    variant = Variant.named("othello-6x6")
    evaluator = publish(trained, variant, backend).evaluator()
    positions = some_positions(variant) * 2
    for batch in (1, 2, 63, 64):
        together = evaluator(*boards(positions[:batch]), variant)
        for row in {0, batch // 2, batch - 1}:
            alone = evaluator(*boards(positions[row : row + 1]), variant)
            for one, many in zip(alone, together, strict=True):
                np.testing.assert_allclose(one[0], many[row], atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_share_a_backend(network, backend):
    device = require(backend)
    runs = publish(network, Variant(), backend, device=device).make_backend()
    planes = [np.random.default_rng(seed).integers(2, size=(5, 3, 8, 8)).astype(np.float32) for seed in range(3)]
    alone = [runs(one) for one in planes]
    faults = []

    def ask_again(index):
        for _ in range(20):
            for array, right in zip(runs(planes[index]), alone[index], strict=True):
                if not np.allclose(array, right, atol=1e-3):
                    faults.append(index)

    threads = [threading.Thread(target=ask_again, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_keeps_one_thread_at_work_and_none_after_it(trained, backend):
    device = require(backend)
    runs = publish(trained, Variant(), backend, device=device).make_backend()
    planes = np.zeros((64, 3, 8, 8), np.float32)
    runs(planes)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(20):
        runs(planes)
    cpu_s = time.process_time() - cpu
    assert cpu_s < 1.2 * (time.perf_counter() - wall)
    cpu = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - cpu < 0.05


def test_policies_are_softmaxes_over_legal_actions_and_values_are_wins_less_losses():
    rng = np.random.default_rng(1)
    logits, results = (rng.normal(scale=20, size=shape).astype(np.float32) for shape in ((200, 65), (200, 3)))
    legal = rng.random((200, 65)) < 0.1
    legal[:, 64] |= ~legal.any(axis=1)
    logits[~legal] = rng.choice([np.nan, np.inf, 1e30], size=(~legal).sum())  # what is not legal may be anything
    policy, value, is_finite = ask(lambda planes: (logits, results), np.zeros((200, 3, 8, 8), np.float32), legal)
    masked = torch.tensor(logits).double().masked_fill(torch.tensor(~legal), -torch.inf)
    np.testing.assert_allclose(policy, torch.softmax(masked, 1), atol=1e-6)
    win, _, loss = torch.softmax(torch.tensor(results).double(), 1).unbind(1)
    np.testing.assert_allclose(value, win - loss, atol=1e-6)
    assert is_finite


@pytest.mark.parametrize("fault", [np.nan, np.inf])
@pytest.mark.parametrize("head", [0, 1])
def test_what_is_no_number_is_refused(fault, head):
    answer = [np.zeros((1, 65), np.float32), np.zeros((1, 3), np.float32)]
    answer[head][:] = fault
    start = Position()
    with pytest.raises(ValueError, match="the network's answer is not a number"):
        NetworkEvaluator(lambda planes: tuple(answer))(*boards([start]), start.variant)


def test_a_network_that_says_what_is_no_number_is_not_published(network):
    broken = copy.deepcopy(network)
    with torch.no_grad():
        broken.result.bias.fill_(torch.nan)
    with pytest.raises(ValueError, match="the network's answer is not a number"):
        publish(broken, Variant())


def test_asking_and_publishing_leave_the_network_as_it_was(network):
    network = copy.deepcopy(network).train()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    publish(network, Variant())
    TorchBackend(network)(np.zeros((2, 3, 8, 8), np.float32))
    assert network.training
    assert not any(module._forward_hooks for module in network.modules())
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def with_an_outlier(network):
    """Returns a network that says the same, and has one activation beside which integers cannot tell the others."""
    network = copy.deepcopy(network)
    first, second = network.tower[0].first, network.tower[0].second
    with torch.no_grad():
        first[1].weight[0], first[1].bias[0] = 0.0, 1e6
        second[0].weight[:, 0] = 0.0
    return network


@pytest.mark.parametrize("backend", EIGHT_BITS)
def test_integers_that_stray_too_far_are_replaced_and_that_is_said(trained, backend, caplog):
    require(backend)
    variant = Variant.named("othello-6x6")
    network = with_an_outlier(trained)
    with caplog.at_level(logging.WARNING):
        found = publish(network, variant, backend)
    assert found.backend == backend.removesuffix("-int8")
    assert found.report.choice.backend == backend
    (sentence,) = found.report.strayed
    assert sentence.startswith(f"{backend} strays too far from float32 (policy ")
    assert sentence in caplog.text
    positions = some_positions(variant)
    policies, values = expected(network, positions)
    policy, value = found.evaluator()(*boards(positions), variant)
    np.testing.assert_allclose(policy, policies, atol=1e-4)
    np.testing.assert_allclose(value, values, atol=1e-4)


@pytest.mark.parametrize("backend", RUNTIMES)
def test_torch_takes_the_place_of_what_is_never_close_enough(network, backend, monkeypatch):
    require(backend)
    monkeypatch.setattr(publishing, "MOST_DEVIATION", Deviation(-1.0, -1.0, -1.0))
    found = publish(network, Variant(), backend)
    assert found.backend == "torch"
    assert len(found.report.strayed) == (2 if backend in EIGHT_BITS else 1)
    assert found.evaluator().backend.name == "torch"


@pytest.mark.parametrize("backend", EIGHT_BITS)
def test_a_network_without_any_weight_is_published(backend):
    require(backend)
    network = ResidualNetwork(SMALL)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        network.pass_logit.bias.fill_(1.0)
    start = Position()
    policy, value = publish(network, start.variant, backend).evaluator()(*boards([start]), start.variant)
    np.testing.assert_allclose(policy[0], start.action_mask / 4, atol=1e-6)
    assert value[0] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("backend", EIGHT_BITS)
def test_calibration_positions_may_be_given(trained, backend):
    require(backend)
    variant = Variant.named("othello-6x6")
    narrow = publish(trained, variant, backend, calibration=boards([Position(variant)]))
    wide = publish(trained, variant, backend, calibration=boards(some_positions(variant)))
    assert narrow.data != wide.data  # other ranges
    assert wide.data == publish(trained, variant, backend, calibration=boards(some_positions(variant))).data


@pytest.mark.parametrize("backend", BACKENDS)
def test_bytes_that_travel_answer_alike_and_damage_is_told(network, backend):
    device = require(backend)
    found = publish(network, Variant(), backend, device=device)
    start = Position()
    before = found.evaluator()(*boards([start]), start.variant)
    sent = pickle.loads(pickle.dumps(found))
    assert sent == found
    after = Published(found.backend, found.data, found.device).evaluator()(*boards([start]), start.variant)
    np.testing.assert_array_equal(after[0], before[0])
    damaged = Published(found.backend, found.data[:-1] + bytes([found.data[-1] ^ 1]), found.device, found.digest)
    with pytest.raises(ValueError, match="bytes of a published network are not those that were sent"):
        damaged.evaluator()


@pytest.mark.parametrize("data", [b"", b"no network at all", bytes(range(256)) * 8])
@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "torch-half"])
def test_what_is_no_network_is_told(backend, data):
    require(backend)
    with pytest.raises(ValueError, match=rf"{len(data):,} bytes are no network that {backend} can run: ."):
        Published(backend, data).evaluator()


def run_python(code, *arguments):
    command = [sys.executable, "-c", code, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=Path(agents.__file__).parents[1])
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("backend", ["onnx", "openvino-int8"])
def test_another_process_plays_without_torch(network, backend, tmp_path):
    require(backend)
    found = publish(network, Variant(), backend)
    (tmp_path / "network").write_bytes(found.data)
    code = """
import sys
sys.modules["torch"] = None
from pathlib import Path
import numpy as np
from agents.networks.published import Published
from reversi_env import Position
backend, path, digest = sys.argv[1:]
evaluator = Published(backend, Path(path).read_bytes(), digest=digest).evaluator()
start = Position()
print(evaluator(np.array([start.player]), np.array([start.opponent]), start.variant)[0][0, 19])
"""
    start = Position()
    here = found.evaluator()(*boards([start]), start.variant)[0][0, 19]
    assert np.float32(run_python(code, backend, str(tmp_path / "network"), found.digest)) == here


def test_optional_libraries_are_not_imported_before_they_are_used():
    code = """
import importlib, pkgutil, sys
import agents.networks
for module in pkgutil.walk_packages(agents.networks.__path__, "agents.networks."):
    importlib.import_module(module.name)
print([name for name in ("onnx", "onnxruntime", "openvino") if name in sys.modules])
"""
    assert run_python(code).strip() == "[]"


@pytest.fixture
def installed(monkeypatch):
    """Returns a function that makes libraries seem to be all the optional ones that are installed."""

    def pretend(*libraries):
        for module in (publishing, runtimes):
            monkeypatch.setattr(module, "is_installed", lambda library: library in libraries)

    return pretend


@pytest.mark.parametrize(
    ("libraries", "arguments", "backend"),
    [
        (("onnx", "onnxruntime", "openvino"), {}, "openvino-int8"),
        (("onnx", "onnxruntime", "openvino"), {"batch": 1}, "onnx-int8"),
        (("onnx", "onnxruntime", "openvino"), {"float32": True}, "onnx"),
        (("onnx", "onnxruntime", "openvino"), {"batch": 1, "float32": True}, "onnx"),
        (("onnx", "onnxruntime"), {}, "onnx-int8"),
        (("onnx", "openvino"), {"batch": 1, "float32": True}, "openvino"),
        (("onnxruntime",), {}, "torch"),
        ((), {}, "torch"),
        ((), {"device": "cuda"}, "torch-half"),
        ((), {"device": "cuda", "float32": True}, "torch"),
        ((), {"backend": "onnx"}, "onnx"),
    ],
)
def test_auto_takes_what_is_fastest_of_what_is_there(installed, libraries, arguments, backend):
    installed(*libraries)
    assert choose(**arguments).backend == backend


def test_auto_says_what_would_be_faster(installed):
    installed("onnx", "onnxruntime")
    assert choose().reason == (
        "the fastest that is installed for batches of 64; openvino-int8 would be faster, and needs openvino, "
        'which an extra brings: pip install -c constraints.txt -e ".[openvino]"'
    )


@pytest.mark.parametrize("backend", ["onnx", "openvino"])
def test_what_cannot_be_written_without_a_library_says_what_brings_it(installed, network, backend):
    installed()
    with pytest.raises(UsageError, match=r'needs onnx, .*: pip install -c constraints.txt -e "\.\[fast\]"'):
        publish(network, Variant(), backend)


@pytest.mark.parametrize(
    ("backend", "library", "extra"), [("onnx", "onnxruntime", "fast"), ("openvino-int8", "openvino", "openvino")]
)
def test_a_process_without_the_runtime_says_what_brings_it(installed, backend, library, extra):
    installed()
    with pytest.raises(UsageError, match=rf'backend={backend} needs {library}, .* -e "\.\[{extra}\]"'):
        Published(backend, b"").evaluator()


def test_half_precision_on_a_cpu_is_refused(network):
    with pytest.raises(UsageError, match="torch-half needs a CUDA device"):
        publish(network, Variant(), "torch-half")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_missing_device_is_told():
    with pytest.raises(UsageError, match="torch finds none here"):
        Published("torch", publish(ResidualNetwork(SMALL), Variant(), "torch").data, "cuda").evaluator()


def test_a_backend_that_nobody_knows_is_told_with_near_misses():
    with pytest.raises(UsageError, match="unknown backend 'onxn'; did you mean onnx"):
        InferenceConfig("onxn")


def test_a_published_network_is_a_valid_onnx_file(network):
    onnx = pytest.importorskip("onnx")
    for backend in ("onnx", "onnx-int8"):
        require(backend)
        model = onnx.load_from_string(publish(network, Variant(), backend).data)
        onnx.checker.check_model(model, full_check=True)
        assert not any(onnx.external_data_helper.uses_external_data(tensor) for tensor in model.graph.initializer)


def test_a_network_that_no_onnx_file_holds_is_refused(network, monkeypatch):
    require("onnx")
    monkeypatch.setattr("agents.networks.onnx_graph._MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="too large for ONNX; backend=torch runs it"):
        publish(network, Variant(), "onnx")


def test_agents_name_their_backend():
    for backend in ("torch", "onnx-int8"):
        require(backend)
        agent = agents.make(f"zero-6x6:num_simulations=5,backend={backend}")
        assert agent.evaluate.backend.name == backend
        assert agent.select(Position(agent.variant), np.random.default_rng(1)).num_nodes == 5
    with pytest.raises(UsageError, match="unknown backend 'onxn'"):
        agents.make("zero-6x6:backend=onxn")
    with pytest.raises(UsageError, match="did you mean backend"):
        agents.make("zero-6x6:bakcend=onnx")


def test_half_precision_says_nearly_what_the_network_says(network):
    positions = some_positions(Variant())[:20]  # on a CPU, which is slow at it: a CUDA device is seldom at hand
    policy, value = NetworkEvaluator(TorchBackend(network, half=True))(*boards(positions), Variant())
    policies, values = expected(network, positions)
    np.testing.assert_allclose(policy, policies, atol=5e-3)
    np.testing.assert_allclose(value, values, atol=5e-3)
    assert np.abs(value - values).max() > 1e-6

"""The replay: what goes in comes out, under every symmetry; the oldest leave; nothing damaged is learned from."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file

from agents.manifest import CheckpointError, file_digest
from experiments.training.replay import Replay, ReplayConfig, Samples, check_shards, needed_shards
from reversi_env import Variant
from tests import oracle
from tests.experiments.played import samples_of

ALL = ReplayConfig(initial_window=10_000)


def as_mover_sees(position, mover):
    """The board with the discs of the side that moves at `mover` as X."""
    board = position.board if mover.is_black_to_move else position.board.translate(str.maketrans("XO", "OX"))
    return list(board)


@pytest.mark.parametrize("name", ["othello-4x4", "othello-6x6", "othello", "othello-10x10"])
def test_a_drawn_position_is_a_symmetric_image_of_one_that_was_added(name):
    variant = Variant.named(name)
    size = variant.size
    positions, ends, samples = samples_of(variant, 3, seed=1)
    replay = Replay(variant, ALL)
    replay.add(samples.at(slice(0, 20)))
    replay.add(samples.at(slice(20, None)))
    batch = replay.draw(400, np.random.default_rng(0))
    assert batch.planes.shape == (400, 3, size, size)
    rows = (batch.value.astype(float) * 1024).astype(int)
    assert len(set(rows)) > 50 or size == 4
    used = set()
    for index, row in enumerate(rows):
        planes, legal, policy = batch.planes[index], batch.legal[index], batch.policy[index]
        shown = [
            "X" if own else "O" if other else "-" for own, other in zip(planes[0].flat, planes[1].flat, strict=True)
        ]
        board = as_mover_sees(positions[row], positions[row])
        images = [k for k in range(8) if oracle.symmetry(board, k) == shown]
        assert images, "the planes are no image of the position"
        used.update(images)
        assert np.flatnonzero(planes[2]).tolist() == oracle.legal_squares(shown, "X")
        assert np.flatnonzero(legal[:-1]).tolist() == oracle.legal_squares(shown, "X")
        assert legal[-1] == positions[row].must_pass
        assert policy[-1] == samples.policy[row, -1]
        owner = ["-XO"[owner] for owner in batch.owner[index]]
        end = as_mover_sees(ends[row], positions[row])
        assert any(
            oracle.symmetry(samples.policy[row, :-1].tolist(), k) == policy[:-1].tolist()
            and oracle.symmetry(end, k) == owner
            for k in images
        )
        score = oracle.score(end, "X")
        assert (batch.score[index], batch.result[index]) == (score, (score > 0) - (score < 0))
        assert batch.policy_weight[index] == 1
    assert used == set(range(8))


def test_the_oldest_positions_leave_first_and_the_window_begins_within_a_round():
    variant = Variant.named("othello-4x4")
    _, _, samples = samples_of(variant, 10, seed=3)
    replay = Replay(variant, ReplayConfig(initial_window=20, window_growth=0))
    for first, end in ((0, 15), (15, 30), (30, 35)):
        replay.add(samples.at(slice(first, end)))
        left = Samples.joined(list(replay.parts()))
        wanted = samples.at(slice(max(end - 20, 0), end))
        for name, array in wanted.arrays().items():
            assert (left.arrays()[name] == array).all()
        assert len(replay) == len(wanted)
        assert replay.num_positions == end
    assert replay.age == pytest.approx(15 / 20)  # fifteen of one round ago, five of the last
    drawn = np.bincount((replay.draw_samples(20_000, np.random.default_rng(1)).value * 1024).astype(int), minlength=35)
    assert not drawn[:15].any()
    assert abs(drawn[15:] - 1000).max() < 5 * 1000**0.5


def test_positions_are_drawn_in_no_order():
    variant = Variant.named("othello-4x4")
    _, _, samples = samples_of(variant, 4, seed=3)
    replay = Replay(variant, ALL)
    for first in range(0, 40, 10):
        replay.add(samples.at(slice(first, first + 10)))
    drawn = (replay.draw_samples(4000, np.random.default_rng(1)).value * 1024).astype(int)
    assert abs(np.corrcoef(drawn, np.arange(4000))[0, 1]) < 0.06  # four standard deviations


def test_batches_are_of_the_window_as_it_was_when_they_were_asked_for():
    variant = Variant.named("othello-4x4")
    _, _, samples = samples_of(variant, 4, seed=3)
    replay = Replay(variant, ReplayConfig(initial_window=10, window_growth=0))
    replay.add(samples.at(slice(0, 10)))
    batches = replay.batches(9000, 4, np.random.default_rng(1))  # two at a time do not fit
    drawn = [next(batches).value]
    replay.add(samples.at(slice(10, 20)))
    drawn += [batch.value for batch in batches]
    assert len(drawn) == 4
    assert {len(values) for values in drawn} == {9000}
    assert all(set((values * 1024).astype(int)) == set(range(10)) for values in drawn)
    assert (drawn[0] != drawn[1]).any()


def test_a_round_without_positions_is_a_round():
    variant = Variant.named("othello-4x4")
    _, _, samples = samples_of(variant, 1, seed=3)
    replay = Replay(variant, ALL)
    replay.add(Samples.empty(variant))
    assert (len(replay), replay.num_rounds, replay.age) == (0, 1, 0)
    replay.add(samples)
    replay.add(Samples.empty(variant))
    assert (len(replay), replay.num_rounds, replay.age) == (len(samples), 3, 1)


def test_the_window_grows_as_the_paper_says():
    config = ReplayConfig(initial_window=250_000, window_growth=0.4, window_exponent=0.75)
    assert [config.window(n) for n in (0, 7, 250_000)] == [0, 7, 250_000]  # all of them at first
    assert config.window(260_000) - 250_000 == pytest.approx(0.4 * 10_000, rel=0.01)  # its slope there
    # The paper's run: "about 22 million by the end", of 241 million samples (Wu 2019, sections 2 and 5.1).
    assert config.window(241_000_000) == pytest.approx(22_000_000, rel=0.06)
    still = replace(config, window_growth=0)
    assert still.window(10**9) == 250_000


@pytest.mark.parametrize(
    "fault", [{"initial_window": 0}, {"window_growth": 1.5}, {"window_exponent": 0}, {"window_exponent": 1.1}]
)
def test_a_window_that_cannot_be_is_refused(fault):
    with pytest.raises(ValueError, match=next(iter(fault))):
        ReplayConfig(**fault)


# On disk


@pytest.fixture
def variant():
    return Variant.named("othello-4x4")


@pytest.fixture
def replay(variant, tmp_path):
    """Three rounds, the first of which is not in the window any more."""
    _, _, samples = samples_of(variant, 20, seed=3)
    replay = Replay(variant, ReplayConfig(initial_window=25, window_growth=0), tmp_path / "replay")
    for first in (0, 20, 40):
        replay.add(samples.at(slice(first, first + 20)))
    return replay


def resumed(replay, tmp_path, arrays=None):
    again = Replay(replay.variant, replay.config, tmp_path / "replay")
    again.load_arrays(replay.arrays() if arrays is None else arrays)
    return again


def write_trainer(folder, replay):
    folder.mkdir(parents=True)
    arrays = {f"replay.{name}": array for name, array in replay.arrays().items()}
    save_file({**arrays, "learner.x": np.zeros(1)}, folder / "trainer.safetensors")
    return folder


def test_a_resumed_replay_draws_the_same(replay, tmp_path, variant):
    again = resumed(replay, tmp_path)
    _, _, samples = samples_of(variant, 3, seed=9)
    for _ in range(2):
        one, two = (each.draw(50, np.random.default_rng(5)) for each in (replay, again))
        assert (one.planes == two.planes).all()
        assert (one.policy == two.policy).all()
        assert (len(again), again.num_positions, again.age) == (len(replay), replay.num_positions, replay.age)
        replay.add(samples)
        again.add(samples)  # over the shard of that round


def test_arrays_that_mean_nothing_are_refused(replay, tmp_path):
    arrays = replay.arrays()
    for changed, sentence in (
        ({"rounds": arrays["rounds"][::-1].copy()}, "rounds or digests are none"),
        ({"rounds": arrays["rounds"].astype(np.int32)}, "rounds or digests are none"),
        ({"digests": arrays["digests"][:, :16]}, "rounds or digests are none"),
        ({"totals": np.array([2, 60])}, "counts 2 rounds of 60 positions, and has more"),
        ({"totals": np.array([3, 10])}, "counts 3 rounds of 10 positions, and has more"),
        ({"totals": np.zeros(3, np.int64)}, "the replay has .*expected"),
        ({"more": np.zeros(3)}, "the replay has digests, more, rounds, totals, expected digests, rounds, totals"),
    ):
        with pytest.raises(ValueError, match=sentence):
            resumed(replay, tmp_path, arrays | changed)


def test_a_shard_that_is_missing_or_damaged_is_named(replay, tmp_path):
    checkpoint = write_trainer(tmp_path / "checkpoint", replay)
    shard = tmp_path / "replay" / "000001"
    check_shards(checkpoint, tmp_path / "replay")
    path = shard / "positions.npy"
    content = path.read_bytes()
    for damaged in (content[:-1], content[:-1] + bytes([content[-1] ^ 1]), content + b"\0"):
        path.write_bytes(damaged)
        for read in (lambda: resumed(replay, tmp_path), lambda: check_shards(checkpoint, tmp_path / "replay")):
            with pytest.raises(CheckpointError, match=r"000001/positions\.npy is not the file that was saved"):
                read()
    path.unlink()
    with pytest.raises(CheckpointError, match=r"000001/positions\.npy cannot be read"):
        resumed(replay, tmp_path)
    path.write_bytes(content)
    resumed(replay, tmp_path)
    (shard / "manifest.json").write_text("[]")
    with pytest.raises(CheckpointError, match=r"000001/manifest\.json holds no JSON object"):
        resumed(replay, tmp_path)
    shutil.rmtree(shard)
    for read in (lambda: resumed(replay, tmp_path), lambda: check_shards(checkpoint, tmp_path / "replay")):
        with pytest.raises(CheckpointError, match=r"000001 is missing: the positions of round 1, which the checkpoint"):
            read()


@pytest.mark.parametrize("positions", [19, 21, 10**15, -1, "20", None])
def test_a_manifest_that_tells_of_another_number_is_refused_before_memory_is_taken(positions, replay, tmp_path):
    path = tmp_path / "replay" / "000001" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"positions": positions}))
    with pytest.raises(CheckpointError, match=r"does not hold the .* positions of which|holds no positions of"):
        resumed(replay, tmp_path)
    path.write_text(json.dumps(manifest | {"variant": {"size": 6}}))
    with pytest.raises(CheckpointError, match="holds no positions of othello-4x4"):
        resumed(replay, tmp_path)


ONE = np.uint64(1)


def with_changed(samples, name, change):
    array = samples.arrays()[name].copy()
    change(array)
    return replace(samples, **{name: array})


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("player", lambda a: a.__setitem__((7, 0), ~np.uint64(0)), "position 7: a square has two discs"),
        ("final_opponent", lambda a: a.__setitem__((7, 0), ~np.uint64(0)), "position 7: a square has two discs"),
        ("opponent", lambda a: a.__ior__(ONE << np.uint64(63)), "position 0: a disc lies beside the board"),
        ("opponent", lambda a: a.__imul__(np.uint64(0)), "position 0: it is over"),
        ("policy", lambda a: a.__imul__(np.float16(0.5)), "position 0: the policy does not sum to one"),
        ("policy", lambda a: a.__setitem__((3, 2), np.nan), "position 3: the policy is not within 0..1"),
        ("policy", lambda a: a.__setitem__((3, 16), 0.01), "position 3: the policy has a move that is not legal"),
        ("policy_weight", lambda a: a.__setitem__(3, np.inf), "position 3: the policy's weight is not finite"),
        ("policy_weight", lambda a: a.__setitem__(3, -1), "position 3: the policy's weight is not finite"),
        ("value", lambda a: a.__setitem__(3, 1.01), "position 3: the value is not within"),
        ("value", lambda a: a.__setitem__(3, np.nan), "position 3: the value is not within"),
        ("result", lambda a: a.__setitem__(3, 2), "position 3: the result is none of"),
        ("score", lambda a: a.__setitem__(3, -128), "position 3: the score is more than the board holds"),
    ],
)
def test_a_position_that_cannot_be_learned_from_is_refused(name, change, sentence, variant, tmp_path):
    _, _, samples = samples_of(variant, 3, seed=1)
    samples.check(variant)
    broken = with_changed(samples, name, change)
    with pytest.raises(ValueError, match=sentence):
        broken.check(variant)
    replay = Replay(variant, ALL, tmp_path / "replay")
    replay.add(broken)  # with a digest that is right
    with pytest.raises(CheckpointError, match=f"positions.npy cannot be learned from: {sentence}"):
        resumed(replay, tmp_path)


def test_arrays_of_another_board_are_refused(variant):
    _, _, samples = samples_of(variant, 1, seed=1)
    with pytest.raises(ValueError, match=r"player is uint64 \[\d+, 1\]; othello-10x10 has uint64 \[\d+, 2\]"):
        samples.check(Variant.named("othello-10x10"))
    with pytest.raises(ValueError, match=r"value is float16 \[(\d+)\]; othello-4x4 has float16 \[\d+\]"):
        replace(samples, value=samples.value[1:]).check(variant)
    with pytest.raises(ValueError, match=r"score is int16 .* has int8"):
        replace(samples, score=samples.score.astype(np.int16)).check(variant)


def test_shards_that_a_kept_checkpoint_needs_are_kept(replay, variant, tmp_path):
    def rounds():
        return sorted(int(folder.name) for folder in (tmp_path / "replay").iterdir())

    _, _, samples = samples_of(variant, 20, seed=4)
    assert rounds() == [0, 1, 2]
    checkpoint = write_trainer(tmp_path / "checkpoint", replay)
    assert list(needed_shards(checkpoint)) == [1, 2]
    for first in (0, 20, 40):
        replay.add(samples.at(slice(first, first + 20)))
    replay.prune([checkpoint])
    assert rounds() == [1, 2, 4, 5]  # the window lies in the last two
    check_shards(checkpoint, tmp_path / "replay")
    replay.prune([tmp_path / "nowhere"])
    assert rounds() == [4, 5]
    with pytest.raises(CheckpointError, match="000001 is missing"):
        check_shards(checkpoint, tmp_path / "replay")
    (checkpoint / "trainer.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match=r"trainer\.safetensors is no file of tensors"):
        needed_shards(checkpoint)
    replay.prune([checkpoint])
    assert rounds() == [4, 5]


def test_a_shard_is_an_array_that_any_reader_of_npy_reads(replay, variant, tmp_path):
    _, _, samples = samples_of(variant, 20, seed=3)
    rows = np.load(tmp_path / "replay" / "000001" / "positions.npy", allow_pickle=False)
    for name, array in samples.at(slice(20, 40)).arrays().items():
        assert (rows[name] == array).all()
    manifest = json.loads((tmp_path / "replay" / "000001" / "manifest.json").read_text())
    assert manifest["files"]["positions.npy"] == file_digest(tmp_path / "replay" / "000001" / "positions.npy")


def test_a_failed_write_leaves_the_replay_as_it_was(replay, variant, tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    _, _, samples = samples_of(variant, 2, seed=4)
    before = replay.arrays()
    monkeypatch.setattr("experiments.training.replay.json.dumps", full)
    with pytest.raises(OSError, match=r"No space left .*/000003"):
        replay.add(samples)
    assert all((array == before[name]).all() for name, array in replay.arrays().items())
    assert sorted(folder.name for folder in (tmp_path / "replay").iterdir()) == ["000000", "000001", "000002"]

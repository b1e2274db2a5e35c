"""What holds of every model."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

import prlstm
from prlstm import models, tasks
from prlstm.models import Model
from prlstm.models.reading import Reading
from prlstm.tree import Plan
from tests.compare import TOLERANCE, assert_rel

SMALL: dict[str, dict[str, object]] = {
    "pr_lstm": {"hidden_size": 9},
    "pr_rnn": {"hidden_size": 9},
    "pr_gru": {"hidden_size": 9},
    "rnn": {"hidden_size": 9},
    "lstm": {"hidden_size": 9},
    "gru": {"hidden_size": 9},
    "stack_rnn": {"hidden_size": 9, "stack_cell_size": 3},
    "stack_rnn lstm": {"hidden_size": 9, "stack_cell_size": 3, "controller": "lstm"},
    "stack_rnn small": {"hidden_size": 9, "stack_cell_size": 3, "stack_size": 4},
    "tape_rnn": {"hidden_size": 9, "memory_cell_size": 3, "mlp_sizes": (5, 4)},
    "tape_rnn small": {"hidden_size": 9, "memory_cell_size": 3, "memory_size": 5},
    "transformer_encoder": {},
    "transformer_encoder none": {"positions": "none"},
    "transformer_encoder rotary": {"positions": "rotary"},
    "transformer_encoder alibi": {"positions": "alibi"},
    "transformer_encoder relative": {"positions": "relative"},
    "transformer_encoder causal": {"causal": True},
    "transformer_encoder window": {"window": 5},
    "transformer": {},
    "transformer relative": {"positions": "relative"},
}
TRANSFORMER = {"embedding_size": 12, "num_layers": 2, "num_heads": 3}
CASES = list(SMALL)
TASKS = ["parity_check", "reverse_string", "compute_sqrt", "binary_addition"]
ON_A_TAPE = [case for case in CASES if case.split()[0] != "transformer"]
CAUSAL = [case for case in CASES if not case.startswith("transformer")]
CAUSAL.append("transformer_encoder causal")


def small(case: str, task: str = "reverse_string", seed: int = 0, **more: object) -> Model:
    name, chosen = case.split()[0], dict(SMALL[case])
    if name.startswith("transformer"):
        # a head of an even size, for rotary positions
        chosen = {**TRANSFORMER, **chosen}
    return models.build(name, task, seed=seed, dtype=torch.float64, **chosen, **more).eval()


def same(name: str, got: Tensor, want: Tensor, gradient: bool = False) -> None:
    assert_rel(name, got, want, TOLERANCE[torch.float64][gradient])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("task", TASKS)
def test_mixed_lengths_are_one_at_a_time(case: str, task: str) -> None:
    model = small(case, task)
    batch = model.task.sample(lengths=[5, 1, 9, 2, 9, 12], generator=torch.Generator())
    with torch.no_grad():
        mixed = model(batch.input, batch.lengths)
        assert mixed.shape == (*batch.target.shape, model.task.output_size)
        for row, n in enumerate(batch.lengths.tolist()):
            alone = model(batch.input[row : row + 1, :n])
            same(f"row {row}", mixed[row : row + 1, : alone.shape[1]], alone)


@pytest.mark.parametrize("case", ["tape_rnn", "stack_rnn"])
def test_mixed_lengths_beyond_the_published_sizes(case: str) -> None:
    """Every row has the memory that it has alone."""
    model = small(case, "parity_check")
    batch = model.task.sample(lengths=[40, 300, 255, 256], generator=torch.Generator())
    with torch.no_grad():
        mixed = model(batch.input, batch.lengths)
        for row, n in enumerate(batch.lengths.tolist()):
            same(f"row {row}", mixed[row : row + 1], model(batch.input[row : row + 1, :n]))


@pytest.mark.parametrize("case", CASES)
def test_padding_is_not_looked_at(case: str) -> None:
    model = small(case)
    words = torch.tensor([[0, 1, 1, 0, 0], [1, 1, 0, 1, 1]])
    other = torch.tensor([[0, 1, 1, 1, 1], [1, 1, 0, 1, 1]])
    with torch.no_grad():
        got, want = model(words, [3, 5]), model(other, torch.tensor([3, 5]))
    same("first row", got[0, :3], want[0, :3])
    same("second row", got[1], want[1])


@pytest.mark.parametrize("case", CASES)
def test_equal_lengths_need_no_lengths(case: str) -> None:
    model = small(case)
    words = torch.randint(2, (3, 6))
    with torch.no_grad():
        assert model(words, [6, 6, 6]).equal(model(words))
        assert model(words.int()).equal(model(words))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mixed", [False, True])
def test_stacked_seeds_are_lone_seeds(case: str, mixed: bool) -> None:
    alone = [small(case, seed=seed) for seed in range(3)]
    stacked, task = models.Stacked(alone).eval(), alone[0].task
    lengths = torch.tensor([[5, 1, 8], [8, 3, 2], [8, 8, 8]]) if mixed else torch.full((3, 3), 8)
    batch = task.sample(lengths=lengths.flatten(), generator=torch.Generator())
    words, target = (rows.view(3, 3, -1) for rows in (batch.input, batch.target))
    mask = batch.loss_mask.view(3, 3, -1)
    given = lengths if mixed else None
    forced = case not in ON_A_TAPE
    logits = stacked(words, given, target if forced else None)
    assert logits.shape == (3, 3, 8, 2)
    sum(tasks.loss(logits[seed], target[seed], mask[seed]) for seed in range(3)).backward()
    gradients = {name: weight.grad for name, weight in stacked.network.way.named_parameters()}
    for seed, model in enumerate(alone):
        want = model(
            words[seed], None if given is None else given[seed], target[seed] if forced else None
        )
        inside = mask[seed]
        same(f"logits {seed}", logits[seed][inside], want[inside])
        tasks.loss(want, target[seed], inside).backward()
        for name, weight in model.network.named_parameters():
            got = gradients[name]
            assert got is not None
            assert weight.grad is not None, name
            same(f"{seed} {name}", got[seed], weight.grad, gradient=True)


@pytest.mark.parametrize("case", CASES)
def test_stacked_seeds_answer_on_their_own(case: str) -> None:
    """Without targets, as in evaluation; and the models come back whole."""
    alone = [small(case, seed=seed) for seed in range(2)]
    stacked = models.Stacked(alone).eval()
    words = torch.randint(2, (2, 3, 5))
    with torch.no_grad():
        logits = stacked(words)
        for seed, (model, again) in enumerate(zip(alone, stacked.unstacked(), strict=True)):
            same(f"{seed}", logits[seed], model(words[seed]))
            assert not again.training
            assert again(words[seed]).equal(model(words[seed]))
            assert list(again.state_dict()) == list(model.state_dict())


@pytest.mark.parametrize("case", ["pr_lstm", "tape_rnn", "transformer_encoder causal"])
def test_stacked_seeds_feed_their_own_answers_back(case: str) -> None:
    alone = [small(case, seed=seed, autoregressive=True) for seed in range(2)]
    stacked = models.Stacked(alone)
    words, lengths = torch.randint(2, (2, 3, 5)), torch.tensor([[5, 2, 3], [1, 5, 5]])
    with torch.no_grad():
        logits = stacked(words, lengths)
        for seed, model in enumerate(alone):
            want = model(words[seed], lengths[seed])
            for row, n in enumerate(lengths[seed].tolist()):
                same(f"{seed} {row}", logits[seed, row, :n], want[row, :n])


def test_gradients_are_clipped_for_each_seed() -> None:
    alone = [small("pr_lstm", seed=seed) for seed in range(3)]
    stacked = models.Stacked(alone)
    words = torch.randint(2, (3, 4, 5))
    scale = torch.tensor([1.0, 1e-6, 50.0], dtype=torch.float64)
    (stacked(words).square().sum((1, 2, 3)) * scale).sum().backward()
    norms = stacked.clip_gradients(0.5)
    assert norms[1] < 0.5 < norms[2]
    for seed, model in enumerate(alone):
        (model(words[seed]).square().sum() * scale[seed]).backward()
        (norm,) = model.clip_gradients(0.5).tolist()
        assert norm == pytest.approx(norms[seed].item(), rel=1e-12)
        left = torch.cat([w.grad.flatten() for w in model.parameters() if w.grad is not None])
        assert float(left.norm()) == pytest.approx(min(norm, 0.5), rel=1e-12)
        for name, weight in model.network.named_parameters():
            got = stacked.network.way.get_parameter(name).grad
            assert got is not None
            assert weight.grad is not None
            same(name, got[seed], weight.grad, gradient=True)


def test_stacked_seeds_drop_differently() -> None:
    alone = [models.build("transformer_encoder", "parity_check", seed=0) for _ in range(2)]
    stacked = models.Stacked(alone).train()
    logits = stacked(torch.randint(2, (1, 3, 5)).expand(2, 3, 5))
    assert not logits[0].equal(logits[1])
    stacked.eval()
    logits = stacked(torch.randint(2, (1, 3, 5)).expand(2, 3, 5))
    assert logits[0].allclose(logits[1])


@pytest.mark.parametrize("case", CASES)
def test_save_load_save(case: str, tmp_path: Path) -> None:
    model = small(case, "stack_manipulation")
    models.save(model, tmp_path / "a")
    loaded = prlstm.load(tmp_path / "a")
    models.save(loaded, tmp_path / "b")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "config.json",
        "model.safetensors",
    ]
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert not loaded.training
    assert loaded.options == model.options
    words = model.task.sample(3, 6).input
    with torch.no_grad():
        assert loaded(words).equal(model(words))


@pytest.mark.parametrize("case", CAUSAL)
def test_causal_models_do_not_look_ahead(case: str) -> None:
    """In the cells of the tape: an answer depends on nothing behind it."""
    model = small(case, autoregressive=True)
    words = torch.randint(2, (2, 5))
    target = torch.randint(2, (2, 5))
    with torch.no_grad():
        before = model(words, target=target)
        for place in range(5):
            changed = target.clone()
            changed[:, place] = 1 - changed[:, place]
            after = model(words, target=changed)
            same(f"{place}", after[:, : place + 1], before[:, : place + 1])
            if place < 4:
                assert not after[:, place + 1].allclose(before[:, place + 1], atol=1e-12)


def test_the_decoder_does_not_look_ahead() -> None:
    model = small("transformer")
    words, target = torch.randint(2, (2, 5)), torch.zeros(2, 5, dtype=torch.long)
    with torch.no_grad():
        before = model(words, target=target)
        target[:, 3:] = 1
        after = model(words, target=target)
    same("earlier", after[:, :4], before[:, :4])
    assert not after[:, 4].allclose(before[:, 4], atol=1e-9)


@pytest.mark.parametrize("case", [*ON_A_TAPE, "transformer"])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.filterwarnings("ignore:autoregressive=True without causal")
def test_greedy_answers_are_fed_back(case: str, mixed: bool) -> None:
    """Answering on its own is being told its own answers."""
    model = small(case) if case == "transformer" else small(case, autoregressive=True)
    lengths = torch.tensor([4, 2, 5]) if mixed else None
    words = torch.randint(2, (3, 5))
    with torch.no_grad():
        greedy = model(words, lengths)
        again = model(words, lengths, greedy.argmax(-1))
        counts = [5, 5, 5] if lengths is None else lengths.tolist()
        for row, count in enumerate(counts):
            if case in CAUSAL or case == "transformer":
                same(f"row {row}", greedy[row, :count], again[row, :count])
            alone = model(words[row : row + 1, :count])
            same(f"row {row} alone", greedy[row : row + 1, :count], alone)
    assert greedy.shape == (3, 5, 2)


@pytest.mark.parametrize("case", ON_A_TAPE)
@pytest.mark.parametrize("computation", [1, 2])
def test_computation_cells(case: str, computation: int) -> None:
    model = small(case, computation=computation)
    words = model.task.sample(lengths=[4, 7, 2], generator=torch.Generator())
    with torch.no_grad():
        mixed = model(words.input, words.lengths)
        for row, n in enumerate(words.lengths.tolist()):
            alone = model(words.input[row : row + 1, :n])
            same(f"row {row}", mixed[row : row + 1, :n], alone)


@pytest.mark.parametrize(
    ("name", "length", "merges"),
    [("parity_check", 40, 40), ("bucket_sort", 40, Plan(80, start=40).merges)],
)
def test_only_what_is_read_is_computed(name: str, length: int, merges: int) -> None:
    model = models.build("pr_lstm", name, hidden_size=4)
    done = 0

    def count(module: object, inputs: tuple[Tensor, ...], output: object) -> None:
        nonlocal done
        done += inputs[0].shape[:-1].numel()

    model.network.layer.layers[0].compose.register_forward_hook(count)
    model(model.task.sample(3, length).input)
    # fewer: blocks of few tokens are looked up
    assert done <= 3 * merges


def test_mixed_rows_of_one_answer_need_no_other_prefix() -> None:
    model = models.build("pr_lstm", "parity_check", hidden_size=4)
    done = 0

    def count(module: object, inputs: tuple[Tensor, ...], output: object) -> None:
        nonlocal done
        done += inputs[0].shape[:-1].numel()

    model.network.layer.layers[0].compose.register_forward_hook(count)
    batch = model.task.sample(lengths=[40, 3, 17])
    model(batch.input, batch.lengths)
    # at most the blocks of 41 cells, and a fold at each of their levels but the highest
    assert done <= 3 * (20 + 10 + 5 + 2 + 1 + 5)


def test_seeds_and_global_numbers() -> None:
    state = torch.get_rng_state()
    first, again = (models.build("lstm", "parity_check", seed=3) for _ in range(2))
    assert torch.get_rng_state().equal(state)
    other = models.build("lstm", "parity_check", seed=4)
    weights = [model.network.cell.weight_state for model in (first, again, other)]
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])


@pytest.mark.parametrize("length", [5, 127, 128, 300])
def test_memories_hold_the_longest_words(length: int) -> None:
    stack, ring = (small(name, "parity_check").network for name in ("stack_rnn", "tape_rnn"))
    x = torch.zeros(1, length + 1, 3, dtype=torch.float64)
    reading = Reading(length, length + 1, length, 1)
    with torch.no_grad():
        assert stack.states(x)[1].shape == (1, max(128, length + 1), 3)
        assert ring.states(x, reading)[1].shape == (1, max(256, length + 1), 3)

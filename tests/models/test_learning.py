"""Every model learns something; those with a memory learn what it is for."""

import pytest
import torch

from prlstm import models, tasks

FEW = {"hidden_size": 32}
SMALL_TRANSFORMER = {"embedding_size": 32, "num_layers": 2, "num_heads": 4, "dropout": 0.0}
SIZES: dict[str, dict[str, object]] = {
    name: SMALL_TRANSFORMER if name.startswith("transformer") else FEW for name in models.names()
}


@pytest.mark.parametrize("name", models.names())
def test_eight_words_are_learned_by_heart(name: str) -> None:
    task = tasks.get("reverse_string")
    batch = task.sample(8, 6, generator=torch.Generator().manual_seed(0))
    model = models.build(name, task, seed=0, **SIZES[name])
    rate = 2e-3 if name.startswith("transformer") else 1e-2
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(400):
        loss = tasks.loss(model(batch.input, target=batch.target), batch.target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if loss.item() < 0.01:
            break
    with torch.no_grad():
        logits = model.eval()(batch.input)
    assert tasks.accuracy(logits, batch.target, batch.mask) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stack_rnn", "tape_rnn"])
def test_memory_is_used(name: str) -> None:
    """Reversing words of up to 12 bits in training, of 20 to 30 afterwards."""
    task, generator = tasks.get("reverse_string"), torch.Generator().manual_seed(0)
    model = models.build(name, task, seed=0, hidden_size=64)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(500):
        length = int(torch.randint(1, 13, (), generator=generator))
        batch = task.sample(64, length, generator=generator)
        loss = tasks.loss(model(batch.input), batch.target)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        for length in (12, 20, 30):
            batch = task.sample(128, length, generator=generator)
            accuracy = tasks.accuracy(model(batch.input), batch.target, batch.mask)
            assert accuracy > 0.97, f"{length}: {accuracy:.3f}"

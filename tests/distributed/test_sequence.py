"""One sequence over several ranks: outputs, gradients, bytes, wrong use, ranks that are lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.sequence_ranks import ROOT, Group, together

EQUAL = (
    "equal_to_one_process",
    "equal_with_layers_and_cells",
    "equal_at_the_end",
    "equal_for_ids",
    "equal_in_parts_by_hand",
    "equal_from_a_state",
    "equal_where_merges_alone_are_trained",
    "equal_without_gradients",
    "equal_unbatched_and_time_first",
    "equal_in_half_precision",
    "bytes_do_not_grow",
    "work_is_counted",
    "wrong_use_is_named_on_every_rank",
    "weights_that_differ_are_not_summed",
)
MODELS = (
    "data_parallel",
    "fully_sharded",
    "split_sequence_in_data_parallel",
    "split_sequence_fully_sharded",
)
# of these rank 1 is lost
LOST = (
    "a_rank_that_dies_is_an_error",
    "a_rank_that_dies_before_going_backward_is_an_error",
    "a_rank_that_hangs_is_an_error",
    "a_rank_that_dies_is_an_error_to_all_who_stay",
)
GROUPS = [
    Group(2, 20, EQUAL + MODELS),
    Group(3, 20, EQUAL),
    Group(4, 20, EQUAL),
    Group(3, 20, LOST[:1]),
    Group(2, 20, LOST[1:2]),
    Group(2, 4, LOST[2:3]),
    Group(4, 4, LOST[3:]),
]

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str], list[str]]:
    folder: Path = tmp_path_factory.mktemp("ranks")
    return together(folder, GROUPS)


@pytest.mark.parametrize(
    ("world", "case"), [(group.world, case) for group in GROUPS for case in group.cases]
)
def test_ranks(world: int, case: str, found: dict[tuple[int, str], list[str]]) -> None:
    said = found[world, case]
    if case in LOST:
        assert "did not come so far" in said.pop(1)
    wrong = [one for one in said if one]
    assert not wrong, "\n".join(wrong)


def test_the_example_runs_under_torchrun() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, str(ROOT / "examples" / "split_sequence.py")],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "The gradients are those of one process." in done.stdout
    assert "rank 1: tokens 5120 to 10006" in done.stdout

"""Where a long sequence is cut: pieces of whole blocks, as large as they may be."""

from hypothesis import given
from hypothesis import strategies as st

from prlstm.tree import cut

SIZES = st.integers(1, 5000)


def power(n: int) -> int:
    """The largest power of two that is no more."""
    return 1 << n.bit_length() - 1


@given(SIZES, st.integers(0, 5000), SIZES, st.integers(1, 300), st.integers(0, 4))
def test_pieces_are_the_sequence_and_none_is_too_large(
    length: int, count: int, start: int, most: int, level: int
) -> None:
    start, block = min(start, length) - 1, 1 << level
    pieces = cut(length, count=count, start=start, most=most, block=block)
    assert [t for piece in pieces for t in piece] == list(range(length))
    for piece in pieces:
        # the last prefix of a piece is read by the next one
        looked_up = piece[:-1][: max(0, start - piece.start)]
        read = len(piece) - len(looked_up)
        if (count + piece.start) % block:
            assert len(piece) < block
        else:
            assert len(looked_up) // block + read <= most


@given(SIZES, st.integers(0, 5000), st.integers(1, 300), st.integers(0, 4), st.booleans())
def test_pieces_are_of_whole_blocks(
    length: int, count: int, most: int, level: int, last: bool
) -> None:
    """But for the last, a piece ends where a block as large as what it may hold does."""
    block = 1 << level
    *pieces, _ = cut(length, count=count, start=length - 1 if last else 0, most=most, block=block)
    size = power(most) * (block if last else 1)
    for piece in pieces:
        is_aligned = (count + piece.start) % block == 0
        assert (count + piece.stop) % (size if is_aligned else block) == 0
    assert len(pieces) <= 1 + -(-length // size)


def test_a_sequence_that_fits_is_one_piece() -> None:
    assert cut(100, count=3, start=0, most=100, block=1) == [range(100)]
    assert cut(799, count=8, start=798, most=100, block=8) == [range(799)]
    assert cut(100, count=3, start=99, most=100, block=8) == [range(5), range(5, 100)]

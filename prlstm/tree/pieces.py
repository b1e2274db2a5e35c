"""Where a long sequence is cut, so that memory does not grow with its length: integers only."""


def cut(length: int, *, count: int, start: int, most: int, block: int) -> list[range]:
    """The pieces of `length` tokens behind `count` others, of which prefixes are read from `start`.

    A piece holds no more than `most` states: one for each token from `start` on, and one for each
    `block` of tokens before, since these are looked up. All pieces but the last end where blocks of
    the whole sequence do, so together they make the same tree.

    >>> cut(40, count=3, start=39, most=16, block=1)
    [range(0, 13), range(13, 29), range(29, 40)]
    >>> cut(40, count=3, start=39, most=4, block=4)
    [range(0, 1), range(1, 13), range(13, 29), range(29, 40)]
    """

    def states(stop: int) -> int:
        # of a piece the last prefix is always read, by the next one
        read = stop - min(max(start, begin), stop - 1)
        return (stop - begin - read) // block + read

    def multiple(size: int) -> int:
        return begin + size - (count + begin) % size

    found: list[range] = []
    begin = 0
    while begin < length:
        if (count + begin) % block:
            # nothing is looked up before a block of the whole sequence begins
            stop = multiple(block)
        elif states(length) <= most:
            stop = length
        else:
            size = block << most.bit_length() - 1
            while states(multiple(size)) > most:
                size //= 2
            stop = multiple(size)
        found.append(range(begin, min(stop, length)))
        begin = stop
    return found

"""All words of a length and how likely each is, written down from the rules of the benchmark.

Independent of the package: these are what its samplers are held against.
"""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

Words = dict[tuple[int, ...], Fraction]


def uniform(words: Iterator[tuple[int, ...]] | list[tuple[int, ...]]) -> Words:
    """Every word equally likely."""
    listed = list(words)
    return dict.fromkeys(listed, Fraction(1, len(listed)))


def mixed(cases: list[tuple[Fraction, Words]]) -> Words:
    """One of several cases."""
    total: Counter[tuple[int, ...]] = Counter()
    for share, words in cases:
        for word, chance in words.items():
            total[word] += share * chance
    return dict(total)


def free(size: int, length: int) -> Words:
    return uniform(product(range(size), repeat=length))


def simple_arithmetic(length: int) -> Words:
    n = length if length % 2 else length - 1
    alphabets = [range(5) if place % 2 == 0 else (5, 6, 7) for place in range(n)]
    return uniform(product(*alphabets))


def stacks(length: int) -> Words:
    sizes = range(1, length) if length > 1 else [1]
    return mixed(
        [
            (
                Fraction(1, len(sizes)),
                uniform(product(*[(0, 1)] * size, *[(2, 3, 4)] * (length - size))),
            )
            for size in sizes
        ]
    )


def expressions(n: int, operators: int) -> Words:
    opening, closing = (5 + operators,), (6 + operators,)
    if n <= 4:
        forms = {
            1: lambda d: (d,),
            2: lambda d: (6, d),
            3: lambda d: (*opening, d, *closing),
            4: lambda d: (*opening, 6, d, *closing),
        }
        return uniform([forms[n](digit) for digit in range(5)])
    total: Counter[tuple[int, ...]] = Counter()
    for size in range(1, n - 3):
        left, right = expressions(size, operators), expressions(n - 3 - size, operators)
        for (a, pa), (b, pb) in product(left.items(), right.items()):
            for operator in range(5, 5 + operators):
                chance = pa * pb * Fraction(1, operators * (n - 4))
                total[(*opening, *a, operator, *b, *closing)] += chance
    return dict(total)


def value(word: tuple[int, ...]) -> int:
    """By Python itself."""
    return eval("".join("01234+-()"[token] for token in word)) % 5


def equations(length: int) -> Words:
    if length < 3:
        return {(0,) * length: Fraction(1)}
    total: Counter[tuple[int, ...]] = Counter()
    for word, chance in expressions(length - 2, 2).items():
        for start in range(len(word)):
            place = start
            while word[place] > 4:
                place = (place + 1) % len(word)
            unknown = (*word[:place], 9, *word[place + 1 :], 10, value(word))
            total[unknown] += chance / len(word)
    return dict(total)


def duplicates(length: int) -> Words:
    if length == 1:
        return {(1,): Fraction(1)}
    half = length // 2
    words = []
    for bits, hole in product(product((0, 1), repeat=half), range(2 * half)):
        word = [*bits, *bits]
        word[hole] = 2
        words.append((*word, *[3] * (length % 2)))
    return uniform(words)


def nonzero(width: int) -> list[tuple[int, ...]]:
    return [bits for bits in product((0, 1), repeat=width) if any(bits)]


def operands(length: int) -> Words:
    if length < 3:
        return uniform([b for b in product((0, 1), repeat=length) if not all(b)])
    signs = range(1, length - 1)
    return mixed(
        [
            (
                Fraction(1, len(signs)),
                uniform([(*a, 2, *b) for a in nonzero(p) for b in nonzero(length - 1 - p)]),
            )
            for p in signs
        ]
    )


# every task, the words of a length, and the lengths whose words are few enough to count
EXPECTED = {
    "even_pairs": (lambda n: free(2, n), [1, 2, 3, 8]),
    "modular_arithmetic": (simple_arithmetic, [1, 2, 3, 4, 5]),
    "parity_check": (lambda n: free(2, n), [1, 2, 3, 8]),
    "cycle_navigation": (lambda n: free(3, n), [1, 2, 3, 5]),
    "stack_manipulation": (stacks, [1, 2, 3, 4, 5, 6]),
    "reverse_string": (lambda n: free(2, n), [1, 2, 3, 8]),
    "modular_arithmetic_brackets": (lambda n: expressions(n, 3), [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    "solve_equation": (equations, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    "duplicate_string": (lambda n: free(2, n), [1, 2, 3, 8]),
    "missing_duplicate_string": (duplicates, [1, 2, 3, 4, 5, 8, 9]),
    "odds_first": (lambda n: free(2, n), [1, 2, 3, 8]),
    "binary_addition": (operands, [1, 2, 3, 4, 5, 8]),
    "binary_multiplication": (operands, [1, 2, 3, 4, 5, 8]),
    "compute_sqrt": (lambda n: uniform(nonzero(n)), [1, 2, 3, 8]),
    "bucket_sort": (lambda n: free(5, n), [1, 2, 3, 4]),
}

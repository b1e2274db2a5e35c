"""Bracketed expressions modulo 5 as text: evaluated, and shown.

An expression is `d`, `-d`, `(d)`, `(-d)` or `(left op right)` with a digit d and an operator + - *.
"""

MODULUS = 5
# ids of the operators, behind those of the digits
PLUS, MINUS, TIMES = 5, 6, 7


def evaluate(text: str) -> int:
    """The value of an expression modulo 5; ValueError if it is none.

    What still waits for its right side or its bracket lies on a stack: whole numbers, operators,
    opening brackets.
    """
    waiting: list[int | str] = []
    for place, symbol in enumerate(text):
        if symbol.isdigit():
            # a minus that follows no operand is a sign
            if waiting[-1:] == ["-"] and not isinstance((waiting[-2:-1] or ["("])[0], int):
                waiting.pop()
                waiting.append(-int(symbol))
            else:
                waiting.append(int(symbol))
        elif symbol != ")":
            waiting.append(symbol)
        else:
            match waiting[-4:]:
                case [*_, "(", int(left), "+" | "-" | "*" as operator, int(right)]:
                    del waiting[-4:]
                    waiting.append(_apply(operator, left, right))
                case [*_, "(", int(alone)] if text[place - 1].isdigit():
                    del waiting[-2:]
                    waiting.append(alone)
                case _:
                    raise ValueError(f"no expression ends with the bracket at token {place}")
    match waiting:
        case [int(value)]:
            return value % MODULUS
    raise ValueError("expected one expression: d, -d, (d), (-d) or (left operator right)")


def _apply(operator: str, left: int, right: int) -> int:
    if operator == "+":
        return (left + right) % MODULUS
    return (left - right if operator == "-" else left * right) % MODULUS


def spaced(text: str) -> str:
    """An expression with spaces around the operators that join two sides."""
    shown = ""
    for before, symbol in zip(" " + text, text, strict=False):
        joins = symbol == "=" or (symbol in "+-*" and (before.isdigit() or before in "x)"))
        shown += f" {symbol} " if joins else symbol
    return shown

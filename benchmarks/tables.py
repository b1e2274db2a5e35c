"""How the tables of the documents are written."""

from measure import Row


def table(header: list[str], lines: list[list[str]], text: tuple[int, ...] = (0,)) -> str:
    """A table in Markdown: columns of text to the left, the others to the right."""
    rule = ["---" if column in text else "--:" for column in range(len(header))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *lines]) + "\n"


def machine(row: Row) -> str:
    """The hardware of a row."""
    return f"**{row['device']}**" + ("" if row["cuda"] else f" ({row['threads']} threads)")


def short(ms: float | None) -> str:
    """Milliseconds, to three digits."""
    return "" if ms is None else f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def met(reached: bool) -> str:
    """Whether an aim was reached."""
    return "reached" if reached else "**missed**"

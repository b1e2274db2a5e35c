"""What a chart shows, in words: for those who do not see it."""

from prlstm.report.chart import TOLD, Curve, Panel


def described(panel: Panel) -> str:
    """The axes, what they are compared with, and from where to where every curve goes."""
    said = [f"{panel.y} over {panel.x}{_scales(panel)}."]
    said += [
        f"Shaded: {name}, from {number(first)} to {number(last)}."
        for name, (first, last) in panel.bands.items()
    ]
    said += [f"Level: {name}, at {number(level)}." for name, level in panel.lines.items()]
    if not panel.curves:
        said.append("There are no curves yet.")
    return " ".join([*said, *map(_curve, panel.curves)])


def _scales(panel: Panel) -> str:
    logs = [name for name, log in (("x", panel.log_x), ("y", panel.log_y)) if log]
    return f" (logarithmic: {' and '.join(logs)})" if logs else ""


def _curve(curve: Curve) -> str:
    end = f", {TOLD[curve.end]}" if curve.end in TOLD else ""
    if not len(curve.x):
        return f"{curve.label}: no point{end}."
    first, last = (f"{number(curve.y[k])} at {number(curve.x[k])}" for k in (0, -1))
    if len(curve.x) == 1:
        return f"{curve.label}: {first}{end}."
    least, most = number(min(curve.y)), number(max(curve.y))
    return f"{curve.label}: from {first} to {last}, between {least} and {most}{end}."


def number(value: float) -> str:
    """A number with three digits or, if it is a whole one, all of them.

    >>> [number(value) for value in (0.98765, 1048576, 12.3456, 3.2e-7, 1234.5)]
    ['0.988', '1,048,576', '12.3', '3.2e-07', '1,234']
    """
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"

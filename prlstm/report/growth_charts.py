"""The pictures beside Table 1: work, depth and paths; times; gradients over the distance."""

import math
from collections.abc import Iterator, Mapping, Sequence

from prlstm.files import Row
from prlstm.report.chart import Chart, Curve, Panel
from prlstm.report.growth import LABELS, Machine, machines, points
from prlstm.tree.counts import Counts, Distance
from prlstm.tree.paths import Paths

RNN, ALL, LAST, TRANSFORMER = (
    LABELS[name] for name in ("lstm", "pr_lstm_all", "pr_lstm_last", "transformer_encoder")
)
MEAN, WORST, GUIDE = "PR-LSTM, mean over pairs", "PR-LSTM, worst pair", "log2 t"
NAMES: Mapping[str, str] = {
    "lstm": "LSTM", "pr_lstm": "PR-LSTM", "pr_rnn": "PR-RNN", "pr_gru": "PR-GRU",
    "rnn": "RNN", "gru": "GRU",
}  # fmt: skip


def paths_chart(counts: Sequence[Counts], length: int, distances: Sequence[Distance]) -> Chart:
    """What is counted: work and depth over the length, paths over the distance."""
    # one token costs nothing, which a logarithm does not show
    some = sorted((one for one in counts if one.length > 1), key=lambda one: one.length)
    x = [one.length for one in some]
    work = [
        Curve(RNN, x, x),
        Curve(ALL, x, [one.merges for one in some]),
        Curve(LAST, x, [one.merges_last for one in some]),
        Curve(TRANSFORMER, x, [n * n for n in x]),
    ]
    depth = [
        Curve(RNN, x, x),
        Curve(ALL, x, [one.depth for one in some]),
        Curve(LAST, x, [one.depth_last for one in some]),
        Curve(TRANSFORMER, x, [1] * len(x)),
    ]
    t = [one.distance for one in sorted(distances, key=lambda one: one.distance)]
    by = {one.distance: one for one in distances}
    highest = max(one.apart.most for one in distances)
    # an RNN's path leaves the picture where it would flatten all others
    near = [one for one in t if one <= highest]
    guides = [Curve(RNN, near, near), Curve(GUIDE, t, [math.log2(one) for one in t])]
    reach = [
        Curve(MEAN, t, [by[one].reach.mean for one in t]),
        Curve(WORST, t, [by[one].reach.most for one in t]),
    ]
    apart = [
        Curve(MEAN, t, [by[one].apart.mean for one in t]),
        Curve(WORST, t, [by[one].apart.most for one in t]),
    ]
    units, distance = "merges (steps, pairs)", f"distance t (tokens), T = {length:,}"
    panels = [
        Panel("Work", "length T (tokens)", units, work, log_x=True, log_y=True),
        Panel("Depth", "length T (tokens)", units, depth, log_x=True, log_y=True),
        Panel("Path to the state t tokens later", distance, "merges (steps)",
              [*guides, *reach], log_x=True),
        Panel("Path between two tokens, up and down", distance, "merges (steps)",
              [*guides, *apart], log_x=True),
    ]  # fmt: skip
    return Chart("Counted in the tree", panels, columns=2)


def times_chart(rows: Sequence[Row]) -> Chart:
    """Milliseconds over the length, a panel for each machine and size."""
    panels = [_of_machine(rows, place) for place in machines(rows)]
    return Chart("Time of an inference, batch 1", panels, columns=2)


def _of_machine(rows: Sequence[Row], place: Machine) -> Panel:
    curves = []
    for name, label in LABELS.items():
        measured = points(rows, place, name)
        x, y = ([one[index] for one in measured] for index in (0, 1))
        curves.append(Curve(label, x, y))
    title = place.said.replace(", hidden", ",\nhidden") if len(place.said) > 45 else place.said
    return Panel(title, "length T (tokens)", "time (ms)", curves, log_x=True, log_y=True)


def gradients_chart(rows: Sequence[Row]) -> Chart:
    """Norms over the distance; below them the merges in between, for the same words."""
    groups: dict[tuple[str, int, int], list[Row]] = {}
    for row in rows:
        whose = "fresh weights" if row["run"] is None else row["run"]
        size = row["hidden_size"] if row["run"] is None else 0
        groups.setdefault((whose, size, row["length"]), []).append(row)
    panels = [_of_norms(group) for _, group in sorted(groups.items(), key=_fresh_first)]
    lengths = sorted({len(row["norms"]) for row in rows})
    merges = [_merges(length) for length in lengths]
    tree = Panel("The tree", "distance T - t (tokens)", "merges from x_t to h_T", merges)
    return Chart("What is left of a token in the last state", [*panels, tree])


def _fresh_first(group: tuple[tuple[str, int, int], list[Row]]) -> tuple[bool, str, int, int]:
    (whose, size, length), rows = group
    return rows[0]["run"] is not None, whose, size, length


def _of_norms(rows: Sequence[Row]) -> Panel:
    first, by_model = rows[0], dict[str, list[Row]]()
    for row in rows:
        by_model.setdefault(row["model"], []).append(row)
    curves = [
        Curve(NAMES.get(name, name), range(len(some[0]["norms"])), list(_together(some)))
        for name, some in sorted(by_model.items(), reverse=True)
    ]
    length = len(first["norms"])
    if first["run"] is None:
        title = f"T = {length}, fresh, hidden size {first['hidden_size']}"
    else:
        title = f"T = {length}, trained:\n{first['run']}"
    return Panel(title, "distance T - t (tokens)", "norm of d h_T / d x_t", curves, log_y=True)


def _together(rows: Sequence[Row]) -> Iterator[float]:
    """The root of the mean square over seeds; of weights measured again, all measurements."""
    for norms in zip(*(row["norms"] for row in rows), strict=True):
        yield math.sqrt(sum(norm * norm for norm in norms) / len(norms))


def _merges(length: int) -> Curve:
    paths = Paths(length)
    merges = [paths.reach(length - distance, length) for distance in range(length)]
    return Curve(f"merges, T = {length}", range(length), merges)

"""Tables of one sequence over several devices: what was measured, and the model fitted on it.

The time of a rank is that of its own work and of the exchanges, one after the other:

    work       call x merge calls + merge x (leaves and merges), times ranks for each core
    exchange   (world - 1) x (hop + bytes / bandwidth), as in a ring, for each collective

`call` and `merge` are fitted for each way to read, on how long the busiest rank had a processor;
`hop` and `bandwidth` on the time of exchanges alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

import numpy as np
from measure import Row
from tables import machine, short, table

from prlstm.distributed import partition
from prlstm.distributed.sequence.ranks import HEADER
from prlstm.distributed.sequence.work import Work, work
from prlstm.tree import Plan

WAYS = {"last": "last state", "all": "all states", "train": "training"}
# what the model is fitted on; all else that was measured checks it
FITTED_WORLDS, FITTED_LENGTHS = (1, 2), (4096, 16_384)
WORLDS = (2, 8, 64, 256, 1024)
LENGTHS = (10**6, 10**8, 10**10)
# of links between GPUs nothing was measured: assumed, a hop in ms and bytes in a ms
ASSUMED_HOP, ASSUMED_BANDWIDTH = 0.01, 25e6
# bytes of a GPU's memory, and of a token of 8 features in float32
MEMORY, TOKEN = 141e9, 32


@dataclass(frozen=True)
class Link:
    """One step of an exchange: milliseconds, and bytes in a millisecond."""

    hop: float
    bandwidth: float

    def ms(self, world: int, sent: float) -> float:
        """One collective in which every rank sends so many bytes to all others."""
        return (world - 1) * (self.hop + sent / self.bandwidth)


@dataclass(frozen=True)
class Speed:
    """Milliseconds of one batched call, and of one merge or leaf in it."""

    call: float
    merge: float

    def ms(self, calls: float, merges: float) -> float:
        """Of so much work."""
        return self.call * calls + self.merge * merges


def fitted(rows: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Factors >= 0 of two columns whose sum has the least relative error to the third."""
    both = np.array([(a / ms, b / ms) for a, b, ms in rows])
    one = np.ones(len(rows))
    found = np.linalg.lstsq(both, one, rcond=None)[0]
    if min(found) < 0:
        # one of the two explains it better alone
        kept = int(np.argmax(found))
        found = np.zeros(2)
        found[kept] = np.linalg.lstsq(both[:, [kept]], one, rcond=None)[0][0]
    return float(found[0]), float(found[1])


def link_of(rows: list[Row]) -> Link:
    """Hop and bandwidth of exchanges between two ranks."""
    known = [r for r in rows if r["what"] == "exchange" and r["world"] == 2]
    hop, byte = fitted([(1, r["sent_bytes"], r["ms_least"]) for r in known])
    return Link(hop, 1 / byte)


def exchange_ms(link: Link, what: str, world: int, states: float, hidden: int) -> float:
    """All exchanges of one call: what must agree, the states, their gradients and the weights'."""
    sent = states * 2 * hidden * 4
    collectives = 1 + (what == "last")
    ms = link.ms(world, HEADER) + collectives * link.ms(world, sent / collectives)
    if what == "train":
        # the weights of a layer of 8 features, compared, then to and fro
        weights = 4 * (14 * hidden**2 + 24 * hidden + 12 * hidden)
        ms += link.ms(world, sent) + link.ms(world, HEADER) + 2 * link.ms(world, weights / world)
    return ms


def is_fitted(row: Row) -> bool:
    """Whether the model has seen this row."""
    return row["world"] in FITTED_WORLDS and row["length"] in FITTED_LENGTHS


def cpu_model(rows: list[Row]) -> tuple[Link, dict[str, Speed]]:
    """What was fitted on the rows of ranks on a CPU."""
    speeds = {}
    for what in WAYS:
        seen = [row for row in rows if row["what"] == what and is_fitted(row)]
        speeds[what] = Speed(
            *fitted([(r["calls"], r["tokens"] + r["merges"], r["processor_ms"]) for r in seen])
        )
    return link_of(rows), speeds


def worked(row: Row, speeds: dict[str, Speed]) -> float:
    """Milliseconds of a processor for a measured row, by the model."""
    return speeds[row["what"]].ms(row["calls"], row["tokens"] + row["merges"])


def lasted(row: Row, link: Link, speeds: dict[str, Speed]) -> float:
    """Milliseconds until the slowest rank has done, by the model."""
    sent = exchange_ms(link, row["what"], row["world"], row["states"], row["hidden_size"])
    return crowded(row) * (worked(row, speeds) + sent)


def crowded(row: Row) -> float:
    """By what all takes longer where there are more ranks than cores."""
    return max(1.0, row["world"] / row["cores"])


def split_rows(rows: list[Row]) -> list[Row]:
    """Those of ranks, not of a layer alone: of the newest that measure the same."""
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        if "world" in row:
            size = row["sent_bytes"] if row["what"] == "exchange" else row["length"]
            found[row["what"], row["world"], size] = row
    return list(found.values())


def exchange_table(rows: list[Row]) -> str:
    """One exchange alone."""
    found = [row for row in split_rows(rows) if row["what"] == "exchange" and row["world"] > 1]
    worlds = sorted({row["world"] for row in found})
    sizes = sorted({row["sent_bytes"] for row in found})
    at = {(row["world"], row["sent_bytes"]): row for row in found}
    lines = [
        [f"{size:,}", *(f"{short(at[world, size]['ms_least'])} ms" for world in worlds)]
        for size in sizes
    ]
    header = ["bytes sent by each rank", *(f"{w} ranks" for w in worlds)]
    link, parts = link_of(found), [_head(found), table(header, lines), "\n"]
    for world in worlds:
        fit = " (fitted)" if world in FITTED_WORLDS else ""
        same = [row for row in found if row["world"] == world]
        wrong = [
            crowded(row) * link.ms(world, row["sent_bytes"]) / row["ms_least"] - 1 for row in same
        ]
        parts.append(
            f"- on {world} ranks{fit} the prediction of an exchange is wrong by {_said(wrong)}\n"
        )
    return "".join(parts)


def measured_table(rows: list[Row]) -> str:
    """Measured and predicted on a CPU, and how far they are apart."""
    known = split_rows(rows)
    link, speeds = cpu_model(known)
    found = [row for row in known if row["what"] in WAYS]
    worlds = sorted({row["world"] for row in found})
    at = {(row["what"], row["length"], row["world"]): row for row in found}
    lines = []
    for what, said in WAYS.items():
        for length in sorted({row["length"] for row in found}):
            some = [at[what, length, world] for world in worlds]
            cells = [
                f"{short(row['processor_ms'])} / {short(worked(row, speeds))}"
                + "*" * (not is_fitted(row))
                for row in some
            ]
            lines.append([said, f"{length:,}", *cells])
    header = ["what", "T", *(f"{world} rank{'s' * (world > 1)}" for world in worlds)]
    parts = [_head(found), table(header, lines), "\n"]
    for name, group in (
        ("on what was fitted", [row for row in found if is_fitted(row)]),
        ("on other lengths, 1 and 2 ranks",
         [r for r in found if r["world"] in FITTED_WORLDS and not is_fitted(r)]),
        ("on 3 and 4 ranks", [row for row in found if row["world"] not in FITTED_WORLDS]),
    ):  # fmt: skip
        if group:
            busy = _said([worked(row, speeds) / row["processor_ms"] - 1 for row in group])
            least, middle = (
                _said([lasted(row, link, speeds) / row[of] - 1 for row in group])
                for of in ("ms_least", "ms")
            )
            parts.append(
                f"- {name} ({len(group)} points) the prediction of a rank's work is wrong by "
                f"{busy}; that of the time until the slowest rank has done by {least}, compared "
                f"with the median repeat by {middle}\n"
            )
    loads = [row["load"] for row in found]
    parts.append(
        f"- during the measurement {min(loads):.0f} to {max(loads):.0f} processes wanted the "
        f"{found[-1]['cores']} cores, of all that the machine did\n"
    )
    speed = ", ".join(
        f"{WAYS[w]} {1e3 * s.call:.0f} µs a call and {1e3 * s.merge:.2f} µs a merge"
        for w, s in speeds.items()
    )
    parts.append(
        f"- fitted: {speed}; a hop {1e3 * link.hop:.0f} µs, {link.bandwidth / 1e6:.2f} GB/s\n"
    )
    return "".join(parts)


@cache
def slowest(length: int, world: int, *, last: bool) -> Work:
    """What the rank with the longest part does, the last of these."""
    lengths = [len(part) for part in partition(length, world)]
    rank = max(rank for rank in range(world) if lengths[rank] == max(lengths))
    return work(lengths, rank, last=last)


def prediction(
    link: Link, speeds: dict[str, Speed], hidden: int, needs: dict[str, float] | None = None
) -> str:
    """Seconds for 2 to 1,024 devices; in brackets where a part needs more memory than there is."""
    lines = []
    for what in speeds:
        for length in LENGTHS:
            cells = []
            for world in WORLDS:
                done = slowest(length, world, last=what == "last")
                ms = speeds[what].ms(done.calls, done.tokens + done.merges)
                ms += exchange_ms(link, what, world, done.states, hidden)
                cell = f"{ms / 1e3:,.0f} s" if ms >= 1e5 else f"{ms / 1e3:.2g} s"
                fits = needs is None or needs[what] * done.tokens <= MEMORY
                cells.append(cell if fits else f"({cell})")
            lines.append([WAYS[what], f"10^{len(str(length)) - 1}", *cells])
    return table(["what", "T", *(f"{world:,} devices" for world in WORLDS)], lines, text=(0, 1))


def cpu_prediction(rows: list[Row]) -> str:
    """The fitted model, further than anybody has measured."""
    known = split_rows(rows)
    found = [row for row in known if row["what"] in WAYS]
    link, speeds = cpu_model(known)
    return _head(found) + prediction(link, speeds, found[-1]["hidden_size"])


def gpu_prediction(rows: list[Row]) -> str:
    """The same for GPUs: the work as measured on one of them, the links assumed."""
    found = [
        row for row in rows
        if row["cuda"] and row.get("hidden_size") == 256 and row.get("ms") and row["what"] in WAYS
        and "length" in row
    ]  # fmt: skip
    found = [row for row in found if row["commit"] == found[-1]["commit"]]
    speeds, needs, errors = {}, {}, []
    for what in WAYS:
        same = [row for row in found if row["what"] == what]
        counted = [_alone(row) for row in same]
        speeds[what] = Speed(*fitted([(*c, r["ms"]) for c, r in zip(counted, same, strict=True)]))
        errors += [
            abs(speeds[what].ms(*c) / r["ms"] - 1) for c, r in zip(counted, same, strict=True)
        ]
        longest = max(same, key=lambda row: row["batch"] * row["length"])
        needs[what] = longest["peak_bytes"] / (longest["batch"] * longest["length"])
    # the end alone is read in chunks: nothing but the tokens must be there
    needs["last"] = TOKEN
    link = Link(ASSUMED_HOP, ASSUMED_BANDWIDTH)
    return (
        f"{machine(found[-1])} for each rank, hidden size 256, float32, batch 1, PyTorch "
        f"{found[-1]['torch']}, commit {found[-1]['commit']}; on one device {len(errors)} measured "
        f"points, of which the fit is wrong by {_said(errors)}:\n\n"
        + prediction(link, speeds, 256, needs)
    )


def _alone(row: Row) -> tuple[float, float]:
    """Calls, merges and leaves of a layer on one device."""
    length = row["length"]
    plan = Plan(length, start=length - 1 if row["what"] == "last" else 0)
    return len(plan.steps), row["batch"] * (length + plan.merges)


def _said(errors: list[float]) -> str:
    """Relative errors in words."""
    sizes = [100 * abs(error) for error in errors]
    return f"{median(sizes):.0f} % (median), {max(sizes):.0f} % (worst)"


def _head(rows: list[Row]) -> str:
    known = rows[-1]
    commits = " and ".join(dict.fromkeys(row["commit"] for row in rows))
    size = (
        f", hidden size {known['hidden_size']}, batch 1, float32" if "hidden_size" in known else ""
    )
    return (
        f"**{known['device']}** ({known['cores']} cores, one thread for each rank){size}, "
        f"PyTorch {known['torch']}, commit {commits}:\n\n"
    )

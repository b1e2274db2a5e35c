"""Tables of the kernels' rows: the block, whole trees beside cuDNN, aims, scores."""

from measure import Row
from tables import machine, met, short, table

KERNELS = {
    "lookup": "tokens to the last state, leaves looked up",
    "latency": "last state",
    "training": "training, all prefixes",
    "training checkpoint": "training, `checkpoint=True`",
}
GIGABYTE = 1e9
WAYS = ("captured", "compiled", "called")


def kernel_tables(rows: list[Row]) -> str:
    """The gated block, and whole trees beside cuDNN: the rows of the last commit."""
    rows = [row for row in rows if row["commit"] == rows[-1]["commit"]]
    known = rows[-1]
    lines = [
        [r["what"].removeprefix("block "), str(r["hidden_size"]), r["precision"],
         f"{r['ms']:.2f}", f"{r['tflops']:.0f}", f"{r['error']:.0e}"]
        for r in rows if "tflops" in r
    ]  # fmt: skip
    header = ["block", "hidden size", "products", "ms for 2^20 rows", "TFLOP/s", "relative error"]
    text = f"{machine(known)}, PyTorch {known['torch']}, commit {known['commit']}:\n\n"
    text += table(header, lines, text=(0, 2)) + "\n"
    lines = []
    for row in rows:
        if "tflops" in row:
            continue
        is_cudnn = row["what"].endswith("cudnn")
        name = KERNELS[row["what"].removesuffix(" cudnn")]
        who = f"{'cuDNN, ' if is_cudnn else ''}{row['precision']}, {row['how']}"
        peak = f"{row['peak_bytes'] / GIGABYTE:.2f} GB" if row["how"] == "called" else ""
        error = f"{row['error']:.0e}" if "error" in row else ""
        lines.append(
            [name, f"{row['batch']:,}", f"{row['length']:,}", who, short(row["ms"]), peak, error]
        )
    header = ["what", "batch", "T", "how", "ms", "peak memory", "relative error"]
    return text + table(header, lines, text=(0, 3))


def target_table(rows: list[Row]) -> str:
    """What was aimed at, beside what the rows of the last commit say."""
    rows = [row for row in rows if row["commit"] == rows[-1]["commit"]]

    def row(what: str, batch: int | None = None, **named: object) -> Row | None:
        wanted = {"what": what, **({} if batch is None else {"batch": batch}), **named}
        fitting = (r for r in rows if all(r.get(key) == value for key, value in wanted.items()))
        return next(fitting, None)

    def times(what: str, batch: int | None = None, **named: object) -> dict[str, float]:
        """Milliseconds of each way, as far as it was measured."""
        found = {how: row(what, batch, how=how, **named) for how in WAYS}
        return {how: one["ms"] for how, one in found.items() if one is not None}

    def rate(hidden: int) -> float:
        found = row("block n=2", hidden_size=hidden, precision="bfloat16")
        assert found is not None
        return float(found["tflops"])

    peak = row("lookup", how="called")
    assert peak is not None
    gigabytes = peak["peak_bytes"] / GIGABYTE
    lines = [
        ["block n = 2, bfloat16", ">= 420 TFLOP/s (450 the stretch)", f"{rate(256):.0f}",
         met(rate(256) >= 420)],
        ["last state, batch 1024, T = 2048, leaves looked up", "<= 9 ms, <= 6 GB",
         f"{_each(times('lookup'), 'ms')}, {gigabytes:.1f} GB",
         _verdict({how: ms <= 9 and gigabytes <= 6 for how, ms in times("lookup").items()})],
        ["last state, batch 1, T = 16,384", "<= 0.25 ms", _each(times("latency"), "ms"),
         _verdict({how: ms <= 0.25 for how, ms in times("latency").items()})],
    ]  # fmt: skip
    for batch, length, target in ((16, 8192, 15), (1024, 2048, 1.2)):
        ours = times("training", batch)
        for kind in ("float32", "bfloat16"):
            theirs = times("training cudnn", batch, precision=kind)
            # like with like, as far as cuDNN was captured too
            ratios = {how: theirs.get(how, theirs["called"]) / ms for how, ms in ours.items()}
            lines.append(
                [f"training, batch {batch}, T = {length:,}, against cuDNN in {kind}",
                 f">= {target} x faster", _each(ratios, "x"),
                 _verdict({how: ratio >= target for how, ratio in ratios.items()})]
            )  # fmt: skip
    memory = row("training", 1024, how="called")
    assert memory is not None
    taken, ratio = memory["peak_bytes"] / GIGABYTE, rate(256) / rate(137)
    lines += [
        ["the same, memory", "< 120 GB", f"{taken:.1f} GB", met(taken < 120)],
        ["hidden 137 against 256, time per FLOP", "<= 1.6 x", f"{ratio:.2f} x", met(ratio <= 1.6)],
    ]
    return table(["what", "aim", "measured", ""], lines, text=(0, 1, 2, 3))


def _each(values: dict[str, float], unit: str) -> str:
    return ", ".join(f"{short(value)} {unit} {how}" for how, value in values.items())


def _verdict(reached: dict[str, bool]) -> str:
    """One word where all say the same."""
    if len(set(reached.values())) == 1:
        return met(all(reached.values()))
    return ", ".join(f"{how}: {met(one)}" for how, one in reached.items())


def precision_table(rows: list[Row]) -> str:
    """Scores in each precision."""
    groups: dict[tuple[str, int, str], list[float]] = {}
    for row in rows:
        key = row["task"], row["steps"], row["precision"]
        groups.setdefault(key, []).append(row["score"])
    lines = [
        [
            f"`{task}`",
            f"{steps:,}",
            precision,
            ", ".join(f"{100 * value:.2f} %" for value in scores),
        ]
        for (task, steps, precision), scores in groups.items()
    ]
    known = rows[-1]
    return f"{machine(known)}, PyTorch {known['torch']}, commit {known['commit']}:\n\n" + table(
        ["task", "steps", "products", "scores"], lines, text=(0, 2, 3)
    )

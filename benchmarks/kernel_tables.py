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
        who = f"cuDNN, {row['precision']}" if is_cudnn else f"{row['precision']}, {row['how']}"
        peak = f"{row['peak_bytes'] / GIGABYTE:.2f} GB" if row["how"] == "called" else ""
        error = "" if is_cudnn else f"{row['error']:.0e}"
        lines.append(
            [name, f"{row['batch']:,}", f"{row['length']:,}", who, short(row["ms"]), peak, error]
        )
    header = ["what", "batch", "T", "how", "ms", "peak memory", "relative error"]
    return text + table(header, lines, text=(0, 3))


def target_table(rows: list[Row]) -> str:
    """What was aimed at, beside what the rows of the last commit say."""
    rows = [row for row in rows if row["commit"] == rows[-1]["commit"]]

    def row(what: str, batch: int | None = None, **named: object) -> Row:
        wanted = {"what": what, **({} if batch is None else {"batch": batch}), **named}
        return next(r for r in rows if all(r.get(key) == value for key, value in wanted.items()))

    big = row("block n=2", hidden_size=256, precision="bfloat16")
    small = row("block n=2", hidden_size=137, precision="bfloat16")
    lookup, called = row("lookup", how="captured"), row("lookup", how="called")
    latency = row("latency", how="captured")
    lines = [
        ["block n = 2, bfloat16", ">= 420 TFLOP/s", f"{big['tflops']:.0f}",
         met(big["tflops"] >= 420)],
        ["last state, batch 1024, T = 2048, leaves looked up", "<= 9 ms, <= 6 GB",
         f"{lookup['ms']:.1f} ms captured, {called['ms']:.1f} called, "
         f"{called['peak_bytes'] / GIGABYTE:.1f} GB",
         met(lookup["ms"] <= 9 and called["peak_bytes"] <= 6 * GIGABYTE)],
        ["last state, batch 1, T = 16,384", "<= 0.25 ms", f"{latency['ms']:.2f} ms captured",
         met(latency["ms"] <= 0.25)],
    ]  # fmt: skip
    for batch, length, target, how in ((16, 8192, 15, "captured"), (1024, 2048, 1.2, "called")):
        ours, plain = row("training", batch, how=how), row("training", batch, how="called")
        for kind in ("float32", "bfloat16"):
            ratio = row("training cudnn", batch, precision=kind)["ms"] / ours["ms"]
            also = f", {ratio * ours['ms'] / plain['ms']:.1f} x called" if how != "called" else ""
            lines.append(
                [f"training, batch {batch}, T = {length:,}, against cuDNN in {kind}",
                 f">= {target} x faster", f"{ratio:.2f} x {how}{also}", met(ratio >= target)]
            )  # fmt: skip
    ratio = big["tflops"] / small["tflops"]
    lines.append(
        ["hidden 137 against 256, time per FLOP", "<= 1.6 x", f"{ratio:.2f} x", met(ratio <= 1.6)]
    )
    return table(["what", "aim", "measured", ""], lines, text=(0, 1, 2, 3))


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

"""Tables of the fast paths: captured steps, looked-up blocks, streams, a CPU; and the aims."""

from measure import Row
from tables import machine, met, short, table

GIGABYTE = 1e9


def newest(rows: list[Row], *names: str) -> list[Row]:
    """Of rows that measure the same thing, those of the last commit that was measured."""
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        found[tuple(row.get(name) for name in names)] = row
    return list(found.values())


def head(rows: list[Row]) -> str:
    """Which machine, and which code."""
    known = rows[-1]
    commits = " and ".join(dict.fromkeys(row["commit"] for row in rows))
    return f"{machine(known)}, PyTorch {known['torch']}, commit {commits}:\n\n"


def step_table(rows: list[Row]) -> str:
    """Captured steps of training."""
    rows = [row for row in rows if row["what"] == "step"]
    rows = newest(rows, "device", "task", "model", "seeds", "lengths", "precision")
    lines = [
        [f"`{r['task']}`", f"`{r['model']}`", f"{r['seeds']}", r["lengths"], r["precision"],
         short(r["ms"]), short(r["ms_per_step_and_seed"]), f"{r['ready_s']:.1f} s",
         f"{r['difference']:.0e}" if "difference" in r else ""]
        for r in rows
    ]  # fmt: skip
    header = ["task", "model", "seeds", "lengths", "products", "ms a step", "ms a step and seed"]
    header += ["ready in", "weights differ by"]
    return head(rows) + table(header, lines, text=(0, 1, 4))


def token_table(rows: list[Row]) -> str:
    """Words to logits on a GPU, and scores."""
    rows = [row for row in rows if row["cuda"]]
    rows = newest(rows, "what", "how", "task", "batch", "length", "precision")
    lines = []
    for row in rows:
        if row["what"] == "score":
            known = ["460 lengths x 512 words", "", ""]
        else:
            known = ["words to logits", f"{row['batch']:,}", f"{row['length']:,}"]
        peak = row.get("peak_bytes_in_all")
        lines.append(
            [known[0], f"`{row['task']}`", *known[1:], f"{row['precision']}, {row['how']}",
             short(row["ms"]), f"{peak / GIGABYTE:.2f} GB" if peak else "",
             f"{row['error']:.0e}" if "error" in row else ""]
        )  # fmt: skip
    header = ["what", "task", "batch", "T", "how", "ms", "memory in all", "relative error"]
    return head(rows) + table(header, lines, text=(0, 1, 4))


def stream_table(rows: list[Row]) -> str:
    """Many streams, one token each at every step."""
    rows = [row for row in rows if row["cuda"]]
    rows = newest(rows, "what", "how", "streams")
    lines = [
        [f"`{r['what']}`" if "." in r["what"] else r["what"], f"{r['streams']:,}", r["how"],
         short(r["ms"]), f"{r['tokens_per_s'] / 1e6:.2f}", f"{r['error']:.0e}"]
        for r in rows
    ]  # fmt: skip
    header = ["what", "streams", "how", "ms a step", "million tokens/s", "relative error"]
    return head(rows) + table(header, lines, text=(0, 2))


CPU = {
    "training step": ("a training step, `parity_check`, batch 128, L = 40", 6.0, 51),
    "words to logits": ("words to logits, `parity_check`, batch 64, T = 500", 6.0, 86),
    "last state": ("last state, batch 1, T = 2048, float inputs", 2.6, None),
    "last state, nn.LSTM": ("the same, `nn.LSTM`", None, None),
}


def cpu_table(rows: list[Row]) -> str:
    """On a CPU, in multiples of one product."""
    rows = newest([row for row in rows if not row["cuda"]], "what", "device")
    lines = []
    for row in rows:
        name, aim, reference = CPU[row["what"]]
        reached = "" if aim is None else met(row["products"] <= aim)
        lines.append(
            [name, short(row["ms"]), short(row["product_ms"]), short(row["products"]),
             "" if aim is None else f"<= {aim}", reached, short(reference)]
        )  # fmt: skip
    header = ["what", "ms", "ms of a product", "products", "aim", "", "reference"]
    return head(rows) + table(header, lines, text=(0, 5))


def aim_table(rows: list[Row]) -> str:
    """What was aimed at on a GPU, beside the newest rows."""

    def row(what: str, **named: object) -> Row:
        wanted = {"what": what, **named}
        return [r for r in rows if r["cuda"] and all(r.get(k) == v for k, v in wanted.items())][-1]

    def step(task: str, seeds: int, lengths: str) -> float:
        found = row("step", task=task, seeds=seeds, lengths=lengths, precision="bfloat16")
        return float(found["ms_per_step_and_seed"])

    some = [r for r in rows if r["what"] == "step" and r["cuda"] and r["model"] == "pr_lstm"]
    some = [r for r in newest(some, "task", "seeds", "lengths", "precision") if r["seeds"] == 10]
    tasks = [r for r in some if "," in r["lengths"] and r["precision"] == "bfloat16"]
    slowest = max(tasks, key=lambda r: float(r["ms_per_step_and_seed"]))["task"]
    short_words = row("words to logits", length=2048, how="captured")
    called = row("words to logits", length=2048, how="called")
    long_words = row("words to logits", length=1 << 20)
    memory = long_words["peak_bytes_in_all"] / GIGABYTE
    scores = [
        row("score", task=t, precision="bfloat16") for t in ("parity_check", "duplicate_string")
    ]
    streams = [row("streams", how=how) for how in ("back to back", "called")]
    tokens = [r["tokens_per_s"] / 1e6 for r in streams]
    parts = [
        ("a training step, `parity_check`, mean over lengths 1 to 40, one seed", 0.35,
         step("parity_check", 1, "1-40")),
        ("the same, ten seeds, each", 0.08, step("parity_check", 10, "1-40")),
        ("a training step, `duplicate_string`, L = 40, ten seeds, each", 0.30,
         step("duplicate_string", 10, "40")),
    ]  # fmt: skip
    if any(r["task"] == slowest and r["lengths"] == "1-40" for r in some):
        parts.append(
            (f"the slowest of the 15 tasks, `{slowest}`, lengths 1 to 40, ten seeds, each", 0.35,
             step(slowest, 10, "1-40"))
        )  # fmt: skip
    lines = [[what, f"<= {aim} ms", f"{ms:.3f} ms", met(ms <= aim)] for what, aim, ms in parts]
    lines += [
        ["words to logits, `parity_check`, batch 1024, T = 2048", "<= 1.5 ms",
         f"{short_words['ms']:.2f} ms captured, {called['ms']:.2f} called",
         f"captured: {met(short_words['ms'] <= 1.5)}, called: {met(called['ms'] <= 1.5)}"],
        ["the same, T = 1,048,576", "<= 500 ms, <= 16 GB",
         f"{long_words['ms']:.0f} ms, {memory:.1f} GB",
         met(long_words["ms"] <= 500 and memory <= 16)],
    ]  # fmt: skip
    for score, aim in zip(scores, (1, 6), strict=True):
        seconds = score["ms"] / 1e3
        lines.append([f"a score, `{score['task']}`", f"<= {aim} s", f"{seconds:.2f} s",
                      met(seconds <= aim)])  # fmt: skip
    lines.append(
        ["1024 streams, a token each", ">= 1 million tokens/s",
         f"{tokens[0]:.2f} million, {tokens[1]:.2f} where each step is waited for",
         met(tokens[0] >= 1)]
    )  # fmt: skip
    for one in newest([r for r in rows if r["what"] == "start-up"], "model", "seeds"):
        lines.append(
            [f"start-up, all 40 lengths, `{one['model']}`, seeds: {one['seeds']}", "<= 30 s",
             f"{one['seconds']:.1f} s", met(one["seconds"] <= 30)]
        )  # fmt: skip
    stepped = row("layer.step")["tokens_per_s"] / 1e6
    lines.append(
        ["the same as a value, with `layer.step`", ">= 1 million tokens/s",
         f"{stepped:.2f} million", met(stepped >= 1)]
    )  # fmt: skip
    return table(["what", "aim", "measured", ""], lines, text=(0, 1, 2, 3))

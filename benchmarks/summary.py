"""The tables of the documents, made from the committed rows: `make results`."""

import dataclasses
import json
import re
from pathlib import Path

import torch
from fast_tables import aim_table, cpu_table, step_table, stream_table, token_table
from kernel_tables import kernel_tables, precision_table, target_table
from measure import Row
from result_tables import figure3, headline, picture, reproduction, shipped_table
from scale_tables import cpu_prediction, exchange_table, gpu_prediction, measured_table
from tables import machine, short, table

from prlstm import models, tasks
from prlstm.models.options import TapeOptions
from prlstm.report.rows import read_results

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
# of the experiments, which the package itself writes
SCORES = ROOT / "results" / "scores.jsonl"
FIGURE3 = ROOT / "results" / "figure3.jsonl"
PICTURE = ROOT / "docs" / "pictures" / "accuracy"
LENGTHS = (64, 1024, 16_384, 65_536)
COLUMNS = {
    "lstm": "`nn.LSTM`",
    "all": "all states",
    "last": "last state",
    "lstm train": "`nn.LSTM` training",
    "train": "training",
}
# how, length and batch of the columns for each kind of device
SAMPLERS = {
    True: [("eager", 40, 128), ("eager", 40, 4096), ("captured", 40, 4096), ("eager", 500, 4096),
           ("captured", 500, 4096)],
    False: [("eager", 40, 128), ("eager", 40, 4096), ("eager", 500, 128), ("eager", 500, 4096)],
}  # fmt: skip
HOW = {"eager": "", "captured": "replayed, "}


def newest(rows: list[Row], names: tuple[str, ...]) -> list[list[Row]]:
    """The rows of the last commit that was measured, for each device and the like."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if "length" in row:
            groups.setdefault(tuple(row[name] for name in names), []).append(row)
    same = ("commit", "torch")
    return [
        [row for row in group if all(row[name] == group[-1][name] for name in same)]
        for group in groups.values()
    ]


def cell(row: Row | None) -> str:
    """Time and peak memory."""
    if row is None:
        return ""
    if row["ms"] is None:
        return "out of memory" if row["failed"] == "out of memory" else "refused"
    ms = f"{row['ms']:,.0f}" if row["ms"] >= 100 else f"{row['ms']:.2g}"
    return f"{ms} ms, {row['peak_bytes'] / 2**20:,.0f} MB"


def layer_tables(rows: list[Row]) -> str:
    """Time and memory of the layer: one table for each device, batch and size."""
    parts = []
    for group in newest(rows, ("device", "batch", "hidden_size", "threads")):
        known = group[-1]
        found = {(row["length"], row["what"]): row for row in group}
        lines = [
            [f"{length:,}", *(cell(found.get((length, what))) for what in COLUMNS)]
            for length in LENGTHS
        ]
        parts.append(
            f"{machine(known)}, batch {known['batch']}, hidden size {known['hidden_size']}, "
            f"float32, PyTorch {known['torch']}, commit {known['commit']}:\n\n"
            + table(["T", *COLUMNS.values()], lines)
        )
    return "\n".join(parts)


def task_table(rows: list[Row]) -> str:
    """The tasks themselves."""
    header = ["task", "paper's name", "level", "in", "out", "answers to 40 tokens"]
    header += ["uniform", "constant", "position"]
    lines = []
    for task in map(tasks.get, tasks.names()):
        floors = (task.floors.uniform, task.floors.constant, task.floors.position)
        sizes = (task.input_size, task.output_size, task.output_length(40))
        guesses = [f"{100 * floor:.1f} %" for floor in floors]
        lines.append([f"`{task.name}`", task.paper_name, task.level, *map(str, sizes), *guesses])
    return table(header, lines, text=(0, 1, 2))


def sampler_tables(rows: list[Row]) -> str:
    """Thousands of samples per second: one table for each device."""
    parts = []
    for group in newest(rows, ("device", "threads")):
        known = group[-1]
        columns = SAMPLERS[known["cuda"] is not None]
        found = {(r["task"], r["way"], r["length"], r["batch"]): r for r in group}
        lines = [
            [f"`{name}`", *(f"{found[name, *one]['samples_per_s'] / 1e3:,.0f}" for one in columns)]
            for name in tasks.names()
        ]
        header = [f"{HOW[how]}length {length}, batch {batch:,}" for how, length, batch in columns]
        parts.append(
            f"{machine(known)}, PyTorch {known['torch']}, commit {known['commit']}:\n\n"
            + table(["task", *header], lines)
        )
    return "\n".join(parts)


def model_table(rows: list[Row]) -> str:
    """The models themselves."""
    lines = []
    for name, kind in models.MODELS.items():
        with torch.device("meta"):
            count = sum(
                weight.numel() for weight in models.build(name, "parity_check").parameters()
            )
        # those of the tape are the same for all
        tape = {field.name for field in dataclasses.fields(TapeOptions)}
        own = [field for field in dataclasses.fields(kind.options) if field.name not in tape]
        options = ", ".join(f"`{field.name}={field.default!r}`" for field in own)
        lines.append([f"`{name}`", kind.about, f"{count:,}", kind.depth, kind.work, options])
    header = ["model", "what it is", "parameters (`parity_check`)", "depth", "work"]
    return table([*header, "hyper-parameters"], lines, text=(0, 1, 5))


def model_speed_tables(rows: list[Row]) -> str:
    """Time and memory of the models: one table for each device."""
    parts = []
    for group in newest(rows, ("device", "threads", "task", "batch")):
        known = group[-1]
        found = {(r["model"], r["what"], r["length"], r["seeds"]): r for r in group}
        columns = list(dict.fromkeys((r["length"], r["seeds"], r["what"]) for r in group))
        header = [
            f"{what}, length {length}" + (f", {seeds} seeds" if seeds > 1 else "")
            for length, seeds, what in columns
        ]
        lines = [
            [f"`{name}`", *(cell(found.get((name, w, n, seeds))) for n, seeds, w in columns)]
            for name in models.names()
        ]
        parts.append(
            f"{machine(known)}, PyTorch {known['torch']}, commit {known['commit']}:\n\n"
            + table(["model", *header], lines)
        )
    return "\n".join(parts)


def training_tables(rows: list[Row]) -> str:
    """Milliseconds of a step and seed: one table for each device and precision."""
    parts = []
    for group in newest(
        [row for row in rows if row["what"] == "step"], ("device", "threads", "task", "precision")
    ):
        known = group[-1]
        found = {(r["model"], r["length"], r["seeds"]): r for r in group}
        columns = list(dict.fromkeys((r["length"], r["seeds"]) for r in group))
        lengths = list(dict.fromkeys(length for length, _ in columns))
        header = [
            "model",
            *(f"length {n}, {seeds} seed{'s' * (seeds > 1)}" for n, seeds in columns),
        ]
        header += [f"reference, length {n}" for n in lengths]
        lines = []
        for name in dict.fromkeys(row["model"] for row in group):
            ours = [found[name, n, seeds]["ms_per_step_and_seed"] for n, seeds in columns]
            theirs = [found[name, n, columns[0][1]]["reference_ms"] for n in lengths]
            lines.append([f"`{name}`", *(short(ms) for ms in [*ours, *theirs])])
        parts.append(
            f"{machine(known)}, `{known['task']}`, batch {known['batch']}, {known['precision']}, "
            f"PyTorch {known['torch']}, commit {known['commit']}"
            + ("" if known["cuda"] else f"; a product of 1024 x 1024: {known['product_ms']:.1f} ms")
            + f":\n\n{table(header, lines)}"
        )
    scored = (row for row in rows if row["what"] == "score")
    # of the same score the last row
    scores = {tuple(map(r.get, ("device", "threads", "model", "precision"))): r for r in scored}
    lines = [
        [machine(r), f"`{r['model']}`", r["precision"], f"{r['samples']}", f"{r['seconds']:.1f} s"]
        for r in scores.values()
    ]
    header = ["device", "model", "precision", "words of each of 460 lengths", "time"]
    return "\n".join(parts) + "\nA score:\n\n" + table(header, lines, text=(0, 1, 2))


# which part of which document is made of which rows
MADE = [
    (ROOT / "README.md", "headline", SCORES, headline),
    (ROOT / "docs" / "models.md", "shipped", SCORES, shipped_table),
    (ROOT / "docs" / "reproduction.md", "reproduction", SCORES, reproduction),
    (ROOT / "docs" / "reproduction.md", "figure3", FIGURE3, figure3),
    (ROOT / "README.md", "speed", "layer", layer_tables),
    (ROOT / "docs" / "tasks.md", "tasks", "tasks", task_table),
    (ROOT / "docs" / "tasks.md", "speed", "tasks", sampler_tables),
    (ROOT / "docs" / "models.md", "models", "models", model_table),
    (ROOT / "docs" / "models.md", "speed", "models", model_speed_tables),
    (ROOT / "docs" / "training.md", "speed", "training", training_tables),
    (ROOT / "docs" / "performance.md", "kernels", "kernels", kernel_tables),
    (ROOT / "docs" / "performance.md", "targets", "kernels", target_table),
    (ROOT / "docs" / "performance.md", "precision", "precision", precision_table),
    (ROOT / "docs" / "performance.md", "aims", "steps,tokens,streams", aim_table),
    (ROOT / "docs" / "performance.md", "tokens", "tokens", token_table),
    (ROOT / "docs" / "performance.md", "steps", "steps", step_table),
    (ROOT / "docs" / "performance.md", "streams", "streams", stream_table),
    (ROOT / "docs" / "performance.md", "cpu", "tokens", cpu_table),
    (ROOT / "docs" / "scale.md", "split", "distributed", measured_table),
    (ROOT / "docs" / "scale.md", "exchange", "distributed", exchange_table),
    (ROOT / "docs" / "scale.md", "split-cpu", "distributed", cpu_prediction),
    (ROOT / "docs" / "scale.md", "split-gpu", "layer", gpu_prediction),
]


def read(rows: str | Path) -> list[Row]:
    """The rows of the experiments, none before the first; or of some of the benchmarks by name."""
    if isinstance(rows, Path):
        return read_results(rows)
    files = [RESULTS / f"{name}.jsonl" for name in rows.split(",")]
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def updated(path: Path) -> str:
    """A document with its tables made anew."""
    text = path.read_text()
    for document, mark, rows, made in MADE:
        if document == path:
            new = made(read(rows))
            marked = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)", re.DOTALL)
            text, count = marked.subn(lambda found, new=new: found[1] + new + found[2], text)
            assert count == 1, f"{path}: expected one part marked {mark}"
    return text


if __name__ == "__main__":
    for path in dict.fromkeys(path for path, *_ in MADE):
        path.write_text(updated(path))
        print(f"{path}: tables made from rows")
    for path in picture(read(SCORES), PICTURE):
        print(path)

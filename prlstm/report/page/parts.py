"""The parts of the page: what each is called, and which command makes its rows."""

from dataclasses import dataclass

from prlstm.report.rows import CURVES, FIGURE3, GRADIENTS, GROWTH, SCALING, SCORES


@dataclass(frozen=True)
class Part:
    """One part; `name` is its anchor, `files` are those of rows that it is made of."""

    name: str
    title: str
    command: str
    files: tuple[str, ...]
    takes: str


PARTS = {
    part.name: part
    for part in (
        Part("table2", "Table 2: main results", "prlstm reproduce table2", (SCORES,),
             "15 tasks, 6 models, 10 seeds, 1M steps"),
        Part("table3", "Table 3: ablation", "prlstm reproduce table3", (SCORES,),
             "15 tasks, 7 variants, 10 seeds, 1M steps"),
        Part("others", "Other settings", "prlstm reproduce shipped", (SCORES, CURVES),
             "the small models that come with the package, one seed each"),
        Part("lengths", "Accuracy over length", "prlstm reproduce table2", (SCORES,),
             "the same rows"),
        Part("training", "Training curves", "prlstm reproduce table2", (CURVES,),
             "the same runs"),
        Part("figure3", "Figure 3: loss over time", "prlstm reproduce figure3 --all", (FIGURE3,),
             "15 tasks, 3 models, 40k steps, one at a time"),
        Part("figure4", "Figure 4: time and memory over length", "prlstm reproduce figure4",
             (SCALING,), "lengths 1 to 1,048,576, 1,024 words at once"),
        Part("table1", "Table 1: work, depth, paths, growth", "prlstm reproduce table1",
             (GROWTH, GRADIENTS), "minutes"),
    )
}  # fmt: skip
SMALLER = "prlstm reproduce table2 --models pr_lstm,lstm --budget 20m"

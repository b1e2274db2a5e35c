"""Values computed by the reference implementation, and how its weights are called here.

The small files are in `tests/data`; `PRLSTM_GOLDEN` may name a folder with all of them.
"""

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from prlstm import PRLSTM

FOLDERS = [Path(__file__).parent / "data", *map(Path, filter(None, [os.getenv("PRLSTM_GOLDEN")]))]
FILES = sorted(
    {path.stem: path for folder in FOLDERS for path in folder.glob("pr*_R*.npz")}.items()
)

# the reference's column blocks i, g, o, f.. in our order of rows f.., i, o, u
ROWS = {3: [0, 2, 1], 4: [3, 0, 2, 1], 5: [3, 4, 0, 2, 1]}
CELLS = {"prlstm": "lstm", "prrnn": "relu", "prgru": "gru"}


def rows_like_ours(reference: Tensor, hidden_size: int, cell: str) -> Tensor:
    """A reference weight [in, out] or bias [out], with our order of rows."""
    ours = reference.T if reference.dim() == 2 else reference
    if cell != "lstm":
        return ours
    gates = ours.unflatten(0, (-1, hidden_size))
    return gates[ROWS[len(gates)]].flatten(0, 1)


def arrays(name: str) -> dict[str, Tensor]:
    """The arrays of one file."""
    (path, *_) = [folder / f"{name}.npz" for folder in FOLDERS if (folder / f"{name}.npz").exists()]
    with np.load(path) as file:
        return {key: torch.from_numpy(file[key]) for key in file.files}


class Golden:
    """One file: a model, its weights, inputs, outputs and gradients."""

    def __init__(self, path: Path) -> None:
        self.arrays = arrays(path.stem)
        self.cell = CELLS[path.stem.split("_")[0]]
        self.hidden_size = int(self.arrays["hidden_size"])
        self.refine = int(self.arrays["num_layers"]) - 1
        self.lengths = self.arrays["lengths"].tolist()

    def __getitem__(self, key: str) -> Tensor:
        return self.arrays[key].double()

    def names(self) -> dict[str, str]:
        """Our parameter names, and the reference's."""
        ours = {"leaf": "embed", "compose": "comp"}
        ours |= {f"refine.{r}": f"refine{r + 1}" for r in range(self.refine)}
        names = {
            f"layers.0.{mine}.{full}": f"{theirs}_{short}"
            for mine, theirs in ours.items()
            for full, short in (("weight", "w"), ("bias", "b"))
        }
        if self.cell == "gru":
            del names["layers.0.compose.weight"]
            names["layers.0.compose.weight_left"] = "gru_w_i"
            names["layers.0.compose.weight_right"] = "gru_w_h"
            names["layers.0.compose.bias"] = "gru_b"
        return names

    def layer(self) -> PRLSTM:
        """Our layer with the reference's weights, in float64."""
        layer = PRLSTM(
            int(self.arrays["input_size"]),
            self.hidden_size,
            refine=self.refine,
            cell=self.cell,
            batch_first=True,
            dtype=torch.float64,
        )
        layer.load_state_dict({mine: self.ours(theirs) for mine, theirs in self.names().items()})
        return layer

    def ours(self, key: str) -> Tensor:
        """A reference array of the shape of a parameter, with our order of rows."""
        return rows_like_ours(self[key], self.hidden_size, self.cell)

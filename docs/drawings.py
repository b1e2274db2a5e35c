"""Makes the drawings of the documents, `docs/drawings/*.svg`: `python docs/drawings.py`.

Trees and blocks are the scenes of `prlstm reproduce figure1`; what a stream keeps and how far
neighbours are apart come from the tree itself. A test holds that the files are what this makes.
"""

from pathlib import Path

import torch
from svg import as_svg

from prlstm.report.blocks import EMBEDDING, MERGE, blocks_scene
from prlstm.report.drawing import tree_scene
from prlstm.report.figures import GREY
from prlstm.report.scene import Box, Line, Scene, Shape, Words
from prlstm.tree import Carry, Node, Plan, tree_extend
from prlstm.tree.paths import Paths

FOLDER = Path(__file__).parent / "drawings"
INK = "#000000"
# inches: of a column, a row, and what is left of the columns
PITCH, ROW, LEFT = 0.42, 0.3, 0.85
# tokens whose stream is drawn; tokens whose neighbours are compared
STREAMED, COMPARED = 13, 64


def stream_scene(tokens: int) -> Scene:
    """The blocks that wait for a partner after every token, and the count in binary digits."""
    digits = tokens.bit_length()
    height = ROW * (tokens + 1) + 0.2
    shapes: list[Shape] = [
        Words([(0.1, height - ROW / 2 - 0.05)], "tokens read", 8, GREY, "left"),
        Words(
            [(LEFT + PITCH * tokens + 0.25, height - ROW / 2 - 0.05)], "in binary", 8, GREY, "left"
        ),
    ]
    for count, carry in enumerate(_carries(tokens), 1):
        y = height - ROW * (count + 0.65)
        shapes.append(Words([(0.5, y)], f"{count}", 9, align="right"))
        for blocks in carry.blocks:
            if blocks is not None:
                first, last = (int(leaf) for leaf in blocks)
                fill, edge = EMBEDDING if first == last else MERGE
                left, right = LEFT + PITCH * (first - 1), LEFT + PITCH * last
                words = f"{first}" if first == last else f"{first}-{last}"
                corners = [(left + 0.03, y - 0.11), (right - 0.03, y + 0.11)]
                shapes.append(Box(corners, fill, edge, words, 8))
        written = format(count, f"0{digits}b")
        shapes.append(Words([(LEFT + PITCH * tokens + 0.25, y)], written, 9, align="left"))
    return Scene(LEFT + PITCH * tokens + 0.85, height, shapes)


def _carries(tokens: int) -> list[Carry]:
    """What a stream keeps after every token, each state being its first and its last leaf."""

    def merge(left: Node, right: Node) -> Node:
        return left[0], right[1]

    kept, carry = [], Carry()
    for leaf in range(1, tokens + 1):
        state = torch.tensor([leaf])
        _, carry = tree_extend(merge, (state, state), carry, dim=0)
        kept.append(carry)
    return kept


def borders_scene(tokens: int) -> Scene:
    """A bar between every two neighbours, as high as the merges that lie between them."""
    paths = Paths(tokens)
    apart = [paths.apart(token, token + 1) for token in range(1, tokens)]
    pitch, unit, left, low = 0.135, 0.17, 0.75, 0.5
    width, height = left + pitch * tokens + 0.15, low + unit * (max(apart) + 1)
    shapes: list[Shape] = []
    for merges in range(2, max(apart) + 1, 2):
        y = low + unit * merges
        shapes.append(Line([(left, y), (width - 0.15, y)], "#c9c9c9", 0.5))
        shapes.append(Words([(left - 0.1, y)], f"{merges}", 8, align="right"))
    for token, merges in enumerate(apart, 1):
        x = left + pitch * token
        fill, edge = EMBEDDING if merges == 2 else MERGE
        corners = [(x - 0.05, low), (x + 0.05, low + unit * merges)]
        shapes.append(Box(corners, fill, edge))
    shapes.append(Line([(left, low), (width - 0.15, low)], "#4a4a4a", 1))
    for token in range(8, tokens, 8):
        words = f"{token} | {token + 1}"
        shapes.append(Words([(left + pitch * token, low - 0.14)], words, 7))
    shapes.append(Words([(left + pitch * tokens / 2, 0.14)], "tokens on both sides", 8, GREY))
    shapes.append(Words([(0.1, height - 0.1)], "merges", 8, GREY, "left"))
    return Scene(width, height, shapes)


def drawings() -> dict[str, str]:
    """Every drawing by the name of its file."""
    scenes = {
        "tree-7": ("The tree of 7 tokens", tree_scene(Plan(7))),
        "tree-13": ("The tree of 13 tokens", tree_scene(Plan(13))),
        "last-13": ("What the last of 13 states needs", tree_scene(Plan(13, start=12))),
        "stream": ("What a stream keeps after every token", stream_scene(STREAMED)),
        "borders": ("How far neighbours are apart", borders_scene(COMPARED)),
        "blocks": ("An LSTM block beside a Transformer's", blocks_scene()),
    }
    return {f"{name}.svg": as_svg(scene, title) for name, (title, scene) in scenes.items()}


def main() -> None:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in drawings().items():
        (FOLDER / name).write_text(text)
        print(f"{FOLDER / name} written")


if __name__ == "__main__":
    main()

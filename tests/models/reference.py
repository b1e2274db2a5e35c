"""The reference's baselines: which network of ours each file is, and how its weights are called."""

import re

import torch
from torch import Tensor, nn

from prlstm import models
from tests.golden import arrays

# the reference's column blocks i, g, f, o in our order of rows i, f, g, o
GATES = [0, 2, 1, 3]
RECURRENT = ["rnn", "lstm", "gru", "stack_rnn", "stack_lstm", "tape_rnn"]
ENCODERS = ["none", "sin_cos", "rotary", "alibi", "relative", "sin_cos_causal"]

ATTENTION = {"q": "query", "k": "key", "v": "value", "o": "out"}


def scalar(golden: dict[str, Tensor], key: str) -> int:
    return int(golden[key])


def recurrent(name: str) -> tuple[nn.Module, dict[str, Tensor]]:
    """A recurrent network with the reference's weights, in float64, and the file."""
    golden = arrays(f"baselines_{name}")
    kind, chosen = name, {"hidden_size": scalar(golden, "hidden_size")}
    if name.startswith("stack"):
        kind = "stack_rnn"
        chosen |= {key: scalar(golden, key) for key in ("stack_cell_size", "stack_size")}
        chosen["controller"] = name.removeprefix("stack_")
    if name == "tape_rnn":
        chosen |= {key: scalar(golden, key) for key in ("memory_cell_size", "memory_size")}
        chosen["mlp_sizes"] = tuple(golden["mlp_layers_size"].tolist())
    return network(kind, golden, chosen), golden


def encoder(name: str) -> tuple[nn.Module, dict[str, Tensor]]:
    """A Transformer encoder with the reference's weights, in float64, and the file."""
    golden = arrays(f"baselines_transformer_encoder_{name}")
    chosen = transformer_sizes(golden)
    chosen |= {"positions": name.removesuffix("_causal"), "causal": bool(golden["causal"])}
    return network("transformer_encoder", golden, chosen), golden


def encoder_decoder() -> tuple[nn.Module, dict[str, Tensor]]:
    """Encoder and decoder with the reference's weights, in float64, and the file."""
    golden = arrays("baselines_transformer_sin_cos")
    return network("transformer", golden, transformer_sizes(golden)), golden


def transformer_sizes(golden: dict[str, Tensor]) -> dict[str, object]:
    names = {"embedding_dim": "embedding_size", "widening_factor": "widening"}
    keys = ("embedding_dim", "num_heads", "num_layers", "widening_factor")
    return {"dropout": 0.0} | {names.get(key, key): scalar(golden, key) for key in keys}


def network(kind: str, golden: dict[str, Tensor], chosen: dict[str, object]) -> nn.Module:
    made = models.kind(kind)
    sizes = (scalar(golden, key) for key in ("input_size", "output_size"))
    built = made.network(*sizes, made.options.read(kind, chosen)).double()
    ours = {name: weight for key in golden for name, weight in our_weights(golden, key)}
    built.load_state_dict(ours)
    return built


def our_weights(golden: dict[str, Tensor], key: str, prefix: str = "") -> list[tuple[str, Tensor]]:
    """What one array (or its gradient, with a prefix) is here: names and tensors."""
    array = golden.get(prefix + key, torch.empty(0)).double()
    array = array.T if array.dim() == 2 and key.endswith("_w") else array
    suffix = "bias" if key.endswith("_b") else "weight"
    simple = {
        "in_w": "cell.weight_input", "in_b": "cell.bias_input",
        "rec_w": "cell.weight_state", "rec_b": "cell.bias_state",
        "gru_w_i": "cell.block.weight_left", "gru_w_h": "cell.block.weight_right",
        "gru_b": "cell.block.bias",
    }  # fmt: skip
    if key in ("gru_w_i", "gru_w_h"):
        return [(simple[key], array.T)]
    if key in simple:
        return [(simple[key], array)]
    if key in ("gates_w", "gates_b"):
        hidden_size = scalar(golden, "hidden_size")
        array = array.unflatten(0, (4, hidden_size))[GATES].flatten(0, 1)
        if key == "gates_b":
            return [("cell.bias", array)]
        return [
            ("cell.weight_input", array[:, :-hidden_size]),
            ("cell.weight_state", array[:, -hidden_size:]),
        ]
    if re.fullmatch(r"(push|act)_[wb]", key):
        return [(f"{key[:-2]}.{suffix}", array)]
    if found := re.fullmatch(r"mlp(\d)_[wb]", key):
        return [(f"write.{found[1]}.{suffix}", array)]
    if key in ("readout_w", "readout_b"):
        transformer = "num_heads" in golden
        return [(f"readout.{'' if transformer else 'linear.'}{suffix}", array)]
    return _transformer_weights(key, array, suffix)


def _transformer_weights(key: str, array: Tensor, suffix: str) -> list[tuple[str, Tensor]]:
    found = re.fullmatch(r"(enc_|dec_)?(?:layer(\d)_)?(\w+)", key)
    assert found is not None, key
    side, layer, rest = found.groups()
    start = "" if side == "dec_" else "encoder."
    if rest == "emb_w" and layer is None:
        return [(f"{start}embedding.weight", array)]
    if layer is None:
        return []
    start += f"layers.{layer}."
    if part := re.fullmatch(r"ln(\d)_(scale|offset)", rest):
        kind = "weight" if part[2] == "scale" else "bias"
        return [(f"{start}norms.{int(part[1]) - 1}.{kind}", array)]
    if part := re.fullmatch(r"ff([12])_[wb]", rest):
        return [(f"{start}{'widen' if part[1] == '1' else 'narrow'}.{suffix}", array)]
    if part := re.fullmatch(r"(attn|self|cross)_([qkvo])_w", rest):
        where = "cross" if part[1] == "cross" else "attention"
        return [(f"{start}{where}.{ATTENTION[part[2]]}.weight", array)]
    if part := re.fullmatch(r"attn_(content|relative)_bias", rest):
        return [(f"{start}attention.relative.{part[1]}_bias", array)]
    assert rest == "attn_relkey_w", key
    return [(f"{start}attention.relative.key.weight", array)]

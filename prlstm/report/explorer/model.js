// A PR-LSTM: the gated block, leaves, merges and the read-out, as `prlstm.cells.gated` defines them.

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
// states that are kept: some tens of megabytes
const MOST_STATES = 30000;

/** weight @ z + bias, with rows of z.length weights. Weights have 32 bits, all that is computed 64. */
function affine({ weight, bias }, z) {
  const width = z.length;
  const out = new Float64Array(bias.length);
  for (let row = 0, at = 0; row < out.length; row++) {
    let sum = bias[row];
    for (let column = 0; column < width; column++, at++) sum += weight[at] * z[column];
    out[row] = sum;
  }
  return out;
}

/** The block for any number of incoming cell states: gates f_1..f_n, i, o, then u. */
function gatedBlock(layer, z, cells) {
  const gates = affine(layer, z);
  const size = gates.length / (cells.length + 3);
  const [i, o, u] = [0, 1, 2].map((gate) => (cells.length + gate) * size);
  const h = new Float64Array(size);
  const c = new Float64Array(size);
  for (let at = 0; at < size; at++) {
    let sum = sigmoid(gates[i + at]) * Math.tanh(gates[u + at]);
    cells.forEach((cell, n) => (sum += sigmoid(gates[n * size + at]) * cell[at]));
    c[at] = sum;
    h[at] = sigmoid(gates[o + at]) * Math.tanh(sum);
  }
  return { h, c };
}

function decoded(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, at) => view.getFloat32(4 * at, true));
}

/** A model whose states have numbers: a merge of the same two states is computed once. */
class Model {
  constructor(data) {
    Object.assign(this, data);
    const values = decoded(data.weights);
    let at = 0;
    const tensors = data.shapes.map((shape) => {
      const size = shape.reduce((product, side) => product * side, 1);
      at += size;
      return values.subarray(at - size, at);
    });
    const layers = [];
    for (let n = 0; n < tensors.length; n += 2) layers.push({ weight: tensors[n], bias: tensors[n + 1] });
    this.readout = layers.pop();
    [this.leafBlock, this.composition, ...this.refinements] = layers;
    this.hidden = this.leafBlock.bias.length / 3;
    this.empty = data.symbols.length;
    this.forget();
  }

  /** Let go of all states. */
  forget() {
    [this.leaves, this.merges, this.states] = [new Map(), new Map(), 0];
  }

  /** Begin a word: states of earlier ones are at hand, unless they have become too many. */
  begin() {
    if (this.states > MOST_STATES) this.forget();
  }

  leaf(id) {
    if (!this.leaves.has(id)) {
      const x = new Float64Array(this.empty + 1);
      x[id] = 1;
      this.leaves.set(id, this.numbered(gatedBlock(this.leafBlock, x, [])));
    }
    return this.leaves.get(id);
  }

  merge(left, right) {
    // one number for a pair of numbers
    const pair = left.number * 2 ** 26 + right.number;
    if (!this.merges.has(pair)) {
      const both = new Float64Array(2 * this.hidden);
      both.set(left.h);
      both.set(right.h, this.hidden);
      let state = gatedBlock(this.composition, both, [left.c, right.c]);
      for (const layer of this.refinements) state = gatedBlock(layer, state.h, [state.c]);
      this.merges.set(pair, this.numbered(state));
    }
    return this.merges.get(pair);
  }

  numbered(state) {
    return { ...state, number: this.states++ };
  }

  logits(state) {
    return affine(this.readout, state.h.map((value) => Math.max(value, 0)));
  }

  /** The class of a state and its probability. */
  answer(state) {
    const logits = this.logits(state);
    const best = logits.indexOf(Math.max(...logits));
    const odds = logits.reduce((sum, logit) => sum + Math.exp(logit - logits[best]), 0);
    return { class: best, sure: 1 / odds };
  }
}

const norm = (values) => Math.hypot(...values);
const distance = (one, other) => Math.hypot(...one.map((value, at) => value - other[at]));

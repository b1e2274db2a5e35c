// The tree: which states are merged. P(t), the state after t cells, is the left fold of the blocks
// of t's binary digits, biggest first. Cells are counted from 1.

/** All of a tape that later cells can still meet: blocks without a partner, and prefixes so far. */
class Carry {
  constructor(count = 0, waiting = []) {
    [this.count, this.waiting] = [count, waiting];
  }

  /** The carry after one more cell; `made` is told of every merge. */
  push(model, leaf, made = () => {}) {
    const waiting = [...this.waiting];
    const stop = this.count + 1;
    let [block, size] = [leaf, 1];
    while (waiting.length && waiting.at(-1).size === size) {
      block = model.merge(waiting.pop().block, block);
      size *= 2;
      made({ kind: "block", start: stop - size + 1, middle: stop - size / 2, stop, state: block });
    }
    let fold = block;
    if (waiting.length) {
      fold = model.merge(waiting.at(-1).fold, block);
      made({ kind: "prefix", start: 1, middle: stop - size, stop, state: fold });
    }
    waiting.push({ size, block, fold });
    return new Carry(stop, waiting);
  }

  /** P(count). */
  get state() {
    return this.waiting.at(-1).fold;
  }
}

const lowBit = (count) => count & -count;

/** The nodes of a tape in the order in which they come to be: leaves, blocks, prefixes. */
class Tree {
  constructor(model) {
    [this.model, this.carry, this.nodes] = [model, new Carry(), []];
    // by the cell at which they end: blocks by their size, and the prefix
    this.ending = [];
  }

  push(id) {
    const stop = this.carry.count + 1;
    const leaf = this.model.leaf(id);
    this.ending[stop] = { blocks: [] };
    this.add({ kind: "leaf", start: stop, stop, state: leaf });
    this.carry = this.carry.push(this.model, leaf, (made) => this.add(made));
  }

  add(node) {
    const size = node.stop - node.start + 1;
    Object.assign(node, { index: this.nodes.length, children: [], parents: [] });
    if (node.kind === "leaf") node.level = 0;
    if (node.kind === "block") {
      node.level = Math.log2(size);
      node.children = [this.block(node.middle, size / 2), this.block(node.stop, size / 2)];
    }
    if (node.kind === "prefix") {
      node.level = Math.log2(lowBit(node.stop));
      node.children = [this.prefix(node.middle), this.block(node.stop, lowBit(node.stop))];
      this.ending[node.stop].prefix = node;
    } else this.ending[node.stop].blocks.push(node);
    for (const child of node.children) child.parents.push(node);
    this.nodes.push(node);
  }

  /** The block of `size` cells that ends with one. */
  block(stop, size) {
    return this.ending[stop].blocks[Math.log2(size)];
  }

  /** P(stop), which is a block alone where stop is a power of two. */
  prefix(stop) {
    return this.ending[stop].prefix ?? this.ending[stop].blocks.at(-1);
  }
}

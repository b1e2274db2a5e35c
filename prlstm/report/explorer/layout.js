// Where everything stands: a column for each cell, a row for each step of the plan. A result stands
// in the column of the last cell that it covers.

const MARGIN = 60;
// of the box that scrolls, both sides together
const PADDING = 32;
// `room` is what a box has for a drawing, `sharp` how many pixels of a canvas a CSS pixel has. A tape of
// at most `columns` cells is drawn as a tree, a longer one as strips; their columns are at least `tree`
// and `strip` wide. A screen is scrolled where that is too wide, paper is not.
const SCREEN = {
  room: (box) => box.clientWidth - PADDING, sharp: () => window.devicePixelRatio || 1,
  columns: 40, tree: 42, strip: 10,
};
// A4 between the margins of the page, which does not have its width yet when it is drawn for
const PAPER = { room: () => 660, sharp: () => 4, columns: 22, tree: 26, strip: 0 };
const TOKENS = 44;
const OUTCOMES = 40;
// features in a line of a node's heat map
const FEATURES = 8;

/** The rows from top to bottom, each with its nodes from left to right. */
function rowsOf(tree, strips) {
  const rows = new Map();
  for (const node of tree.nodes) {
    const [phase, place] = node.kind === "prefix" ? ["down", strips ? 999 : 999 - node.level] : ["up", node.level];
    const label = place === 0 ? "leaf" : strips && phase === "down" ? "states" : `${phase} ${node.level}`;
    if (!rows.has(place)) rows.set(place, { place, label, nodes: [] });
    rows.get(place).nodes.push(node);
  }
  const sorted = [...rows.values()].sort((one, other) => one.place - other.place);
  for (const row of sorted) row.nodes.sort((one, other) => one.stop - other.stop);
  return sorted;
}

/** Sizes and places in CSS pixels. `room` is how wide the drawing may be without being cut. */
function layOut(reading, medium, room) {
  const { tree, model, cells } = reading;
  const strips = cells.length > medium.columns;
  const share = (room - MARGIN - 4) / cells.length;
  // whole pixels are sharp, but parts of one are all that a long word has on paper
  const fitting = share < 10 ? share : Math.floor(share);
  const pitch = strips ? Math.max(medium.strip, fitting) : Math.min(62, Math.max(medium.tree, fitting));
  // of one feature
  const side = pitch < 36 ? 3 : pitch < 52 ? 4 : 5;
  const high = strips ? Math.min(44, model.hidden) : side * Math.ceil(model.hidden / FEATURES);
  const gap = strips ? 10 : 26;
  const rows = rowsOf(tree, strips);
  const places = [];
  rows.forEach((row, at) => {
    row.y = TOKENS + at * (high + gap);
    for (const node of row.nodes) {
      // a strip lies below all the cells that it covers, a prefix below its last one
      const from = strips && node.kind !== "prefix" ? node.start : node.stop;
      const wide = strips ? (node.stop - from + 1) * pitch : side * FEATURES;
      const x = strips ? MARGIN + (from - 1) * pitch : MARGIN + (node.stop - 0.5) * pitch - wide / 2;
      places[node.index] = { x, y: row.y, wide, high };
    }
  });
  const end = TOKENS + rows.length * (high + gap);
  return {
    strips, pitch, high, gap, rows, places, sharp: medium.sharp(),
    centre: (cell) => MARGIN + (cell - 0.5) * pitch,
    width: MARGIN + cells.length * pitch + 4,
    outcomes: end - gap + 14,
    height: end - gap + OUTCOMES,
  };
}

/** The wires of the merges that `wanted` allows, as the path of an SVG. */
function wires(tree, layout, wanted = () => true) {
  const parts = [];
  const bend = 6;
  for (const node of tree.nodes) {
    const to = layout.places[node.index];
    const x = layout.centre(node.stop);
    node.children.forEach((child, right) => {
      if (!wanted(child, node)) return;
      const from = layout.places[child.index];
      const foot = from.y + from.high;
      if (right) {
        parts.push(`M${x} ${foot}V${to.y}`);
        return;
      }
      const across = to.y - 12;
      const start = layout.centre(child.stop);
      parts.push(
        `M${start} ${foot}V${across - bend}q0 ${bend} ${bend} ${bend}H${x - bend}q${bend} 0 ${bend} ${bend}V${to.y}`,
      );
    });
  }
  return parts.join("");
}

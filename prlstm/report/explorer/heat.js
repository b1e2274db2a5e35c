// The heat maps of all nodes, on one canvas below their buttons.

// canvases that are wider are refused by some browsers
const WIDEST = 8192;

/** A picture of another height: no column sees its neighbours, which stand elsewhere in the tree. */
function squeezed(picture, height) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width, height];
  canvas.getContext("2d").drawImage(picture, 0, 0, picture.width, height);
  return canvas;
}

function drawHeat(canvas, { tree }, layout, colours) {
  const columns = layout.strips ? 1 : FEATURES;
  const sharp = Math.min(layout.sharp, WIDEST / layout.width);
  [canvas.width, canvas.height] = [layout.width * sharp, layout.height * sharp];
  canvas.style.width = `${layout.width}px`;
  canvas.style.height = `${layout.height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(sharp, sharp);
  pen.imageSmoothingEnabled = false;
  let picture = colours.picture(tree.nodes.map((node) => node.state.h), columns);
  if (layout.strips) picture = squeezed(picture, Math.round(layout.high * sharp));
  // a hair between strips tells them apart, as long as it is no more than that
  const hair = layout.strips ? Math.min(1, layout.pitch / 10) : 0;
  for (const { index } of tree.nodes) {
    const { x, y, wide, high } = layout.places[index];
    pen.drawImage(picture, index * columns, 0, columns, picture.height, x, y, wide - hair, high);
  }
}

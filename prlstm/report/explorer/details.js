// The selected node: what it covers, what it is made of, its state as a large heat map.

/** A node in a few words; cells behind the word are empty ones. */
function nodeTitle(reading, node) {
  const length = reading.word.length;
  const cell = (at) => {
    if (at <= length) return `token ${at}`;
    return reading.cells.length === length + 1 ? "the empty cell" : `empty cell ${at - length}`;
  };
  if (node.kind === "leaf") return `Leaf of ${cell(node.start)}`;
  if (node.kind === "prefix") return `State after ${cell(node.stop)}`;
  if (node.stop <= length) return `Block of tokens ${node.start} to ${node.stop}`;
  if (node.start > length) return `Block of empty cells ${node.start - length} to ${node.stop - length}`;
  return `Block of ${cell(node.start)} to ${cell(node.stop)}`;
}

/** With two digits behind the point, unless these would be zeros. */
const short = (value) => (Math.abs(value) < 0.005 && value !== 0 ? value.toExponential(1) : value.toFixed(2));

function nodeLabel(reading, node, change) {
  const changed = change > 0 ? `, changed by ${short(change)}` : "";
  return `${nodeTitle(reading, node)}, norm ${short(norm(node.state.h))}${changed}`;
}

// symbols of a word that are written out
const MOST_WRITTEN = 40;

function coveredText({ model, cells }, node) {
  const covered = cells.slice(node.start - 1, node.stop);
  const symbols = covered.map((id) => (id === model.empty ? EMPTY : symbolOf(model, id)));
  if (symbols.length <= MOST_WRITTEN) return symbols.join("");
  return `${symbols.slice(0, MOST_WRITTEN).join("")}… (${symbols.length} cells)`;
}

class Details {
  constructor(box, onGo) {
    Object.assign(this, { box, onGo });
  }

  show(reading, node, colours, light) {
    const { h, c } = node.state;
    const title = made("h3", "", nodeTitle(reading, node));
    title.id = "explorer-node";
    const facts = made("dl", "explorer-facts");
    const fact = (name, ...values) => {
      const value = made("dd");
      value.append(...values);
      facts.append(made("dt", "", name), value);
    };
    fact("covers", made("code", "", coveredText(reading, node)));
    fact("norm of h", short(norm(h)));
    fact("norm of c", short(norm(c)));
    const at = node.stop - reading.word.length - 1;
    if (at >= 0 && reading.tree.prefix(node.stop) === node) {
      fact("read out", reading.model.answers[reading.answer.classes[at]]);
    }
    const change = light ? light.changes[node.index] : 0;
    if (light) fact("changed by", change ? short(change) : "nothing");
    if (node.children.length) fact("made of", ...node.children.map((child) => this.link(reading, child)));
    if (node.parents.length) fact("goes into", ...this.links(reading, node.parents));

    const maps = made("div", "explorer-maps");
    const old = change && light.before.tree.nodes[node.index].state.h;
    if (old) {
      maps.append(
        this.map(old, "before", colours),
        this.map(h, "now", colours),
        // halved: as far apart as two values can be is full colour
        this.map(h.map((value, feature) => (value - old[feature]) / 2), "half the difference", colours),
      );
    } else maps.append(this.map(h, "h", colours));
    this.box.replaceChildren(title, maps, facts);
  }

  links(reading, nodes) {
    // a block may go into many states: those after it until the next one of its size
    const first = nodes.slice(0, 4).map((node) => this.link(reading, node));
    return nodes.length > 4 ? [...first, ` and ${nodes.length - 4} more`] : first;
  }

  link(reading, node) {
    const button = made("button", "explorer-link", nodeTitle(reading, node));
    button.type = "button";
    button.addEventListener("click", () => this.onGo(node));
    return button;
  }

  map(values, name, colours) {
    const figure = made("figure", "explorer-map");
    const canvas = made("canvas");
    const rows = Math.ceil(values.length / FEATURES);
    // pixels of one feature, fine enough for any screen
    const side = 32;
    [canvas.width, canvas.height] = [FEATURES * side, rows * side];
    canvas.setAttribute("role", "img");
    canvas.setAttribute(
      "aria-label",
      `${name}: ${values.length} features from ${short(Math.min(...values))} to ${short(Math.max(...values))}`,
    );
    const pen = canvas.getContext("2d");
    pen.imageSmoothingEnabled = false;
    pen.drawImage(colours.picture([values], FEATURES), 0, 0, canvas.width, canvas.height);
    figure.append(canvas, made("figcaption", "", name));
    return figure;
  }
}

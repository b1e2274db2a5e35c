// The drawing: tokens above, the tree with a heat map at each node, answers below.

class TreeView {
  /** `medium` is what the box is on; `onFlip` is told of the place of a token, `onSelect` of a node. */
  constructor(box, medium, onFlip, onSelect) {
    Object.assign(this, { box, medium, onFlip, onSelect, shape: "", selected: null });
  }

  /** Draw a reading; `light` tells what a flip has changed: its place, the reading before, norms. */
  show(reading, colours, light = null) {
    Object.assign(this, { reading, colours, light });
    const shape = [reading.model.name, reading.cells.length, this.box.clientWidth].join();
    // what is focused stays where it is as long as the tree has the same shape
    if (shape !== this.shape) this.build();
    this.shape = shape;
    this.paint();
    this.select(reading.tree.nodes[this.selected.index]);
    this.outcomes();
  }

  build() {
    const { reading, box, medium } = this;
    this.layout = layOut(reading, medium, medium.room(box));
    const { layout } = this;
    const drawing = made("div", layout.strips ? "explorer-drawing explorer-strips" : "explorer-drawing");
    drawing.style.width = `${layout.width}px`;
    drawing.style.height = `${layout.height}px`;
    // letters of strips, which stand side by side without a gap
    drawing.style.setProperty("--explorer-letter", `${Math.min(12, 1.6 * layout.pitch)}px`);
    this.canvas = made("canvas");
    this.tokens = new Tokens(reading, layout, this.onFlip);
    drawing.innerHTML =
      '<svg class="explorer-wires" aria-hidden="true"><path></path><path class="explorer-lit"></path></svg>';
    [this.wires, this.lit] = drawing.querySelectorAll("path");
    drawing.append(this.canvas, this.labels(), this.tokens.row, this.nodeGroup(), this.outcomeRow());
    box.replaceChildren(drawing);
    this.selected = reading.tree.prefix(reading.cells.length);
    this.wires.setAttribute("d", layout.strips ? "" : this.stems() + wires(reading.tree, layout));
  }

  /** From tokens to leaves, and from the states that are read to the answers. */
  stems() {
    const { reading, layout } = this;
    const tops = reading.cells.map((_, at) => `M${layout.centre(at + 1)} ${TOKENS - 12}V${TOKENS}`);
    const feet = reading.cells.slice(reading.word.length).map((_, at) => {
      const place = layout.places[reading.tree.prefix(reading.word.length + 1 + at).index];
      return `M${layout.centre(reading.word.length + 1 + at)} ${place.y + place.high}V${layout.outcomes}`;
    });
    return [...tops, ...feet].join("");
  }

  labels() {
    const labels = made("div", "explorer-labels");
    labels.ariaHidden = "true";
    const written = [
      ["word", 10],
      ...this.layout.rows.map((row) => [row.label, row.y + this.layout.high / 2 - 9]),
      ["answer", this.layout.outcomes + 2],
    ];
    for (const [text, y] of written) {
      const label = made("span", "", text);
      label.style.top = `${y}px`;
      labels.append(label);
    }
    return labels;
  }

  nodeGroup() {
    const group = made("div", "explorer-nodes");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", "Nodes: left and right along a row, up to what a node is made of, down to what it becomes");
    this.buttons = this.reading.tree.nodes.map((node) => {
      const button = made("button", "explorer-node");
      const place = this.layout.places[node.index];
      button.type = "button";
      Object.assign(button.style, {
        left: `${place.x}px`, top: `${place.y}px`, width: `${place.wide}px`, height: `${place.high}px`,
      });
      // of the tree that is shown then, not of the one that it was built for
      button.addEventListener("click", () => this.select(this.reading.tree.nodes[node.index]));
      return button;
    });
    group.addEventListener("keydown", (event) => {
      const node = this.neighbour(event.key);
      if (!node) return;
      event.preventDefault();
      this.select(node);
      this.buttons[node.index].focus();
    });
    group.append(...this.buttons);
    return group;
  }

  /** Where a key leads from the selected node. */
  neighbour(key) {
    const { index } = this.selected;
    const node = this.reading.tree.nodes[index];
    const row = this.layout.rows.find(({ nodes }) => nodes.some((one) => one.index === index)).nodes;
    const at = row.findIndex((one) => one.index === index);
    const found = {
      ArrowLeft: () => row[at - 1],
      ArrowRight: () => row[at + 1],
      Home: () => row[0],
      End: () => row.at(-1),
      ArrowUp: () => node.children[1],
      ArrowDown: () => node.parents.find((parent) => parent.stop === node.stop) ?? node.parents[0],
    }[key]?.();
    return found && this.reading.tree.nodes[found.index];
  }

  outcomeRow() {
    const row = made("div", "explorer-outcomes");
    // the table says the same
    row.ariaHidden = "true";
    this.outcome = this.reading.cells.map((_, at) => {
      const cell = made("span");
      const wide = this.layout.strips ? this.layout.pitch : Math.min(24, this.layout.pitch);
      cell.style.left = `${this.layout.centre(at + 1) - wide / 2}px`;
      cell.style.top = `${this.layout.outcomes}px`;
      cell.style.width = `${wide}px`;
      return cell;
    });
    row.append(...this.outcome);
    return row;
  }

  /** Everything that a word or a flip changes. */
  paint() {
    const { reading, light } = this;
    const { tree } = reading;
    drawHeat(this.canvas, reading, this.layout, this.colours);
    this.lit.setAttribute(
      "d",
      light && !this.layout.strips
        ? wires(tree, this.layout, (child, node) => light.changes[child.index] && light.changes[node.index])
        : "",
    );
    const most = light ? Math.max(...light.changes) : 0;
    const depth = this.layout.rows.length;
    this.layout.rows.forEach(({ nodes }, row) => {
      for (const { index } of nodes) {
        const button = this.buttons[index];
        const change = light ? light.changes[index] : 0;
        button.classList.toggle("explorer-changed", change > 0);
        button.classList.toggle("explorer-faded", light !== null && !(change > 0));
        button.style.setProperty("--explorer-share", most ? change / most : 0);
        button.style.setProperty("--explorer-wait", row / depth);
        button.setAttribute("aria-label", nodeLabel(reading, tree.nodes[index], change));
      }
    });
    this.tokens.write(reading, light);
  }

  select(node) {
    this.selected = node;
    rove(this.buttons, node.index);
    this.buttons.forEach((button, at) => {
      if (at === node.index) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
    this.tokens.cover(node);
    this.onSelect(node);
  }

  /** Select a node that is named elsewhere, and go there. */
  goTo(node) {
    this.select(node);
    this.buttons[node.index].focus();
  }

  /** The answers that have been read so far, in the row below. */
  outcomes() {
    const { reading, light } = this;
    const { model, word, answer } = reading;
    const write = (cell, text, kind, differs) => {
      cell.textContent = text;
      cell.className = `explorer-mark explorer-${kind}${differs ? " explorer-differs" : ""}`;
    };
    word.forEach((_, at) => {
      const after = reading.answers[at];
      if (!after) {
        write(this.outcome[at], "", "none", false);
        return;
      }
      const verdict = verdictOf(after);
      const kind = verdict === NO_WORD ? "none" : verdict;
      const old = light?.before.answers[at];
      const text = model.many ? (verdict === FALSE ? "✗" : "✓") : showAnswer(model, after.classes);
      write(this.outcome[at], text, kind, old && showAnswer(model, old.classes) !== showAnswer(model, after.classes));
    });
    answer.classes.forEach((one, at) => {
      const kind = !answer.right ? "none" : answer.right[at] ? CORRECT : FALSE;
      const differs = light && light.before.answer.classes[at] !== one;
      write(this.outcome[word.length + at], model.answers[one], kind, differs);
    });
  }
}

// The row of tokens above the tree: each is flipped by a click, by Enter or by the space bar.

class Tokens {
  /** `onFlip` is told of the place of a token. */
  constructor(reading, layout, onFlip) {
    this.row = made("div", "explorer-tokens");
    this.row.setAttribute("role", "group");
    this.row.setAttribute("aria-label", "Tokens: arrows move, Enter flips");
    const count = reading.word.length;
    this.cells = reading.cells.map((_, at) => {
      const cell = at < count ? made("button", "explorer-token") : made("span", "explorer-cell", EMPTY);
      const wide = layout.strips ? layout.pitch : Math.min(32, layout.pitch - 4);
      cell.style.left = `${layout.centre(at + 1) - wide / 2}px`;
      cell.style.width = `${wide}px`;
      if (at >= count) cell.title = "an empty cell: an answer is read here";
      return cell;
    });
    this.buttons = this.cells.slice(0, count);
    this.buttons.forEach((button, at) => {
      button.type = "button";
      button.addEventListener("click", () => {
        rove(this.buttons, at);
        onFlip(at);
      });
    });
    rove(this.buttons, 0);
    this.row.addEventListener("keydown", (event) => this.move(event));
    this.row.append(...this.cells);
  }

  move(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    const at = this.buttons.indexOf(event.target);
    if (by === undefined || at < 0) return;
    event.preventDefault();
    const next = Math.min(this.buttons.length - 1, Math.max(0, at + by));
    rove(this.buttons, next);
    this.buttons[next].focus();
  }

  /** Write a word of the same length; `light` tells which token was flipped. */
  write({ model, word }, light) {
    word.forEach((token, at) => {
      const symbol = symbolOf(model, token);
      const becomes = symbolOf(model, flipped(model, token));
      const button = this.buttons[at];
      button.textContent = symbol;
      button.classList.toggle("explorer-flipped", light?.place === at);
      button.setAttribute("aria-label", `Token ${at + 1}: ${symbol}, flip to ${becomes}`);
    });
  }

  /** Mark the cells that a node covers. */
  cover({ start, stop }) {
    this.cells.forEach((cell, at) => {
      cell.classList.toggle("explorer-covered", at + 1 >= start && at + 1 <= stop);
    });
  }
}

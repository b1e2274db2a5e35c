// Events: what a person does, and what is shown and said of it.

const find = (name) => document.getElementById(`explorer-${name}`);
// answers that are written out in a sentence
const MOST_SAID = 16;

class Page {
  constructor(models) {
    // weights are decoded when a model is first asked for
    this.data = new Map(models.map((data) => [data.name, data]));
    this.built = new Map();
    [this.earlier, this.text, this.reading, this.light] = [[], null, null, null];
    this.stop = () => {};
    this.colours = new Colours(groundOf(find("scroll")));
    this.view = new TreeView(
      find("scroll"),
      SCREEN,
      (place) => this.flip(place),
      (node) => this.details.show(this.reading, node, this.colours, this.light),
    );
    this.details = new Details(find("details"), (node) => this.view.goTo(this.reading.tree.nodes[node.index]));
    this.answers = new Answers(find("answers"), find("progress"));
  }

  model(name) {
    if (!this.built.has(name)) this.built.set(name, new Model(this.data.get(name)));
    return this.built.get(name);
  }

  start() {
    for (const { name, task, title, shapes } of this.data.values()) {
      const hidden = shapes[0][0] / 3;
      const label = name === task ? title : `${title} (${name})`;
      find("model").append(new Option(`${label}, ${hidden} features`, name));
    }
    find("model").addEventListener("change", () => this.pick());
    find("word").addEventListener("input", () => this.typed());
    find("form").addEventListener("submit", (event) => {
      event.preventDefault();
      // Enter in the word reads it, which has been done already
      if (document.activeElement !== find("word")) this.draw();
    });
    find("undo").addEventListener("click", () => this.undo());
    find("plain").addEventListener("click", () => this.hideChange());
    this.pick();
    this.redrawWhenColoursOrSizesChange();
    window.addEventListener("beforeprint", () => this.drawOnPaper());
    window.addEventListener("afterprint", () => this.clearPaper());
  }

  redrawWhenColoursOrSizesChange() {
    let width = 0;
    const redraw = () => {
      this.colours = new Colours(groundOf(find("scroll")));
      this.colours.scale(find("scale"));
      if (this.reading) this.view.show(this.reading, this.colours, this.light);
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    new ResizeObserver(() => {
      const { clientWidth } = find("scroll");
      // none at all: hidden, as on paper
      if (clientWidth === 0 || clientWidth === width) return;
      width = clientWidth;
      redraw();
    }).observe(find("scroll"));
  }

  /** A drawing of its own for paper: the one on the screen stays as it is, and where it is scrolled. */
  drawOnPaper() {
    const { reading, light } = this;
    if (!reading) return;
    const colours = new Colours(WHITE);
    const onSelect = (node) => this.details.show(reading, node, colours, light);
    const view = new TreeView(find("paper"), PAPER, () => {}, onSelect);
    view.show(reading, colours, light);
    view.select(this.view.selected);
    colours.scale(find("scale"));
  }

  clearPaper() {
    if (!this.reading) return;
    find("paper").replaceChildren();
    this.details.show(this.reading, this.view.selected, this.colours, this.light);
    this.colours.scale(find("scale"));
  }

  /** Another model: the word stays if it is one of its language. */
  pick() {
    this.current = this.model(find("model").value);
    const { current } = this;
    const symbols = current.symbols.flatMap((symbol) => [" ", made("code", "", symbol.trim())]);
    find("alphabet").replaceChildren("Alphabet:", ...symbols, ` (up to ${current.most} tokens)`);
    find("length").max = current.most;
    this.forgetWords();
    const { word } = wordOrAdvice(current, find("word").value);
    if (!word || !TASKS[current.task].label(word)) find("word").value = TASKS[current.task].example;
    this.read("");
  }

  forgetWords() {
    [this.earlier, this.text, this.typing] = [[], null, false];
    this.offerUndo();
  }

  /** A button without use stays in reach: whoever is on it does not lose the place. */
  offerUndo() {
    find("undo").setAttribute("aria-disabled", String(this.earlier.length === 0));
  }

  /** Keep the word that is about to be replaced. */
  remember() {
    if (this.text !== null) this.earlier.push(this.text);
    this.offerUndo();
  }

  /** Typed back, or kept twice around a text that could not be read: a step back would change nothing. */
  dropStepToItself() {
    if (this.earlier.at(-1) !== this.text) return;
    this.earlier.pop();
    this.typing = false;
    this.offerUndo();
  }

  typed() {
    // one step back undoes all that was typed in one go
    if (!this.typing) this.remember();
    this.typing = true;
    this.read("");
  }

  write(text) {
    this.typing = false;
    find("word").value = text;
  }

  draw() {
    const { current } = this;
    const text = find("length").value.trim();
    const length = Number(text);
    if (!Number.isInteger(length) || length < 1 || length > current.most) {
      const said = text === "" ? "Say how long the word should be" : `A word of length ${text} cannot be drawn`;
      this.advise(`${said}: from 1 to ${current.most} tokens.`, "length");
      return;
    }
    this.remember();
    const word = TASKS[current.task].draw(length);
    this.write(showWord(current, word));
    this.read(word.length === length ? "" : `${current.title} has no word of length ${length}. `);
  }

  flip(place) {
    const { reading, current } = this;
    const word = [...reading.word];
    const was = word[place];
    word[place] = flipped(current, was);
    this.remember();
    this.write(showWord(current, word));
    this.read("", { place, before: reading, was, is: word[place] });
  }

  undo() {
    if (!this.earlier.length) return;
    this.write(this.earlier.pop());
    this.offerUndo();
    this.read("Undone. ");
  }

  hideChange() {
    const { place } = this.light;
    this.light = null;
    // the button that was pressed is gone
    this.view.tokens.buttons[place].focus();
    this.view.show(this.reading, this.colours);
    this.tell("");
  }

  advise(advice, field) {
    find("advice").textContent = advice;
    for (const name of ["word", "length"]) {
      find(name).setAttribute("aria-invalid", String(advice !== "" && name === field));
    }
  }

  /** Read the word of the field, and show what comes of it; `flip` is what led to it. */
  read(first, flip = null) {
    const { current } = this;
    this.stop();
    const { word, advice } = wordOrAdvice(current, find("word").value);
    this.advise(advice ?? "", "word");
    // what is shown belongs to another word now: it is kept, out of reach
    find("outcome").inert = advice !== undefined;
    if (advice !== undefined) return;
    this.text = find("word").value;
    this.dropStepToItself();
    const page = this;
    const reading = new Reading(current, word);
    function* work() {
      yield* reading.grow();
      page.show(reading, flip, first);
      yield* reading.read();
    }
    this.stop = inSlices(work(), () => {
      if (this.reading !== reading) return;
      this.answers.show(reading);
      this.view.outcomes();
    });
  }

  show(reading, flip, first) {
    this.light = flip && { ...flip, changes: reading.changesSince(flip.before) };
    this.reading = reading;
    this.view.show(reading, this.colours, this.light);
    this.tell(first);
  }

  /** The answer in large, and what happened in a sentence. */
  tell(first) {
    const { reading, light } = this;
    const { answer, tree, model } = reading;
    const verdict = verdictOf(answer);
    find("plain").hidden = light === null;
    find("answer").textContent = model.many ? { right: "✓", wrong: "✗" }[verdict] : showAnswer(model, answer.classes);
    find("answer").className = `explorer-answer explorer-mark explorer-${verdict === NO_WORD ? "none" : verdict}`;
    const judged = {
      [CORRECT]: () => "which is right",
      [FALSE]: () => `but ${this.quoted(answer.truth)} is right`,
      [NO_WORD]: () => "but this is no word of the language",
    }[verdict]();
    const now = `${model.many ? "at least " : ""}${percent(answer.sure)} sure`;
    if (light) {
      const changed = light.changes.filter(Boolean).length;
      const [was, is] = [light.was, light.is].map((token) => symbolOf(model, token));
      const nodes = `Token ${light.place + 1} flipped from ${was} to ${is}: ${changed} of ${tree.nodes.length} nodes changed`;
      find("said").textContent = `${nodes}, ${this.difference(light.before.answer, answer)}, ${judged}.`;
    } else {
      const tokens = reading.word.length === 1 ? "1 token" : `${reading.word.length} tokens`;
      const says = `The model answers ${this.quoted(answer.classes)}, ${now}, ${judged}.`;
      find("said").textContent = `${first}${tokens}, ${tree.nodes.length} nodes. ${says}`;
    }
  }

  quoted(classes) {
    const text = showAnswer(this.current, classes);
    return text.length > MOST_SAID ? `${text.slice(0, MOST_SAID)}…` : text;
  }

  difference(before, after) {
    const [was, is] = [this.quoted(before.classes), this.quoted(after.classes)];
    const places = after.classes.filter((one, at) => one !== before.classes[at]).length;
    if (!places) return `the answer is still ${is}`;
    if (after.classes.length <= MOST_SAID) return `the answer changed from ${was} to ${is}`;
    return `the answer changed at ${places} of ${after.classes.length} places`;
  }
}

/** What is computed, for the console of the browser and for tests. */
function handle(page) {
  return Object.freeze({
    names: [...page.data.keys()],
    read(name, text) {
      const model = page.model(name);
      const { word, advice } = wordOrAdvice(model, text);
      if (advice) throw new Error(advice);
      const reading = new Reading(model, word);
      for (const _ of reading.grow());
      for (const _ of reading.read());
      const { tree, answers } = reading;
      const cells = reading.cells.keys();
      return {
        word,
        answers,
        logits: [...cells].slice(word.length).map((at) => [...model.logits(tree.prefix(at + 1).state)]),
        nodes: tree.nodes.map(({ kind, start, stop, state }) => ({ kind, start, stop, h: [...state.h] })),
      };
    },
    draw(name, length) {
      const model = page.model(name);
      return showWord(model, TASKS[model.task].draw(length));
    },
  });
}

const page = new Page(JSON.parse(find("models").textContent));
window.explorer = handle(page);
page.start();

// A word as a model reads it: the tree over its tape, the answer after every prefix, and what
// differs from another word of the same length.

// milliseconds of work, then the page is given time to breathe
const SLICE = 12;
// a smaller change of a state is in no number that is shown
const UNSEEN = 1e-6;

/** Run a generator to its end in slices, `tick` after each; gives a function that stops it. */
function inSlices(work, tick) {
  let timer;
  const go = () => {
    const end = performance.now() + SLICE;
    let finished = false;
    while (!finished && performance.now() < end) finished = work.next().done;
    tick();
    if (!finished) timer = setTimeout(go);
  };
  go();
  return () => clearTimeout(timer);
}

class Reading {
  constructor(model, word) {
    [this.model, this.word] = [model, word];
    const count = model.many ? word.length : 1;
    this.cells = [...word, ...Array(count).fill(model.empty)];
    this.tree = new Tree(model);
    // one for each prefix that has been read: classes, probabilities and the truth
    this.answers = [];
  }

  /** Build the tree; yields after every cell. */
  *grow() {
    this.model.begin();
    for (const id of this.cells) {
      this.tree.push(id);
      yield;
    }
    this.answer = this.told(
      this.word.length,
      this.cells.slice(this.word.length).map((_, at) => this.tree.prefix(this.word.length + 1 + at).state),
    );
  }

  /** How many prefixes are answered. */
  get prefixes() {
    return Math.min(this.word.length, this.model.prefixes);
  }

  /** Answer every prefix, or the first of many; yields after every answer. */
  *read() {
    const { model, word } = this;
    const empty = model.leaf(model.empty);
    let carry = new Carry();
    for (let count = 1; count <= this.prefixes; count++) {
      carry = carry.push(model, model.leaf(word[count - 1]));
      let behind = carry;
      const states = [];
      for (let at = 0; at < (model.many ? count : 1); at++) {
        behind = behind.push(model, empty);
        states.push(behind.state);
        yield;
      }
      this.answers.push(this.told(count, states));
    }
  }

  /** The answer that some states give to the first tokens of the word, and the right one. */
  told(count, states) {
    const answers = states.map((state) => this.model.answer(state));
    const classes = answers.map((answer) => answer.class);
    const truth = TASKS[this.model.task].label(this.word.slice(0, count));
    const right = truth && classes.map((one, at) => one === truth[at]);
    return { count, classes, sure: Math.min(...answers.map((answer) => answer.sure)), truth, right };
  }

  /** The norm of each node's change since a reading of as many tokens, zero where it is the same. */
  changesSince(before) {
    return this.tree.nodes.map((node, at) => {
      const old = before.tree.nodes[at].state;
      if (old === node.state) return 0;
      const change = distance(node.state.h, old.h);
      return change > UNSEEN ? change : 0;
    });
  }
}

const CORRECT = "right";
const FALSE = "wrong";
const NO_WORD = "no word";

function verdictOf(answer) {
  if (!answer.truth) return NO_WORD;
  return answer.right.every(Boolean) ? CORRECT : FALSE;
}

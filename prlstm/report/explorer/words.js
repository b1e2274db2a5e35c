// Words as people type them, read and shown as Python's `task.read` and `task.show` do.

// what Python takes for a space; JavaScript's \s is a little different
const SPACES = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/u;

/** A text as tokens: `{word}`, or `{other}` with the first character that is none of them. */
function readWord(model, text) {
  const ids = new Map(model.symbols.map((symbol, id) => [symbol.trim(), id]));
  const word = [];
  for (const character of text) {
    if (ids.has(character)) word.push(ids.get(character));
    else if (!SPACES.test(character)) return { other: character };
  }
  return { word };
}

// an empty cell: no alphabet has it, and explorer.html says it
const EMPTY = "∅";

const showWord = (model, word) => word.map((token) => model.symbols[token]).join("");
const symbolOf = (model, token) => model.symbols[token].trim();
const showAnswer = (model, classes) => classes.map((one) => model.answers[one]).join("");

/** The token that a flip makes of one: the next of its kind, so that most words stay words. */
function flipped(model, token) {
  const turn = TASKS[model.task].turns.find((tokens) => tokens.includes(token));
  // a reserved token belongs to no kind
  return turn ? turn[(turn.indexOf(token) + 1) % turn.length] : 0;
}

/** What is wrong with a text, in a friendly sentence; else its tokens. */
function wordOrAdvice(model, text) {
  const { word, other } = readWord(model, text);
  const alphabet = model.symbols.map((symbol) => symbol.trim()).join(" ");
  if (other !== undefined) {
    return { advice: `“${other}” is not in the alphabet of ${model.title}, which is: ${alphabet}` };
  }
  if (word.length === 0) {
    return { advice: `Type a word of ${model.title}, or draw a random one. The alphabet is: ${alphabet}` };
  }
  if (word.length > model.most) {
    const count = word.length.toLocaleString("en");
    return { advice: `This word has ${count} tokens. The explorer reads up to ${model.most} here.` };
  }
  return { word };
}

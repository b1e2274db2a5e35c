// The six tasks as the page knows them: right answers, random words, and what a flip makes of a
// token. `turns` are the tokens that a flip goes round; words are arrays of tokens.

const upTo = (count) => Math.floor(Math.random() * count);
const drawn = (length, choices) => Array.from({ length }, () => upTo(choices));
const modulo = (value, by) => ((value % by) + by) % by;

const BITS = { turns: [[0, 1]], draw: (length) => drawn(length, 2) };
// of the alphabets: the operators, and what marks a missing bit and an odd length
const [PLUS, MINUS, TIMES] = [5, 6, 7];
const [HOLE, FILLER] = [2, 3];

function valueOfExpression(word) {
  const [first, ...rest] = word;
  if (word.length % 2 === 0 || first > 4) return null;
  let total = 0;
  let product = first;
  for (let at = 0; at < rest.length; at += 2) {
    const [operator, digit] = [rest[at], rest[at + 1]];
    if (digit > 4 || operator < PLUS || operator > TIMES) return null;
    // remainders on the way: the numbers of a long word are too large to be exact
    if (operator === TIMES) product = modulo(product * digit, 5);
    else {
      total = modulo(total + product, 5);
      product = operator === PLUS ? digit : -digit;
    }
  }
  return [modulo(total + product, 5)];
}

function missingBit(word) {
  if (word.length === 1 && word[0] === 1) return [1];
  const half = Math.floor(word.length / 2);
  if (word.slice(2 * half).some((token) => token !== FILLER)) return null;
  const missing = [];
  for (let at = 0; at < half; at++) {
    const [low, high] = [word[at], word[at + half]].sort((a, b) => a - b);
    if (high === HOLE && low < HOLE) missing.push(low);
    else if (low !== high || high >= HOLE) return null;
  }
  return missing.length === 1 ? missing : null;
}

function drawDuplicate(length) {
  if (length === 1) return [1];
  const bits = drawn(Math.floor(length / 2), 2);
  const word = [...bits, ...bits];
  word[upTo(word.length)] = HOLE;
  return length % 2 ? [...word, FILLER] : word;
}

// `label` gives the right answer, null for what is no word of the language
const TASKS = {
  even_pairs: {
    ...BITS,
    example: "0011010110010",
    label: (word) => [word[0] ^ word[word.length - 1]],
  },
  modular_arithmetic: {
    example: "2 - 1 * 2 + 4 * 3 - 3 + 1",
    turns: [[0, 1, 2, 3, 4], [PLUS, MINUS, TIMES]],
    label: valueOfExpression,
    draw: (length) =>
      Array.from({ length: length - 1 + (length % 2) }, (_, at) => (at % 2 ? PLUS + upTo(3) : upTo(5))),
  },
  parity_check: {
    ...BITS,
    example: "0110100110010",
    label: (word) => [word.reduce((sum, bit) => sum + bit, 0) % 2],
  },
  cycle_navigation: {
    example: "++.-+-++.+-.+",
    turns: [[0, 1, 2]],
    label: (word) => [modulo(word.reduce((place, step) => place + step - 1, 0), 5)],
    draw: (length) => drawn(length, 3),
  },
  missing_duplicate_string: {
    example: "010110010?10.",
    turns: [[0, 1, HOLE, FILLER]],
    label: missingBit,
    draw: drawDuplicate,
  },
  bucket_sort: {
    example: "31402213",
    turns: [[0, 1, 2, 3, 4]],
    label: (word) => [...word].sort((a, b) => a - b),
    draw: (length) => drawn(length, 5),
  },
};

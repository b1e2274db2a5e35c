// The answer after every prefix, as a table.

/** Rounded, but no share below one is said to be all. */
function percent(share) {
  const rounded = (100 * share).toFixed(2);
  return share < 1 && rounded === "100.00" ? "> 99.99 %" : `${rounded} %`;
}

class Answers {
  constructor(table, progress) {
    [this.body, this.progress, this.reading] = [table.tBodies[0], progress, null];
  }

  /** Add the rows of the answers that have come since. */
  show(reading) {
    if (reading !== this.reading) this.body.replaceChildren();
    this.reading = reading;
    const { answers, model, word, prefixes } = reading;
    for (let at = this.body.rows.length; at < answers.length; at++) {
      this.body.append(this.row(model, answers[at], word[at]));
    }
    this.progress.textContent = [
      answers.length < prefixes ? `${answers.length} of ${prefixes} prefixes are read …` : "",
      prefixes < word.length
        ? `The first ${prefixes} of ${word.length} prefixes are answered: each has as many answers as tokens.` : "",
    ].join(" ").trim();
  }

  row(model, answer, token) {
    const verdict = verdictOf(answer);
    const row = made("tr");
    const count = made("th");
    count.scope = "row";
    count.append(
      made("span", "explorer-count", answer.count), " ", made("code", "explorer-last", symbolOf(model, token)),
    );
    const truth = made("td", verdict === NO_WORD ? "explorer-quiet" : "");
    if (verdict === NO_WORD) truth.textContent = NO_WORD;
    else if (verdict === CORRECT) truth.append(made("span", "explorer-good", "✓ right"));
    else truth.append(made("span", "explorer-bad", "✗ "), made("code", "", showAnswer(model, answer.truth)));
    row.append(count, this.said(model, answer), made("td", "explorer-number", percent(answer.sure)), truth);
    return row;
  }

  /** The classes, with the wrong ones of a long answer marked. */
  said(model, { classes, right }) {
    const cell = made("td");
    const code = made("code");
    classes.forEach((one, at) => {
      const symbol = model.answers[one];
      if (right && !right[at]) code.append(made("span", "explorer-bad", symbol));
      else code.append(symbol);
    });
    code.normalize();
    cell.append(code);
    return cell;
  }
}

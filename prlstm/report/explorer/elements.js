// Small things of a page.

function made(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Buttons of which one is reached by Tab and the others from it, by arrows. */
function rove(buttons, active) {
  buttons.forEach((button, at) => (button.tabIndex = at === active ? 0 : -1));
}

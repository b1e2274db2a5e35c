// Values of h as colours: blue below zero, orange above it, the page's own ground at zero. The
// two are told apart by people who do not see all colours.

const ENDS = {
  light: { below: [8, 81, 156], above: [190, 76, 4] },
  dark: { below: [104, 186, 255], above: [255, 170, 84] },
};
// steps from -1 to 1
const STEPS = 255;
// below one, so that small values show; the legend is drawn by the same rule
const BEND = 0.65;

/** A colour of the page as numbers, whatever way it is written. */
function colourOf(element, name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  element.append(probe);
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  pen.fillStyle = getComputedStyle(probe).color;
  probe.remove();
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
}

const groundOf = (element) => colourOf(element, "--raised");
const WHITE = [255, 255, 255];

class Colours {
  /** `zero` is the colour of nothing, what they are seen on. */
  constructor(zero) {
    const { below, above } = ENDS[zero[0] + zero[1] + zero[2] > 384 ? "light" : "dark"];
    this.table = Array.from({ length: STEPS }, (_, step) => {
      const value = (2 * step) / (STEPS - 1) - 1;
      const share = Math.abs(value) ** BEND;
      return zero.map((ground, at) => ground + share * ((value < 0 ? below : above)[at] - ground));
    });
  }

  /** Rectangles of values side by side, a pixel each, as a picture to be enlarged. */
  picture(states, columns) {
    const rows = Math.ceil(states[0].length / columns);
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [states.length * columns, rows];
    const pen = canvas.getContext("2d");
    const image = pen.createImageData(canvas.width, rows);
    states.forEach((state, place) => {
      state.forEach((value, at) => {
        const x = place * columns + (at % columns);
        const pixel = 4 * (Math.floor(at / columns) * canvas.width + x);
        const inside = Math.min(1, Math.max(-1, value));
        image.data.set(this.table[Math.round(((inside + 1) / 2) * (STEPS - 1))], pixel);
        image.data[pixel + 3] = 255;
      });
    });
    pen.putImageData(image, 0, 0);
    return canvas;
  }

  /** The legend, on a canvas that is there. */
  scale(canvas) {
    const values = Array.from({ length: canvas.width }, (_, x) => (2 * x) / (canvas.width - 1) - 1);
    canvas.getContext("2d").drawImage(this.picture([values], canvas.width), 0, 0, canvas.width, canvas.height);
  }
}

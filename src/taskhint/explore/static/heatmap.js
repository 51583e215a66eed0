// The whole sequence at once: a row per position, to choose positions in.

import { briefly, colour, el } from "./dom.js";
import { places, ticks, widest } from "./ticks.js";

const LEFT = 30; // for the labels of rows
const TOP = 15; // for those of columns

// Cividis, which people with any kind of colour vision read alike.
const CIVIDIS = [
  [0, 32, 76], [28, 54, 110], [78, 87, 108], [124, 123, 120],
  [167, 157, 117], [213, 194, 95], [255, 234, 70],
];

function shade(level) {
  const place = (level / 255) * (CIVIDIS.length - 1);
  const i = Math.min(CIVIDIS.length - 2, Math.floor(place));
  return CIVIDIS[i].map((c, k) => Math.round(c + (CIVIDIS[i + 1][k] - c) * (place - i)));
}

const SHADES = Array.from({ length: 256 }, (_, level) => shade(level));

function painted(cells, rows, columns) {
  const image = new ImageData(columns, rows);
  for (let i = 0; i < cells.length; i += 1) {
    image.data.set(SHADES[cells[i]], 4 * i);
    image.data[4 * i + 3] = 255;
  }
  const canvas = new OffscreenCanvas(columns, rows);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

export class HeatMap {
  constructor(choose) {
    this.choose = choose;
    this.canvas = el("canvas", { tabindex: 0, role: "slider", "aria-label": "Position, in the heat map" });
    this.output = el("output", { "aria-live": "off" });
    this.low = el("span", {});
    this.middle = el("span", {});
    this.high = el("span", {});
    this.ramp = el("canvas", { width: 256, height: 1, "aria-hidden": true });
    const levels = Uint8Array.from({ length: 256 }, (_, i) => i);
    this.ramp.getContext("2d").drawImage(painted(levels, 1, 256), 0, 0);
    const scale = el("div", { class: "scale" }, this.ramp, this.low, this.middle, this.high);
    this.across = el("span", { class: "across" });
    this.down = el("span", { class: "down" });
    const axes = el("div", { class: "axes" }, this.down, this.across);
    const top = el("header", {}, axes, this.output);
    this.root = el("div", { class: "map chart" }, top, this.canvas, scale);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => { this.output.textContent = ""; });
    this.canvas.addEventListener("click", (event) => this.choose(this.under(event)[0]));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  // rows: a word for each row; columns: a word for each column, and whether they are places in the
  // sequence too; axes: what both are called.
  show(found, rows, { words, inSequence }, axes, at) {
    [this.down.textContent, this.across.textContent] = [`${axes[0]} ↓`, `${axes[1]} →`];
    const [high, wide] = found.arrays.cells;
    this.image = painted(found.cells, high, wide);
    Object.assign(this, { found, rows, columns: words, inSequence, at });
    this.low.textContent = briefly(found.low);
    this.middle.textContent = briefly(found.low + (found.high - found.low) * 0.5 ** (1 / found.power));
    this.high.textContent = briefly(found.high);
    this.mark(at);
  }

  mark(at) {
    this.at = at;
    if (!this.found) return;
    this.canvas.setAttribute("aria-valuemin", 0);
    this.canvas.setAttribute("aria-valuemax", this.rows.length - 1);
    this.canvas.setAttribute("aria-valuenow", at);
    this.canvas.setAttribute("aria-valuetext", `position ${at}, ${this.rows[at]}`);
    this.draw();
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const share = [(event.clientY - box.top - TOP) / (box.height - TOP), (event.clientX - box.left - LEFT) / (box.width - LEFT)];
    return share.map((s, k) => Math.min(this.found.shape[k] - 1, Math.max(0, Math.floor(s * this.found.shape[k]))));
  }

  hover(event) {
    if (!this.found) return;
    const [row, column] = this.under(event);
    const what = this.inSequence ? `key ${column} (${this.columns[column]})` : `token ${this.columns[column]}`;
    this.output.textContent = `position ${row} (${this.rows[row]}), ${what}`;
  }

  key(event) {
    const moves = { ArrowUp: this.at - 1, ArrowDown: this.at + 1 };
    if (!(event.key in moves)) return;
    this.choose(moves[event.key]);
    event.preventDefault();
  }

  draw() {
    if (!this.found || this.canvas.clientWidth === 0) return;
    const [rows, columns] = this.found.shape;
    const width = this.canvas.clientWidth - LEFT;
    const height = Math.round(Math.min(width, Math.max(90, (width * rows) / columns)));
    this.canvas.style.height = `${height + TOP}px`;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = (width + LEFT) * ratio;
    this.canvas.height = (height + TOP) * ratio;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.translate(LEFT, TOP);
    context.imageSmoothingEnabled = false;
    // The last pooled cell can stand for fewer positions than the others.
    const shown = [this.image.height * this.found.steps[0], this.image.width * this.found.steps[1]];
    context.save();
    context.beginPath();
    context.rect(0, 0, width, height);
    context.clip();
    context.drawImage(this.image, 0, 0, (width * shown[1]) / columns, (height * shown[0]) / rows);
    context.restore();
    this.drawLabels(context, width / columns, height / rows);
    this.drawChosen(context, width, height / rows);
  }

  drawLabels(context, across, down) {
    context.font = "10px system-ui, sans-serif";
    context.fillStyle = colour("soft");
    context.textAlign = "center";
    const along = this.inSequence ? places : ticks;
    for (const [i, text] of along(this.columns, across, widest(context, this.columns))) {
      context.fillText(text, (i + 0.5) * across, -4);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const [i, text] of places(this.rows, down, 11)) {
      context.fillText(text, -4, Math.max(3, (i + 0.5) * down), LEFT - 4);
    }
  }

  drawChosen(context, width, each) {
    for (const [line, size] of [["#ffffff", 3], [colour("said"), 1.5]]) {
      context.strokeStyle = line;
      context.lineWidth = size;
      context.strokeRect(0, this.at * each - 1, width, Math.max(2, each + 2));
    }
  }
}

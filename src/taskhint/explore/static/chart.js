// One row of bars on a canvas, with a cursor for pointer and keys. Every chart of a side is one.

import { colour, el, sized } from "./dom.js";
import { places, ticks, widest } from "./ticks.js";

const GLYPHS = { token: "●", successor: "▲", minimum: "■", right: "✓", said: "◆" };

export function glyph(name) {
  return GLYPHS[name];
}

export class Chart {
  // choose(i): what Enter or a click does with bar i, if anything.
  constructor(title, { height = 56, choose = null, label = title } = {}) {
    this.height = height;
    this.choose = choose;
    this.cursor = -1;
    // Not read aloud at each step; the canvas tells it when it is chosen.
    this.output = el("output", { "aria-live": "off" });
    this.canvas = el("canvas", { tabindex: 0, role: "slider", "aria-label": label });
    this.remark = el("b", {});
    this.root = el("div", { class: "chart" }, el("header", {}, el("span", {}, title, this.remark), this.output), this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.point(this.under(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(-1));
    this.canvas.addEventListener("blur", () => this.point(-1));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("click", (event) => this.take(this.under(event)));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  // values: numbers; labels: a word for each; marks: {name: index}; describe(i): the readout;
  // summary: the readout while nothing is pointed at; top: what a full bar means, if fixed;
  // along: which labels have room.
  show({ values, labels, marks = {}, describe, summary = "", top = null, along = ticks }) {
    Object.assign(this, { values, labels, marks, describe, summary, top, along });
    if (this.cursor >= values.length) this.cursor = -1;
    this.canvas.setAttribute("aria-valuemin", 0);
    this.canvas.setAttribute("aria-valuemax", Math.max(0, values.length - 1));
    this.point(this.cursor);
  }

  // Words that stay beside the title.
  note(text) {
    this.remark.textContent = text && ` · ${text}`;
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const at = Math.floor(((event.clientX - box.left) / box.width) * this.values.length);
    return Math.min(this.values.length - 1, Math.max(0, at));
  }

  point(at) {
    if (!this.values) return;
    this.cursor = at;
    const text = at < 0 ? this.summary : this.describe(at);
    this.output.textContent = text;
    this.canvas.setAttribute("aria-valuenow", Math.max(0, at));
    this.canvas.setAttribute("aria-valuetext", text || "nothing chosen");
    this.draw();
  }

  take(at) {
    if (this.choose !== null && at >= 0) this.choose(at);
  }

  key(event) {
    const last = this.values.length - 1;
    const moves = { ArrowLeft: this.cursor - 1, ArrowRight: this.cursor + 1, Home: 0, End: last };
    if (event.key === "Enter") this.take(this.cursor);
    else if (event.key in moves) this.point(Math.min(last, Math.max(0, moves[event.key])));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  draw() {
    if (!this.values || this.canvas.clientWidth === 0) return;
    const { context, width } = sized(this.canvas, this.height);
    const count = this.values.length;
    const each = width / count;
    const room = { top: Object.keys(this.marks).length ? 13 : 2, bottom: 13 };
    const low = Math.min(0, ...this.values);
    const high = this.top ?? Math.max(0, ...this.values);
    const unit = (this.height - room.top - room.bottom) / (high - low || 1);
    const zero = room.top + high * unit;
    const owners = new Map(Object.entries(this.marks).reverse().map(([name, i]) => [i, name]));
    const gap = each > 6 ? Math.min(4, each * 0.18) : 0;
    const plain = colour("bar");
    for (let i = 0; i < count; i += 1) {
      context.fillStyle = owners.has(i) ? colour(owners.get(i)) : plain;
      const size = this.values[i] * unit;
      const thin = Math.max(1, each - gap);
      context.fillRect(i * each + gap / 2, size > 0 ? zero - size : zero, thin, Math.abs(size));
    }
    context.fillStyle = colour("line");
    context.fillRect(0, zero, width, 1);
    this.drawLabels(context, each, width);
    this.drawMarks(context, each);
    this.drawCursor(context, each);
  }

  drawLabels(context, each, width) {
    context.font = "10px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillStyle = colour("soft");
    for (const [i, text] of this.along(this.labels, each, widest(context, this.labels))) {
      const [half, middle] = [context.measureText(text).width / 2, (i + 0.5) * each];
      if (middle + half <= width) context.fillText(text, Math.max(half, middle), this.height - 2);
    }
  }

  // Marks that would cover each other stand side by side; none leaves the canvas.
  drawMarks(context, each) {
    context.font = "10px system-ui, sans-serif";
    context.textAlign = "center";
    const marks = Object.entries(this.marks).sort((one, other) => one[1] - other[1]);
    const edge = this.canvas.clientWidth - 5;
    let free = 5;
    marks.forEach(([name, at], i) => {
      const x = Math.max(free, Math.min((at + 0.5) * each, edge - 10 * (marks.length - 1 - i)));
      free = x + 10;
      context.fillStyle = colour(name);
      context.fillText(GLYPHS[name], x, 10);
    });
  }

  drawCursor(context, each) {
    if (this.cursor < 0) return;
    context.strokeStyle = colour("ink");
    context.lineWidth = 1;
    context.strokeRect(this.cursor * each + 0.5, 0.5, Math.max(2, each - 1), this.height - 1);
  }
}

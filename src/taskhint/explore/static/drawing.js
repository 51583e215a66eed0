// An input drawn by hand: across is the place in it, up is the symbol.

import { colour, sized } from "./dom.js";

const HEIGHT = 150;

export class Drawing {
  // done(values): called with symbol numbers from 0 when a stroke ends.
  constructor(canvas, done) {
    Object.assign(this, { canvas, done, values: [], symbols: 1, words: [], cursor: 0, last: null });
    canvas.addEventListener("pointerdown", (event) => { this.last = null; canvas.setPointerCapture(event.pointerId); this.stroke(event); });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) this.stroke(event); });
    canvas.addEventListener("pointerup", () => done(this.values));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  set(values, words, symbols) {
    Object.assign(this, { values: [...values], words, symbols });
    this.cursor = Math.min(this.cursor, Math.max(0, values.length - 1));
    this.draw();
  }

  stroke(event) {
    const box = this.canvas.getBoundingClientRect();
    const count = this.values.length;
    const clamp = (x, most) => Math.min(most, Math.max(0, Math.floor(x)));
    const here = {
      place: clamp(((event.clientX - box.left) / box.width) * count, count - 1),
      value: clamp((1 - (event.clientY - box.top) / box.height) * this.symbols, this.symbols - 1),
    };
    const from = this.last ?? here;
    const steps = Math.max(1, Math.abs(here.place - from.place));
    for (let i = 0; i <= steps; i += 1) {
      const place = Math.round(from.place + ((here.place - from.place) * i) / steps);
      this.values[place] = Math.round(from.value + ((here.value - from.value) * i) / steps);
    }
    this.last = here;
    this.cursor = here.place;
    this.draw();
  }

  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.key === "Enter") this.done(this.values);
    else if (event.key in moves) {
      const [across, up] = moves[event.key];
      this.cursor = Math.min(this.values.length - 1, Math.max(0, this.cursor + across));
      this.values[this.cursor] = Math.min(this.symbols - 1, Math.max(0, this.values[this.cursor] + up));
      this.draw();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  draw() {
    if (this.canvas.clientWidth === 0 || !this.values.length) return;
    const { context, width } = sized(this.canvas, HEIGHT);
    const each = width / this.values.length;
    const unit = HEIGHT / this.symbols;
    context.fillStyle = colour("token");
    this.values.forEach((value, i) => {
      context.fillRect(i * each + 1, HEIGHT - (value + 1) * unit, Math.max(1, each - 2), Math.max(3, unit));
    });
    context.strokeStyle = colour("line");
    context.strokeRect(this.cursor * each + 0.5, 0.5, Math.max(2, each - 1), HEIGHT - 1);
    this.canvas.setAttribute("aria-valuenow", this.values[this.cursor]);
    this.canvas.setAttribute("aria-valuemin", 0);
    this.canvas.setAttribute("aria-valuemax", this.symbols - 1);
    this.canvas.setAttribute("aria-valuetext", `place ${this.cursor}: ${this.words[this.values[this.cursor]]}`);
  }
}

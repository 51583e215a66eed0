// The sequence as cells: what is read, and what each side says comes next.

import { el } from "./dom.js";

export class Strip {
  constructor(place, choose) {
    Object.assign(this, { place, choose, cells: [], at: -1 });
    place.addEventListener("click", (event) => {
      const cell = event.target.closest("button");
      if (cell !== null) choose(Number(cell.dataset.at));
    });
  }

  // sides: one or two {model, sequence}; the first one's tokens are shown.
  show(sides) {
    const [{ model, sequence }] = sides;
    this.cells = sequence.asked.map((asked, i) => {
      const id = sequence.tokens[i];
      const said = sides.map((side) => this.said(side, i));
      const kind = id >= model.symbols ? "mark" : i < sequence.inputs ? "input" : "answer";
      const changed = sides.length > 1 && asked && sides[0].sequence.said[i] !== sides[1].sequence.said[i];
      const label = `position ${i}: ${model.words[id]}${said.map((s) => s.label).join("")}${changed ? ", changed" : ""}`;
      return el("button", { type: "button", class: `${kind}${changed ? " changed" : ""}`, "data-at": i, tabindex: -1, "aria-label": label },
        el("b", {}, model.words[id]), ...said.map((s) => s.element));
    });
    this.place.replaceChildren(...this.cells);
  }

  said({ model, sequence }, i) {
    if (!sequence.asked[i]) return { element: el("i", {}), label: "" };
    const word = model.words[sequence.said[i]];
    const good = sequence.said[i] === sequence.tokens[i + 1];
    return {
      element: el("i", { class: good ? "right" : "wrong" }, `${good ? "✓" : "✗"}${word}`),
      label: `, says ${word}, ${good ? "right" : "wrong"}`,
    };
  }

  mark(at) {
    const before = this.cells[this.at];
    if (before) { before.removeAttribute("aria-current"); before.tabIndex = -1; }
    const cell = this.cells[at];
    const inside = before !== undefined && document.activeElement === before;
    cell.setAttribute("aria-current", "true");
    cell.tabIndex = 0;
    if (inside) cell.focus({ preventScroll: true });
    const { offsetTop, offsetHeight } = cell;
    const { scrollTop, clientHeight } = this.place;
    if (offsetTop < scrollTop || offsetTop + offsetHeight > scrollTop + clientHeight) {
      this.place.scrollTop = offsetTop - clientHeight / 2;
    }
    this.at = at;
  }
}

// The sequence as cells: what is read, and what each side says comes next.

import { el } from "./dom.js";

export function wrong({ sequence }, i) {
  return sequence.asked[i] && sequence.said[i] !== sequence.tokens[i + 1];
}

export function score(side) {
  const asked = side.sequence.asked.filter(Boolean).length;
  const bad = side.sequence.asked.filter((_, i) => wrong(side, i)).length;
  return `${asked - bad} of ${asked}`;
}

// Whether two sides say different words at a position; their ids may differ, as alphabets can.
export function differ(sides, i) {
  if (sides.length < 2 || !sides[0].sequence.asked[i]) return false;
  const [one, other] = sides.map(({ model, sequence }) => model.words[sequence.said[i]]);
  return one !== other;
}

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
    this.cells = sequence.asked.map((_, i) => {
      const id = sequence.tokens[i];
      const said = sides.map((side) => this.said(side, i));
      const kind = id >= model.symbols ? "mark" : i < sequence.inputs ? "input" : "answer";
      const changed = differ(sides, i);
      const label = `position ${i}: ${model.words[id]}${said.map((s) => s.label).join("")}${changed ? ", changed" : ""}`;
      return el("button", { type: "button", class: `${kind}${changed ? " changed" : ""}`, "data-at": i, tabindex: -1, "aria-label": label },
        el("b", {}, model.words[id]), ...said.map((s) => s.element));
    });
    this.place.replaceChildren(...this.cells);
  }

  said(side, i) {
    const { model, sequence } = side;
    if (!sequence.asked[i]) return { element: el("i", {}), label: "" };
    const word = model.words[sequence.said[i]];
    const good = !wrong(side, i);
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

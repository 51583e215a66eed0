// A table of the numbers behind charts, built when it is opened.

import { el, exactly } from "./dom.js";

export class Numbers {
  constructor(title) {
    this.place = el("div", { tabindex: 0, role: "region", "aria-label": title });
    this.root = el("details", { class: "numbers" }, el("summary", {}, title), this.place);
    this.root.addEventListener("toggle", () => this.build());
  }

  // head: words; rows(): arrays of words and numbers, the first of each names the row.
  show(head, rows) {
    this.head = head;
    this.rows = rows;
    this.build();
  }

  build() {
    if (!this.root.open || !this.rows) return;
    const head = el("tr", {}, ...this.head.map((word) => el("th", { scope: "col" }, word)));
    const body = this.rows().map((row) => {
      const cells = row.map((value, i) => {
        const text = typeof value === "number" ? exactly(value) : value;
        return i === 0 ? el("th", { scope: "row" }, text) : el("td", {}, text);
      });
      return el("tr", {}, ...cells);
    });
    this.place.replaceChildren(el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
  }
}

// Interventions: the form that makes them, and the list of those in force.

import { byId, el, fill } from "./dom.js";
import { streamName } from "./side.js";
import { words } from "./state.js";

export function editText(edit) {
  const where = `block ${edit.block}`;
  if (edit.kind === "knock-out-head") return `head ${edit.head} of ${where} → ${edit.by}`;
  if (edit.kind === "knock-out-mlp") return `MLP of ${where} → ${edit.by}`;
  if (edit.kind === "scale-temperature") return `temperature of ${where} × ${edit.factor}`;
  if (edit.kind === "replace-stream") return `${streamName(edit.stream)}: position ${edit.position} ← ${edit.source} of another input`;
  return ownText(edit);
}

// An edit of a kind that a user's file brought: its kind and its settings.
function ownText({ kind, ...settings }) {
  const said = Object.entries(settings).map(([name, value]) => `${name} = ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return said.length ? `${kind}: ${said.join(", ")}` : kind;
}

// `block=0 how=all` -> {block: 0, how: "all"}
function settings(text) {
  return Object.fromEntries(text.trim().split(/\s+/).filter((word) => word !== "").map((word) => {
    const [name, ...rest] = word.split("=");
    if (rest.length === 0) throw new Error(`setting ${word} is not NAME=VALUE`);
    const value = rest.join("=");
    try {
      return [name, JSON.parse(value)];
    } catch {
      return [name, value];
    }
  }));
}

export class Edits {
  // ask(symbols): the sequence of another input; add(edit); remove(index); position(): the chosen one.
  constructor({ ask, add, remove, position, fail }) {
    Object.assign(this, { ask, add, remove, position, fail });
    this.own = new Map();
    byId("edit-kind").addEventListener("change", () => {
      byId("edit-settings").value = this.own.get(byId("edit-kind").value) ?? "";
      this.fields();
    });
    byId("edit-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.made().then(add, fail);
    });
  }

  // Kinds of a user's own: their settings are written as on the command line.
  offer(kinds) {
    for (const { kind, settings } of kinds) {
      this.own.set(kind, settings);
      byId("edit-kind").append(el("option", { value: kind }, kind));
    }
  }

  model(model) {
    const range = (count) => Array.from({ length: count }, (_, i) => [String(i), String(i)]);
    fill(byId("edit-block"), range(model.depth));
    fill(byId("edit-head"), range(model.heads));
    const names = ["embedding"];
    for (let i = 0; i < model.depth; i += 1) names.push(`blocks.${i}.after_attention`, `blocks.${i}.after_mlp`);
    fill(byId("edit-stream"), names.map((name) => [name, streamName(name)]));
    this.fields();
  }

  fields() {
    const chosen = byId("edit-kind").value;
    const kind = this.own.has(chosen) ? "own" : chosen;
    for (const label of byId("edit-form").querySelectorAll("[data-for]")) {
      label.hidden = !label.dataset.for.split(" ").includes(kind);
    }
  }

  async made() {
    const kind = byId("edit-kind").value;
    if (this.own.has(kind)) return { kind, ...settings(byId("edit-settings").value) };
    const block = Number(byId("edit-block").value);
    const by = byId("edit-by").value;
    if (kind === "knock-out-head") return { kind, block, head: Number(byId("edit-head").value), by };
    if (kind === "knock-out-mlp") return { kind, block, by };
    if (kind === "scale-temperature") return { kind, block, factor: Number(byId("edit-factor").value) };
    const other = await this.ask(words(byId("edit-other").value));
    return {
      kind, stream: byId("edit-stream").value, position: this.position(),
      tokens: Array.from(other.tokens).slice(0, -1), inputs: other.inputs, source: Number(byId("edit-source").value),
    };
  }

  show(edits) {
    const inside = byId("edits").contains(document.activeElement);
    byId("edits").replaceChildren(...edits.map((edit, i) => {
      const text = editText(edit);
      const button = el("button", { type: "button", "aria-label": `Take away: ${text}`, onclick: () => this.remove(i) }, "✕");
      return el("li", {}, text, button);
    }));
    // The button that was pressed is gone: the keyboard goes on from the next one.
    if (inside) (byId("edits").querySelector("button") ?? byId("intervene").querySelector("summary")).focus();
  }
}

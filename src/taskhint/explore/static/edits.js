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

export class Edits {
  // ask(symbols): the sequence of another input; add(edit); remove(index); position(): the chosen one.
  constructor({ ask, add, remove, position, fail }) {
    Object.assign(this, { ask, add, remove, position, fail });
    byId("edit-kind").addEventListener("change", () => this.fields());
    byId("edit-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.made().then(add, fail);
    });
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
    const kind = byId("edit-kind").value;
    for (const label of byId("edit-form").querySelectorAll("[data-for]")) {
      label.hidden = !label.dataset.for.split(" ").includes(kind);
    }
  }

  async made() {
    const kind = byId("edit-kind").value;
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
    byId("edits").replaceChildren(...edits.map((edit, i) => {
      const text = editText(edit);
      const button = el("button", { type: "button", "aria-label": `Take away: ${text}`, onclick: () => this.remove(i) }, "✕");
      return el("li", {}, text, button);
    }));
  }
}

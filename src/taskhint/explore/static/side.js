// Everything about one position of one pass: verdict, attention, streams, logits, heat map.

import { Chart, glyph } from "./chart.js";
import { briefly, el, exactly, fill, percent } from "./dom.js";
import { HeatMap } from "./heatmap.js";
import { Numbers } from "./numbers.js";
import { places } from "./ticks.js";

const LANDMARKS = { token: "token", successor: "next larger input symbol", minimum: "smallest input symbol", right: "right next token" };

export function streamName(stream) {
  if (stream === "embedding") return "Embedding";
  const [, block, part] = stream.split(".");
  return `Block ${block}, ${part === "after_mlp" ? "after" : "before"} the MLP`;
}

function legend(names) {
  const items = Object.entries(names).map(([name, text]) => el("span", { class: name }, `${glyph(name)} ${text}`));
  return el("p", { class: "legend" }, ...items);
}

function largest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i += 1) if (values[i] > values[best]) best = i;
  return best;
}

export class Side {
  // choose(position) moves the page; chooseMap(map) changes the heat map of both sides.
  constructor(name, model, choose, chooseMap) {
    Object.assign(this, { name, model, choose, chooseMap });
    this.verdict = el("p", { class: "verdict" });
    this.heads = [];
    this.streams = [];
    this.attentionNumbers = new Numbers("Attention, numbers");
    this.streamNumbers = new Numbers("Streams, numbers");
    this.logitNumbers = new Numbers("Logits, numbers");
    this.logits = new Chart("", { height: 76, label: "Logits" });
    const marked = model.ordered ? ["token", "successor", "minimum"] : ["token", "right"];
    this.landmarks = Object.fromEntries(marked.map((key) => [key, LANDMARKS[key]]));
    this.map = new HeatMap(choose);
    this.mapChoice = el("select", { "aria-label": "What the heat map shows" });
    this.mapChoice.addEventListener("change", () => chooseMap(JSON.parse(this.mapChoice.value)));
    this.root = el("article", { class: "card side", "aria-label": name });
    this.build();
  }

  build() {
    const { depth, heads } = this.model;
    for (let block = 0; block < depth; block += 1) {
      for (let head = 0; head < heads; head += 1) {
        this.heads.push(new Chart(`Block ${block}, head ${head}`, { choose: this.choose }));
      }
    }
    const names = ["embedding"];
    for (let i = 0; i < depth; i += 1) names.push(`blocks.${i}.after_attention`, `blocks.${i}.after_mlp`);
    this.streams = names.map((stream) => ({
      name: streamName(stream),
      encoder: new Chart("encoder basis", { height: 64, label: `${streamName(stream)}, encoder basis` }),
      decoder: new Chart("decoder basis", { height: 64, label: `${streamName(stream)}, decoder basis` }),
    }));
    this.mapChoices = this.listMaps(names);
    this.root.append(
      el("div", { class: "heading" }, el("h2", {}, this.name), el("p", { class: "note" }, this.describeModel())),
      this.verdict,
      el("div", { class: "columns" }, this.mainPart(), this.streamsPart(), this.mapPart()),
    );
  }

  mainPart() {
    return el("div", { class: "main" },
      el("h3", {}, "Attention of this position ", el("span", { class: "note" }, "a bar of full height is weight 1")),
      el("div", { class: "charts" }, ...this.heads.map((chart) => chart.root)),
      this.attentionNumbers.root,
      el("h3", {}, "Logits of the next token"), legend({ right: "right", said: "said" }),
      this.logits.root, this.logitNumbers.root);
  }

  streamsPart() {
    const pairs = this.streams.flatMap((pair) => [el("h4", {}, pair.name), pair.encoder.root, pair.decoder.root]);
    return el("div", { class: "streams" },
      el("h3", {}, "The stream, projected on tokens"), legend(this.landmarks),
      el("div", { class: "pairs" }, ...pairs), this.streamNumbers.root);
  }

  mapPart() {
    return el("div", { class: "whole" }, el("h3", {}, "Whole sequence"), this.mapChoice, this.map.root);
  }

  describeModel() {
    const m = this.model;
    return `${m.recipe}, seed ${m.seed}, ${m.updates} updates · ${m.depth} blocks of ${m.heads} heads · temperature ${m.temperature} · positions ${m.positions}`;
  }

  listMaps(streams) {
    const { depth, heads } = this.model;
    const maps = [];
    for (let block = 0; block < depth; block += 1) {
      for (let head = 0; head < heads; head += 1) {
        maps.push([{ show: "attention", block, head }, `attention, block ${block}, head ${head}`]);
      }
    }
    for (const stream of streams) {
      for (const show of ["encoder", "decoder"]) maps.push([{ show, stream }, `${streamName(stream)} · ${show} basis`]);
    }
    return maps.map(([map, text]) => [JSON.stringify(map), text]);
  }

  // A knocked-out head still looks; what it gathers is not used.
  showEdits(edits) {
    this.heads.forEach((chart, i) => {
      const block = Math.floor(i / this.model.heads);
      const out = edits.find((edit) => edit.kind === "knock-out-head" && edit.block === block && edit.head === i % this.model.heads);
      const by = out && (out.by === "mean" ? "its mean" : "zero");
      chart.note(out ? `output set to ${by}` : "");
    });
  }

  word(id) {
    return this.model.words[id];
  }

  showPosition(sequence, found) {
    this.showVerdict(sequence, found);
    this.showAttention(sequence, found);
    this.showStreams(found);
    this.showLogits(found);
    this.map.mark(found.position);
  }

  showVerdict(sequence, found) {
    const asked = sequence.asked[found.position];
    const good = found.said === found.right;
    const share = percent(found.shares[found.said]);
    const said = el("strong", {}, this.word(found.said));
    const right = el("strong", {}, this.word(found.right));
    const mark = good ? el("span", { class: "good" }, " ✓ right") : el("span", { class: "bad" }, " ✗ wrong, right is ");
    const tail = asked ? [mark, ...(good ? [] : [right])] : [" (nothing is asked here)"];
    this.verdict.replaceChildren(`reads ${this.word(found.token)}, says `, said, ` with ${share}`, ...tail);
  }

  showAttention(sequence, found) {
    const count = found.position + 1;
    const labels = Array.from(sequence.tokens.subarray(0, count), (id) => this.word(id));
    this.heads.forEach((chart, i) => {
      const weights = found.weights.subarray(i * count, (i + 1) * count);
      const logits = found.attention_logits.subarray(i * count, (i + 1) * count);
      const best = largest(weights);
      chart.show({
        values: weights, labels, top: 1, along: places,
        summary: `most: ${labels[best]} at ${best}, ${briefly(weights[best])}`,
        describe: (k) => `key ${k}: ${labels[k]}, weight ${exactly(weights[k])}, logit ${exactly(logits[k])}`,
      });
    });
    const { heads } = this.model;
    const each = this.heads.map((_, i) => `${Math.floor(i / heads)}.${i % heads}`);
    this.attentionNumbers.show(
      ["key", "symbol", ...each.flatMap((name) => [`weight ${name}`, `logit ${name}`])],
      () => labels.map((label, k) => [String(k), label, ...each.flatMap((_, i) => [found.weights[i * count + k], found.attention_logits[i * count + k]])]),
    );
  }

  showStreams(found) {
    const labels = this.model.words;
    const q = labels.length;
    const marks = {};
    for (const name of Object.keys(this.landmarks)) if (found[name] >= 0) marks[name] = found[name];
    this.streams.forEach((pair, i) => {
      for (const basis of ["encoder", "decoder"]) {
        const values = found[basis].subarray(i * q, (i + 1) * q);
        const best = largest(values);
        pair[basis].show({
          values, labels, marks,
          summary: values.every((value) => value === values[0]) ? `all ${briefly(values[0])}` : `most: ${labels[best]}, ${briefly(values[best])}`,
          describe: (k) => `${labels[k]}: ${exactly(values[k])}${this.notes(k, marks)}`,
        });
      }
    });
    this.streamNumbers.show(
      ["token", ...found.streams.flatMap((name) => [`${name} encoder`, `${name} decoder`])],
      () => labels.map((label, k) => [label, ...found.streams.flatMap((_, i) => [found.encoder[i * q + k], found.decoder[i * q + k]])]),
    );
  }

  notes(k, marks) {
    const names = Object.keys(marks).filter((name) => marks[name] === k);
    return names.length ? ` (${names.map((name) => LANDMARKS[name] ?? name).join(", ")})` : "";
  }

  showLogits(found) {
    const labels = this.model.words;
    const marks = { right: found.right, said: found.said };
    this.logits.show({
      values: found.logits, labels, marks,
      summary: `most: ${labels[found.said]}, ${briefly(found.logits[found.said])}`,
      describe: (k) => `${labels[k]}: logit ${exactly(found.logits[k])}, share ${exactly(found.shares[k])}${this.notes(k, marks)}`,
    });
    this.logitNumbers.show(["token", "logit", "share"], () => labels.map((label, k) => [label, found.logits[k], found.shares[k]]));
  }

  // Again, in the colours of now.
  draw() {
    const charts = this.streams.flatMap((pair) => [pair.encoder, pair.decoder]);
    for (const chart of [...this.heads, this.logits, ...charts, this.map]) chart.draw();
  }

  showMap(sequence, found, map, at) {
    fill(this.mapChoice, this.mapChoices, JSON.stringify(map));
    const rows = Array.from(sequence.tokens.subarray(0, found.shape[0]), (id) => this.word(id));
    const inSequence = map.show === "attention";
    const axes = inSequence ? ["queries", "keys"] : ["positions", "tokens"];
    this.map.show(found, rows, { words: inSequence ? rows : this.model.words, inSequence }, axes, at);
  }
}

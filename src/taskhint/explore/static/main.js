// The page: state in the address, one or two sides, and what moves between positions.

import { byId, fill, percent } from "./dom.js";
import { Drawing } from "./drawing.js";
import { Edits } from "./edits.js";
import { Side } from "./side.js";
import { Source } from "./source.js";
import { fromAddress, START, toAddress, words } from "./state.js";
import { differ, score, Strip, wrong } from "./strip.js";

const source = new Source();
let catalogue = null;
let state = { ...START };
let sides = []; // {model, index, edits, view, sequence}
let turn = 0; // the newest load; older ones are dropped
let moving = false; // whether a position is on its way

const strip = new Strip(byId("sequence"), (at) => go(at));
const drawing = new Drawing(byId("draw"), (values) => {
  const model = catalogue.models[state.a];
  setInput(values.map((value) => model.words[value]));
});
const edits = new Edits({
  ask: (symbols) => source.ask("sequence", { model: state.b >= 0 ? state.b : state.a, symbols, edits: [] }),
  add: (edit) => setEdits([...state.edits, edit]),
  remove: (i) => setEdits(state.edits.filter((_, k) => k !== i)),
  position: () => state.at,
  fail: (error) => say(error.message),
});

function say(text) {
  byId("message").hidden = !text;
  byId("message").textContent = text;
}

function request(side, extra = {}) {
  return { model: side.index, symbols: state.input, edits: side.edits, ...extra };
}

function change(part, at = state.at) {
  state = { ...state, ...part, at };
  return load();
}

function setInput(input) {
  return change({ input }, -1);
}

function setEdits(list) {
  const b = list.length && state.b < 0 ? state.a : state.b;
  const alone = !list.length && state.b === state.a;
  return change({ edits: list, b: alone ? -1 : b });
}

function remember() {
  history.replaceState(null, "", toAddress(state));
}

// Everything anew: the passes of both sides, then the position and the heat map.
async function load() {
  const mine = (turn += 1);
  say("");
  const most = catalogue.models.length - 1;
  state.a = Math.min(Math.max(0, state.a), most);
  state.b = Math.min(state.b, most);
  if (state.b >= 0 && !comparable(state.b)) Object.assign(state, { b: -1, edits: [] });
  const asked = [{ index: state.a, edits: [] }];
  if (state.b >= 0) asked.push({ index: state.b, edits: state.edits });
  controls();
  try {
    const found = await Promise.all(asked.map((side) => source.ask("sequence", request(side))));
    if (mine !== turn) return;
    build(asked, found);
    await Promise.all([position(), heatMap()]);
  } catch (error) {
    if (mine === turn) say(error.message);
  }
  document.body.dataset.ready = String(mine);
}

// Two models can read the same input if they have the same task.
function comparable(i) {
  return catalogue.models[i].task === catalogue.models[state.a].task;
}

function build(asked, found) {
  const shape = (list) => JSON.stringify(list.map((side) => [side.index, side.edits.length > 0]));
  const keep = shape(sides) === shape(asked);
  const views = asked.map((side, i) => (keep ? sides[i].view : newView(side, i)));
  sides = asked.map((side, i) => ({ ...side, model: catalogue.models[side.index], view: views[i], sequence: found[i] }));
  for (const side of sides) side.view.showEdits(side.edits);
  if (!keep) byId("sides").replaceChildren(...views.map((view) => view.root));
  byId("sides").classList.toggle("two", sides.length > 1);
  const count = Math.min(...found.map((sequence) => sequence.asked.length));
  const start = found[0].asked.indexOf(true);
  state.at = state.at < 0 ? start : Math.min(state.at, count - 1);
  byId("slider").max = count - 1;
  strip.show(sides);
  showChanges();
}

function newView(side, i) {
  const model = catalogue.models[side.index];
  const name = sidesName(i, side, model);
  return new Side(name, model, go, (map) => { state = { ...state, map }; remember(); heatMap().catch((error) => say(error.message)); });
}

function sidesName(i, side, model) {
  if (state.b < 0) return model.name;
  return `${i === 0 ? "A" : "B"}: ${model.name}${side.edits.length ? ", changed" : ""}`;
}

async function position() {
  const at = state.at;
  strip.mark(at);
  byId("slider").value = at;
  byId("slider").setAttribute("aria-valuetext", `position ${at} of ${byId("slider").max}`);
  remember();
  const mine = turn;
  const found = await Promise.all(sides.map((side) => source.ask("position", request(side, { position: at }))));
  if (mine !== turn) return;
  sides.forEach((side, i) => side.view.showPosition(side.sequence, found[i]));
  byId("where").textContent = `Position ${at} of ${byId("slider").max}: ${sides.map((side) => side.view.verdict.textContent).join(" — ")}`;
  showDifference(found);
}

async function heatMap() {
  const found = await Promise.all(sides.map((side) => source.ask("map", request(side, fittingMap(side.model)))));
  sides.forEach((side, i) => side.view.showMap(side.sequence, found[i], fittingMap(side.model), state.at));
}

// The chosen heat map, or the nearest that a smaller model has.
function fittingMap(model) {
  const { show, block, head, stream } = state.map;
  if (show === "attention") return { show, block: Math.min(block, model.depth - 1), head: Math.min(head, model.heads - 1) };
  return { show, stream };
}

// While a position is on its way, only the newest wish counts.
async function go(at) {
  if (!sides.length) return;
  state.at = Math.min(Number(byId("slider").max), Math.max(0, at));
  if (moving) return;
  moving = true;
  try {
    let shown = -1;
    while (shown !== state.at) {
      shown = state.at;
      await position();
    }
    say("");
  } catch (error) {
    say(error.message);
  } finally {
    moving = false;
  }
}

function find(from, wanted) {
  for (let i = from; i <= Number(byId("slider").max); i += 1) if (wanted(i)) return i;
  return -1;
}

function jump(from, wanted, none) {
  const at = find(from, wanted);
  if (at < 0) byId("where").textContent = none;
  else go(at);
}

function firstError() {
  jump(0, (i) => sides.some((side) => wrong(side, i)), "Every answer token is right.");
}

function nextError() {
  jump(state.at + 1, (i) => differ(sides, i) || sides.some((side) => wrong(side, i)), "No error and no change after this position.");
}

function showChanges() {
  const box = byId("changed");
  box.hidden = sides.length < 2;
  if (sides.length < 2) return;
  const places = sides[0].sequence.asked.map((_, i) => i).filter((i) => differ(sides, i));
  const shown = places.slice(0, 12).join(", ") + (places.length > 12 ? ", …" : "");
  const list = places.length ? ` (position ${shown})` : "";
  box.dataset.all = `A is right at ${score(sides[0])}, B at ${score(sides[1])}; they differ at ${places.length}${list}.`;
  box.textContent = box.dataset.all;
}

function showDifference(found) {
  if (found.length < 2) return;
  const [a, b] = found;
  const [one, other] = sides.map((side) => side.model.words);
  const place = new Map(other.map((word, k) => [word, k]));
  const moved = one.map((word, k) => [word, a.shares[k], place.has(word) ? b.shares[place.get(word)] : 0])
    .sort((x, y) => Math.abs(y[2] - y[1]) - Math.abs(x[2] - x[1])).slice(0, 3)
    .filter(([, x, y]) => Math.abs(x - y) > 5e-4)
    .map(([word, x, y]) => `${word}: ${percent(x)} → ${percent(y)}`);
  const here = moved.length ? `Here: ${moved.join(", ")}.` : "Here: the same.";
  byId("changed").textContent = `${byId("changed").dataset.all} ${here}`;
}

function controls() {
  const model = catalogue.models[state.a];
  const names = catalogue.models.map((each, i) => [String(i), each.name]);
  fill(byId("model-a"), names, String(state.a));
  fill(byId("model-b"), [["-1", "nothing"], ...names.filter((_, i) => comparable(i))], String(state.b));
  if (document.activeElement !== byId("input") || byId("message").hidden) byId("input").value = state.input.join(" ");
  const drawn = byId("distribution");
  fill(drawn, model.distributions.map((name) => [name, name === "rep:R" ? "rep(n, r)" : name]), drawn.value);
  byId("copies-label").hidden = drawn.value !== "rep:R";
  byId("about").textContent = `${model.task}: ${model.about}`;
  edits.model(catalogue.models[state.b >= 0 ? state.b : state.a]);
  edits.show(state.edits);
  const place = new Map(model.words.map((word, id) => [word, id]));
  const values = state.input.map((word) => place.get(word) ?? 0).map((id) => Math.min(id, model.symbols - 1));
  drawing.set(values, model.words, model.symbols);
  byId("drawing").hidden = source.saved !== null || !model.drawable;
  applyTheme();
}

function applyTheme() {
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  else delete document.documentElement.dataset.theme;
  byId("theme").setAttribute("aria-label", `Colours: ${state.theme || "as the system"}`);
}

function repaint() {
  for (const { view } of sides) {
    for (const chart of [...view.heads, view.logits, ...view.streams.flatMap((pair) => [pair.encoder, pair.decoder])]) chart.draw();
    view.map.draw();
  }
  drawing.draw();
}

let numbers = 0; // how many random inputs were asked for

async function another() {
  const copies = byId("copies").value;
  const distribution = byId("distribution").value.replace("R", copies);
  try {
    const found = await source.ask("random", { model: state.a, length: Number(byId("length").value), distribution, number: numbers });
    numbers += 1;
    await setInput(found.input);
  } catch (error) {
    say(error.message);
  }
}

function toggleTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = state.theme || (dark ? "dark" : "light");
  state = { ...state, theme: now === "dark" ? "light" : "dark" };
  applyTheme();
  remember();
  repaint();
}

function on(id, event, action) {
  byId(id).addEventListener(event, (e) => {
    if (event === "submit") e.preventDefault();
    action(e);
  });
}

function wire() {
  on("input-form", "submit", () => setInput(words(byId("input").value)));
  on("saved-form", "submit", () => {});
  on("saved-input", "change", () => setInput(words(byId("saved-input").value)));
  on("random-form", "submit", another);
  on("models-form", "submit", () => {});
  on("model-a", "change", (e) => change({ a: Number(e.target.value) }));
  on("model-b", "change", (e) => change({ b: Number(e.target.value), edits: e.target.value === "-1" ? [] : state.edits }));
  on("distribution", "change", (e) => { byId("copies-label").hidden = e.target.value !== "rep:R"; });
  on("slider", "input", (e) => go(Number(e.target.value)));
  on("back", "click", () => go(state.at - 1));
  on("forward", "click", () => go(state.at + 1));
  on("error", "click", firstError);
  on("next-error", "click", nextError);
  on("theme", "click", toggleTheme);
  on("help-button", "click", toggleHelp);
  on("copy", "click", () => navigator.clipboard.writeText(location.href).then(() => { byId("copy").textContent = "Copied"; }, () => say("the browser does not allow copying; take the address from its bar")));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  window.addEventListener("hashchange", () => { state = fromAddress(location.hash); load(); });
  document.addEventListener("keydown", key);
}

function toggleHelp() {
  const hidden = !byId("help").hidden;
  byId("help").hidden = hidden;
  byId("help-button").setAttribute("aria-expanded", String(!hidden));
}

const KEYS = {
  ArrowLeft: () => go(state.at - 1),
  ArrowRight: () => go(state.at + 1),
  Home: () => go(0),
  End: () => go(Number(byId("slider").max)),
  b: () => go(sides[0].sequence.inputs),
  e: firstError,
  n: nextError,
  i: () => byId("input").focus(),
  "?": toggleHelp,
};

function key(event) {
  const typing = event.target.closest("input, select, textarea") !== null;
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  if (event.defaultPrevented) return;
  event.preventDefault();
  KEYS[event.key]();
}

function useSaved() {
  const { saved } = source;
  if (saved === null) return;
  for (const id of ["input-form", "random-form", "intervene"]) byId(id).hidden = true;
  byId("saved-form").hidden = false;
  fill(byId("saved-input"), saved.inputs.map((input) => [input.join(" "), input.join(" ")]), state.input.join(" "));
}

function first() {
  state = fromAddress(location.hash);
  const { saved } = source;
  const fresh = state.input.length === 0;
  if (fresh) state.input = saved === null ? catalogue.models[0].example : saved.inputs[0];
  if (fresh && saved !== null && saved.edits.length) Object.assign(state, { edits: saved.edits, b: state.a });
  else if (fresh && state.b < 0 && catalogue.models.length === 2) state.b = 1;
}

async function start() {
  try {
    catalogue = await source.models();
  } catch {
    say("the server does not answer; is the command still running?");
    return;
  }
  first();
  useSaved();
  wire();
  await load();
}

start();

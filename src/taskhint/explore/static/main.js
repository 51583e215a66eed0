// The page: state in the address, one or two sides, and what moves between positions.

import { Address } from "./address.js";
import { hereText, sumText } from "./changes.js";
import { byId, fill } from "./dom.js";
import { Drawing } from "./drawing.js";
import { Edits } from "./edits.js";
import { Side } from "./side.js";
import { Source } from "./source.js";
import { fittingMap, fromAddress, START, toAddress, words } from "./state.js";
import { differ, Strip, wrong } from "./strip.js";
import { applyTheme, otherTheme } from "./theme.js";

const source = new Source();
const address = new Address();
let catalogue = null;
let state = { ...START };
let sides = []; // {model, index, edits, view, sequence}
let good = null; // the newest state that could be shown
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
  address.write(toAddress(state));
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
    await Promise.all([position(), heatMap().catch((error) => say(error.message))]);
    good = state;
  } catch (error) {
    if (mine === turn) await goBack(error.message);
  }
  document.body.dataset.ready = String(mine);
}

// What cannot be shown stays in the input's box, to be mended; all else is as it was before.
async function goBack(why) {
  const asked = state.input;
  const first = good === null;
  if (first && asked.join(" ") === ownInput(state.a).join(" ")) return say(why);
  state = first ? { ...START, theme: state.theme, a: state.a, input: ownInput(state.a) } : good;
  if (first) await load();
  else controls();
  byId("input").value = asked.join(" ");
  remember();
  return say(why);
}

// An input that a model can read.
function ownInput(a) {
  return source.saved === null ? catalogue.models[a].example : source.saved.inputs[0];
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
  return state.b < 0 ? model.name : `${i === 0 ? "A" : "B"}: ${model.name}${side.edits.length ? ", changed" : ""}`;
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
  const verdicts = sides.map((side, i) => (sides.length > 1 ? `${"AB"[i]} ` : "") + side.view.verdict.textContent);
  byId("where").textContent = `Position ${at} of ${byId("slider").max}: ${verdicts.join("; ")}`;
  showDifference(found);
}

async function heatMap() {
  const found = await Promise.all(sides.map((side) => source.ask("map", request(side, fittingMap(state.map, side.model)))));
  sides.forEach((side, i) => side.view.showMap(side.sequence, found[i], fittingMap(state.map, side.model), state.at));
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
  box.dataset.all = sumText(sides);
  box.textContent = box.dataset.all;
}

function showDifference(found) {
  if (found.length < 2) return;
  byId("changed").textContent = `${byId("changed").dataset.all} ${hereText(sides, found)}`;
}

function controls() {
  const model = catalogue.models[state.a];
  byId("input").placeholder = `symbols from ${model.words[0]} to ${model.words[model.symbols - 1]}, with spaces between`;
  const names = catalogue.models.map((each, i) => [String(i), each.name]);
  fill(byId("model-a"), names, String(state.a));
  fill(byId("model-b"), [["-1", "nothing"], ...names.filter((_, i) => comparable(i))], String(state.b));
  byId("input").value = state.input.join(" ");
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
  applyTheme(state.theme);
}

function repaint() {
  for (const { view } of sides) view.draw();
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

// A model of another task gets an input of its own.
function chooseModel(a) {
  const [before, now] = [state.a, a].map((i) => catalogue.models[i].task);
  if (before === now) return change({ a });
  return change({ a, input: ownInput(a), edits: [] }, -1);
}

function toggleTheme() {
  state = { ...state, theme: otherTheme(state.theme) };
  applyTheme(state.theme);
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
  on("model-a", "change", (e) => chooseModel(Number(e.target.value)));
  on("model-b", "change", (e) => change({ b: Number(e.target.value), edits: e.target.value === "-1" ? [] : state.edits }));
  on("distribution", "change", (e) => { byId("copies-label").hidden = e.target.value !== "rep:R"; });
  on("slider", "input", (e) => go(Number(e.target.value)));
  on("back", "click", () => go(state.at - 1));
  on("forward", "click", () => go(state.at + 1));
  on("error", "click", firstError);
  on("next-error", "click", nextError);
  on("theme", "click", toggleTheme);
  on("help-button", "click", toggleHelp);
  on("copy", "click", () => address.copy(byId("copy"), say));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  window.addEventListener("hashchange", () => { address.forget(); state = fromAddress(location.hash); load(); });
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
  const typing = event.target.closest("input:not([type=range]), select, textarea") !== null;
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
  state.a = Math.min(Math.max(0, state.a), catalogue.models.length - 1);
  if (fresh) state.input = ownInput(state.a);
  if (fresh && saved !== null && saved.edits.length) Object.assign(state, { edits: saved.edits, b: state.a });
  else if (fresh && state.b < 0 && catalogue.models.length === 2) state.b = 1 - state.a;
}

async function start() {
  try {
    catalogue = await source.models();
  } catch {
    say("the server does not answer; is the command still running?");
    return;
  }
  first();
  edits.offer(catalogue.edits);
  useSaved();
  wire();
  await load();
}

start();

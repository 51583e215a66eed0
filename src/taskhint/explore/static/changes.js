// What two sides say differently, in words.

import { percent } from "./dom.js";
import { differ, score } from "./strip.js";

export function sumText(sides) {
  const places = sides[0].sequence.asked.map((_, i) => i).filter((i) => differ(sides, i));
  const shown = places.slice(0, 12).join(", ") + (places.length > 12 ? ", …" : "");
  const list = places.length ? ` (position${places.length > 1 ? "s" : ""} ${shown})` : "";
  return `A is right at ${score(sides[0])}, B at ${score(sides[1])}; they differ at ${places.length}${list}.`;
}

// The three tokens whose share differs most at a position.
export function hereText(sides, [a, b]) {
  const [one, other] = sides.map((side) => side.model.words);
  const place = new Map(other.map((word, k) => [word, k]));
  const moved = one.map((word, k) => [word, a.shares[k], place.has(word) ? b.shares[place.get(word)] : 0])
    .sort((x, y) => Math.abs(y[2] - y[1]) - Math.abs(x[2] - x[1])).slice(0, 3)
    .filter(([, x, y]) => Math.abs(x - y) > 5e-4)
    .map(([word, x, y]) => `${word}: ${percent(x)} → ${percent(y)}`);
  return moved.length ? `Here: ${moved.join(", ")}.` : "Here: the same.";
}

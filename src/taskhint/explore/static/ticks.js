// Labels along an axis: only as many as have room, so that none covers another.

const STRIDES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
const NUMBER = /^-?\d+$/;

// Which of the labels stand where each has `room` pixels and needs `size`: all, or the round ones.
export function ticks(labels, room, size) {
  if (room >= size) return labels.map((text, i) => [i, text]);
  const stride = STRIDES.find((step) => step * room >= size) ?? labels.length;
  const numbered = labels.filter((text) => NUMBER.test(text)).length > labels.length / 2;
  const round = (text, i) => (numbered ? NUMBER.test(text) && Number(text) % stride === 0 : i % stride === 0);
  return labels.map((text, i) => [i, text]).filter(([i, text]) => round(text, i));
}

// Places in a sequence: its words if all have room, else position numbers, and ⊥ where it stands.
export function places(words, room, size) {
  if (room >= size) return ticks(words, room, size);
  const mark = words.indexOf("⊥");
  const numbers = ticks(words.map((_, i) => String(i)), room, size);
  const apart = numbers.filter(([i]) => mark < 0 || Math.abs(i - mark) * room >= size);
  return mark < 0 ? apart : [...apart, [mark, "⊥"]];
}

export function widest(context, words) {
  return Math.max(0, ...words.map((word) => context.measureText(word).width)) + 5;
}

// Small helpers: elements, numbers as text, colours of the theme.

export function byId(id) {
  return document.getElementById(id);
}

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

export function fill(select, options, chosen) {
  select.replaceChildren(
    ...options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)),
  );
}

// Seven digits, which is what float32 holds.
export function exactly(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(7))) : String(value);
}

export function briefly(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(2);
  return value.toFixed(size < 10 ? 3 : 2);
}

// A softmax reaches 1 only by rounding: what would read 100.0 is never said to be all.
export function percent(share) {
  return share > 0.9995 ? "> 99.9\u00a0%" : `${(100 * share).toFixed(1)}\u00a0%`;
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// A canvas at the screen's own resolution; returns its context in CSS pixels.
export function sized(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.style.height = `${height}px`;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width };
}

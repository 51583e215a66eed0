// The state of the page is its address.

export const START = {
  a: 0, b: -1, input: [], at: -1, edits: [], theme: "",
  map: { show: "attention", block: 0, head: 0 },
};

export function words(text) {
  return text.split(/[\s,;]+/).filter((word) => word !== "");
}

export function toAddress(state) {
  const parts = new URLSearchParams();
  parts.set("input", state.input.join(" "));
  parts.set("a", state.a);
  if (state.b >= 0) parts.set("b", state.b);
  parts.set("at", state.at);
  if (state.edits.length) parts.set("edits", JSON.stringify(state.edits));
  const { show, block, head, stream } = state.map;
  parts.set("map", show === "attention" ? `${show}:${block}:${head}` : `${show}:${stream}`);
  if (state.theme) parts.set("theme", state.theme);
  return `#${parts}`;
}

function whole(text, otherwise) {
  return /^-?\d{1,6}$/.test(text ?? "") ? Number(text) : otherwise;
}

function readMap(text) {
  const [show, ...rest] = (text ?? "").split(":");
  if (show === "attention") {
    return { show, block: whole(rest[0], 0), head: whole(rest[1], 0) };
  }
  if (show === "encoder" || show === "decoder") return { show, stream: rest[0] ?? "embedding" };
  return START.map;
}

function readEdits(text) {
  try {
    const edits = JSON.parse(text ?? "[]");
    return Array.isArray(edits) ? edits : [];
  } catch {
    return [];
  }
}

export function fromAddress(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const theme = parts.get("theme");
  return {
    a: whole(parts.get("a"), 0),
    b: whole(parts.get("b"), -1),
    input: words(parts.get("input") ?? ""),
    at: whole(parts.get("at"), -1),
    edits: readEdits(parts.get("edits")),
    map: readMap(parts.get("map")),
    theme: theme === "dark" || theme === "light" ? theme : "",
  };
}

// The chosen heat map, or the nearest that a smaller model has.
export function fittingMap({ show, block, head, stream }, model) {
  if (show !== "attention") return { show, stream };
  return { show, block: Math.min(block, model.depth - 1), head: Math.min(head, model.heads - 1) };
}

// Light or dark: as the system has it, until a person chooses.

import { byId } from "./dom.js";

export function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  byId("theme").setAttribute("aria-label", `Colours: ${theme || "as the system"}`);
}

export function otherTheme(theme) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = theme || (dark ? "dark" : "light");
  return now === "dark" ? "light" : "dark";
}

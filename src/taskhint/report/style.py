"""How every page of the package looks: on small and wide screens, light and dark."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --page: #fff; --text: #1b1b1b; --soft: #5f5f5f; --line: #e3e3e3;
  --rule: #999; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171a; --text: #e6e6e6; --soft: #a0a4a8; --line: #33383d; --rule: #777;
    --link: #7db8f5; }
  svg { filter: invert(1) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--text); background: var(--page);
  max-width: 76rem; margin: 2.5rem auto; padding: 0 1.25rem; overflow-wrap: break-word; }
a { color: var(--link); }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; }
p.lead { color: var(--soft); margin-top: 0; } svg { max-width: 100%; height: auto; }
.panels { --columns: var(--wide); display: grid; align-items: start; gap: .4rem;
  grid-template-columns: repeat(var(--columns), minmax(0, max-content)); }
.panels p, .panels .row { grid-column: 1 / -1; margin: 0; }
@media (max-width: 60rem) { .panels { --columns: var(--half); } }
@media (max-width: 40rem) { .panels { --columns: 1; } }
.wide { overflow-x: auto; }
.map .panels > svg { min-width: 52rem; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: var(--page); }
thead th { border-bottom: 2px solid var(--rule); }
td small { color: var(--soft); display: block; }
.notes td, .notes th { text-align: left; white-space: normal; }
tr.paper td { color: var(--soft); } details { margin: .6rem 0; } li { margin: .15rem 0; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; padding: 0 .8rem; }
  th, td { padding: .3rem .45rem; }
  th:first-child, td:first-child { max-width: 9rem; white-space: normal; }
  .notes td, .notes th { min-width: 7rem; }
}
"""

"""How every page of the package looks."""

from __future__ import annotations

STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #1b1b1b; background: #fff;
  max-width: 76rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.4rem; }
p.lead { color: #555; margin-top: 0; } svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid #e3e3e3;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead th { border-bottom: 2px solid #999; }
td small { color: #777; display: block; }
.notes td, .notes th { text-align: left; white-space: normal; }
tr.paper td { color: #777; } details { margin: .6rem 0; } li { margin: .15rem 0; }
"""

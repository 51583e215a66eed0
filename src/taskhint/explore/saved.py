"""One file with the page, the chosen inputs and their whole traces, that needs no server.

The page reads the same documents as from the server, by the request that it would have made.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from taskhint.explore import documents
from taskhint.explore.passes import Passes
from taskhint.explore.server import front_end
from taskhint.explore.subject import Subject
from taskhint.model.edits import Edit
from taskhint.system.errors import UserError
from taskhint.system.settings import conform, to_json

MOST_BYTES = 1 << 26
_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def saved_page(
    subjects: list[Subject], inputs: Sequence[Sequence[str]], edits: Sequence[Edit] = ()
) -> str:
    """The page with all that it can ask about these inputs, as HTML."""
    passes = Passes(subjects)
    data: dict[str, Any] = documents.models_document(subjects)
    data["inputs"] = [list(symbols) for symbols in inputs]
    data["edits"] = [to_json(edit) for edit in edits]
    data["answers"] = answers = []
    size = 0
    for model in range(len(subjects)):
        for symbols in inputs:
            for changes in dict.fromkeys([(), tuple(edits)]):
                for name, request, answer in _answers(passes, model, tuple(symbols), changes):
                    text = base64.b64encode(answer).decode()
                    answers.append((name, request, text))
                    size += len(text)
                    if size > MOST_BYTES:
                        raise UserError(
                            f"the saved page would be larger than {MOST_BYTES >> 20} MB; choose "
                            "shorter or fewer inputs"
                        )
    return _html(data)


def _answers(
    passes: Passes, model: int, symbols: tuple[str, ...], edits: tuple[Edit, ...]
) -> Iterator[tuple[str, dict[str, Any], bytes]]:
    """Every request of the page about one pass, with its name and its answer."""
    common = {"model": model, "symbols": list(symbols), "edits": [to_json(e) for e in edits]}
    asked = (model, symbols, edits)
    document = documents.sequence_document(passes, documents.SequenceRequest(*asked))
    yield "sequence", common, documents.pack(*document)
    found = passes.get(*asked)
    for at in range(len(found.reading.read)):
        document = documents.position_document(passes, documents.PositionRequest(*asked, at))
        yield "position", {**common, "position": at}, documents.pack(*document)
    config = found.subject.decoder.config
    for block in range(config.depth):
        for head in range(config.heads):
            request = documents.MapRequest(*asked, "attention", block, head)
            document = documents.map_document(passes, request)
            where = {"show": "attention", "block": block, "head": head}
            yield "map", {**common, **where}, documents.pack(*document)
    for stream in found.streams:
        for basis in ("encoder", "decoder"):
            request = documents.MapRequest(*asked, show=basis, stream=stream)
            document = documents.map_document(passes, request)
            where = {"show": basis, "stream": stream}
            yield "map", {**common, **where}, documents.pack(*document)


def parse_edit(text: str) -> Edit:
    """An edit that a person wrote as its kind and its settings: `knock-out-mlp block=0`."""
    kind, *settings = text.split() or [""]
    fields: dict[str, Any] = {"kind": kind}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise UserError(f"edit {text!r}: {setting!r} is not NAME=VALUE")
        try:
            fields[name] = json.loads(value)
        except ValueError:
            fields[name] = value
    edit: Edit = conform(Edit, fields, "edit")
    return edit


def _html(data: dict[str, Any]) -> str:
    parts = {name: content.decode() for name, content in front_end().items()}
    script = bundled({n: t for n, t in parts.items() if n.endswith(".js")})
    style = parts["style.css"]
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    page = parts["index.html"]
    page = page.replace(
        '<meta charset="utf-8">',
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
    )
    page = page.replace('<link rel="stylesheet" href="style.css">', f"<style>{style}</style>")
    embedded = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return page.replace(
        '<script type="module" src="main.js"></script>',
        f'<script type="application/json" id="saved">{embedded}</script>\n'
        f'<script type="module">{script}</script>',
    )


def bundled(modules: dict[str, str]) -> str:
    """All modules in one: each stands after those that it imports, and no two share a name."""
    ordered: list[str] = []

    def add(name: str) -> None:
        if name in ordered:
            return
        for other in re.findall(r'^import .* from "\./(.*)";', modules[name], re.MULTILINE):
            add(other)
        ordered.append(name)

    for name in modules:
        add(name)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", modules[name])) for name in ordered)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

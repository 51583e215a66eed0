"""The tables of docs/probing.md, from what tools/measure_probing.py measured."""

from __future__ import annotations

from typing import Any

from taskhint.probe.stages import stage_label
from taskhint.system.tables import markdown_table

SHOWN_LENGTHS = ("5", "20", "50", "100")


def tables(measured: dict[str, Any]) -> str:
    documents, compared = measured["runs"], measured["compared"]
    trained = {name: document for name, document in documents.items() if name != "constructed"}
    return "\n".join(
        (
            settings(documents),
            mechanisms(documents),
            stages(trained),
            heads(compared),
            errors(trained),
            bases(documents),
        )
    )


def settings(documents: dict[str, Any]) -> str:
    rows = [
        [name, d["recipe"], str(d["seed"]), str(d["step"]), d["temperature"], str(d["examples"])]
        for name, d in documents.items()
    ]
    return table(
        "The runs", ["run", "recipe", "seed", "updates", "temperature", "sequences a length"], rows
    )


def mechanisms(documents: dict[str, Any]) -> str:
    rows = []
    for mechanism in next(iter(documents.values()))["mechanisms"]["shares"]:
        for name, document in documents.items():
            shares = document["mechanisms"]["shares"][mechanism]
            rows.append(
                [mechanism, name, *(share(shares.get(length)) for length in SHOWN_LENGTHS)]
            )
    return table(
        "Mechanisms, % of positions with the 95% interval, by length",
        ["", "run", *SHOWN_LENGTHS],
        rows,
    )


def stages(documents: dict[str, Any]) -> str:
    rows = []
    for where in ("start", "answer"):
        for name, document in documents.items():
            for number, shares in enumerate(document["stages"][where].values()):
                place = "at ⊥" if where == "start" else "in the answer"
                rows.append(
                    [
                        place,
                        name,
                        stage_label(number),
                        *(share(shares.get(length)) for length in SHOWN_LENGTHS),
                    ]
                )
    return table(
        "The right next symbol has the largest projection, % of steps",
        ["", "run", "", *SHOWN_LENGTHS],
        rows,
    )


def heads(compared: dict[str, Any]) -> str:
    rows = []
    for kind in compared["runs"][0]["heads"]:
        for run in compared["runs"]:
            head = run["heads"][kind]
            for measure, label in (
                ("share", f"on the {kind}"),
                ("largest", "on one symbol"),
                ("entropy", "entropy"),
            ):
                values = [f"{100 * head[measure][n]['mean']:.1f}" for n in SHOWN_LENGTHS]
                rows.append([f"the head for the {kind}", run["name"], label, *values])
    return table(
        "One head of the last block, % of its attention by length",
        ["", "run", "", *SHOWN_LENGTHS],
        rows,
    )


def errors(documents: dict[str, Any]) -> str:
    rows = []
    kinds = next(iter(documents.values()))["errors"]["errors"]
    for name, document in documents.items():
        for length in SHOWN_LENGTHS:
            found = document["errors"]["lengths"][length]
            counts = [str(sum(step[kind] for step in found["counts"].values())) for kind in kinds]
            rows.append([name, length, str(found["right"]), *counts])
    return table("First errors, sequences", ["run", "length", "no error", *kinds], rows)


def bases(documents: dict[str, Any]) -> str:
    rows = []
    for name, document in documents.items():
        found = document["bases"]
        sizes = [
            f"{c['mean_size']:.3f} ({c['largest_size']:.2f})" for c in found["cosines"].values()
        ]
        rows.append(
            [name, *sizes, f"{found['rms_of_all']:.3f}", f"{found['least_rms_of_all']:.3f}"]
        )
    pairs = list(next(iter(documents.values()))["bases"]["cosines"])
    header = ["run", *pairs, "rms of all", "least possible"]
    return table("The bases: mean |cosine| (largest)", header, rows)


def share(score: dict[str, Any] | None) -> str:
    if score is None or score["share"] is None:
        return "–"
    return f"{100 * score['share']:.1f} ({100 * score['low']:.1f}–{100 * score['high']:.1f})"


def table(title: str, header: list[str], rows: list[list[str]]) -> str:
    return f"**{title}**\n\n{markdown_table(header, rows)}"

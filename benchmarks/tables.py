"""The benchmarks' results as tables, for the terminal and for the page in the docs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from taskhint.system.tables import markdown_table, text_table

GIB = 2**30


@dataclass(frozen=True)
class Table:
    title: str
    header: list[str]
    rows: list[list[str]]

    def as_text(self) -> str:
        return f"{self.title}\n{text_table(self.header, self.rows)}"

    def as_markdown(self) -> str:
        return f"{self.title}\n\n{markdown_table(self.header, self.rows, numbers=True)}"


def train_tables(result: Mapping[str, Any]) -> list[Table]:
    rows = []
    for name, one in result.items():
        spent = one["milliseconds"]
        for who in ("ours", *one["against"]):
            rate = one["batch_size"] / spent[who] * 1000
            ratio = f"{spent[who] / spent['ours']:.2f}"
            rows.append(
                [
                    name,
                    who,
                    one["attention"].get(who, ""),
                    f"{spent[who]:.0f}",
                    f"{rate:.0f}",
                    ratio,
                ]
            )
    header = ["model", "who", "attention", "ms a step", "examples/s", "time against ours"]
    limits = [
        [
            name,
            *(f"{one['limit_milliseconds'][who]:.0f}" for who in ("ours", "limit")),
            f"{one['of_limit']:.2f}",
        ]
        for name, one in result.items()
    ]
    return [
        Table("Training step", header, rows),
        Table(
            "The limit",
            ["model", "ms a step, ours", "ms of the bare products", "of the limit"],
            limits,
        ),
        Table("Asked for", ["what", "measured"], _train_claims(result)),
    ]


def _train_claims(result: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for name, one in result.items():
        rows += [
            [f"{name}: times {who}'s rate", f"{ratio:.2f}"]
            for who, ratio in one["against"].items()
        ]
        rows.append([f"{name}: of the limit", f"{one['of_limit']:.2f}"])
        if "muon_share" in one:
            rows.append(
                [
                    f"{name}: Muon's and Adam's work in a step with Muon",
                    f"{100 * one['muon_share']:.1f}%",
                ]
            )
        if "pocket_peak_memory_mib" in one:
            rows.append(
                ["pocket training: peak memory", f"{one['pocket_peak_memory_mib']:.0f} MiB"]
            )
    return rows


def evaluate_tables(result: Mapping[str, Any]) -> list[Table]:
    rows = []
    for name, one in result.items():
        rows.append([f"{name}: our sequences/s", f"{one['ours']:.1f}"])
        rows += [
            [f"{name}: times {who}'s rate", f"{ratio:.1f}"]
            for who, ratio in one["against"].items()
        ]
        if "limit" in one:
            rows.append(
                [
                    f"{name}: sequences/s of the bare products of a whole pass",
                    f"{one['limit']:.1f}",
                ]
            )
        for size, rate in one.get("batch_sizes", {}).items():
            rows.append([f"{name}: generate in batches of {size}, sequences/s", f"{rate:.1f}"])
        if "compared" in one:
            rows += [
                [f"{name}: sequences compared", str(one["compared"])],
                [f"{name}: right answers among them", str(one["right"])],
                [f"{name}: same verdict", str(one["same_verdict"])],
                [f"{name}: same first error", str(one["same_first_error"])],
            ]
            gaps = [exception["logit_gap"] for exception in one["exceptions"]]
            rows += [
                [f"{name}: exception, gap of the two largest logits", f"{gap:.1e}"] for gap in gaps
            ]
        if "peak_memory_mib" in one:
            rows.append(
                [
                    f"{name}: peak memory of {one['sequences']} sequences",
                    f"{one['peak_memory_mib']:.0f} MiB",
                ]
            )
    return [Table("Evaluation", ["what", "measured"], rows)]


def data_tables(result: Mapping[str, Any]) -> list[Table]:
    rows = []
    for name, one in result.items():
        rows += [
            [f"{name}: examples/s on one core", f"{one['ours']:.0f}"],
            [
                f"{name}: ms per batch of {one['batch_size']}",
                f"{one['milliseconds_per_batch']:.1f}",
            ],
            [f"{name}: of a training step at width 128", f"{100 * one['of_training_step']:.1f}%"],
            [
                f"{name}: time that a training waits for it",
                f"{100 * one['waiting_of_training_step']:.1f}%",
            ],
        ]
    return [Table("Data", ["what", "measured"], rows)]


def field_tables(result: Mapping[str, Any]) -> list[Table]:
    """Time for a token as a multiple of sorting's."""
    tasks = [[name, f"{ratio:.2f}"] for name, ratio in result["tasks"].items()]
    header = ["scheme, on addition", "attention", "time for a token, sorting is 1"]
    schemes = [
        [name, "fast" if one["fast"] else "general", f"{one['against_sort']:.2f}"]
        for name, one in result["schemes"].items()
    ]
    return [
        Table("Tasks, no positions", ["task", "time for a token, sorting is 1"], tasks),
        Table("Schemes", header, schemes),
    ]


def explore_tables(result: Mapping[str, Any]) -> list[Table]:
    columns = ("bare", "trace", "page")
    rows = [
        [
            length,
            *(f"{one[column]:.0f}" for column in columns),
            f"{one['against_bare']:.1f}",
            f"{one['allowed']:.0f}",
        ]
        for length, one in result.items()
    ]
    header = [
        "length",
        "ms of the bare pass",
        "ms of a trace",
        "ms of all that a new input needs",
        "trace, bare pass is 1",
        "ms allowed for a trace",
    ]
    return [Table("Answers of `taskhint explore`", header, rows)]


def profile_tables(result: Mapping[str, Any]) -> list[Table]:
    kinds = list(dict.fromkeys(kind for one in result.values() for kind in one["shares"]))
    rows = [
        [kind, *(f"{100 * one['shares'].get(kind, 0):.1f}%" for one in result.values())]
        for kind in kinds
    ]
    tables = [Table("Share of a training step", ["work", *result], rows)]
    for name, one in result.items():
        operators = one["operators"].items()
        rows = [
            [op, f"{100 * entry['share']:.1f}%", f"{entry['calls']:.0f}"]
            for op, entry in operators
        ]
        tables.append(Table(f"Operators, {name}", ["operator", "share", "calls a step"], rows))
    return tables


def growth_tables(result: Mapping[str, Any]) -> list[Table]:
    tables = []
    titles = {"width": "Width", "batch": "Batch size", "length": "Longest training input"}
    for part, title in titles.items():
        points = ("tokens", "milliseconds", "examples_per_second", "gigaflops_per_second")
        rows = [[n, *(f"{one[point]:.0f}" for point in points)] for n, one in result[part].items()]
        header = [title.lower(), "tokens a step", "ms a step", "examples/s", "GFLOP/s"]
        tables.append(Table(f"{title} (training)", header, rows))
    tested = result["test_length"].items()
    rows = [
        [n, f"{one['sequences_per_second']:.1f}", f"{one['microseconds_per_token']:.1f}"]
        for n, one in tested
    ]
    return [*tables, Table("Length (evaluation)", ["length", "sequences/s", "µs a token"], rows)]


def cost_tables(result: Mapping[str, Any]) -> list[Table]:
    gpus = list(result["gpus"])
    rows, padded = [], []
    for name, one in result["experiments"].items():
        memory, padded_memory = (
            sum(one[key].values()) / GIB for key in ("memory_bytes", "padded_memory_bytes")
        )
        work = [
            f"{one['parameters'] / 1e6:.1f}",
            f"{one['flops_per_update'] / 1e12:.2f}",
            f"{one['flops'] / 1e15:.0f}",
        ]
        rows.append([name, *work, f"{memory:.1f}", *(f"{one['hours'][gpu]:.2f}" for gpu in gpus)])
        hours = (f"{one['padded_hours'][gpu]:.2f}" for gpu in gpus)
        padded.append([name, f"{one['padded_ratio']:.2f}", f"{padded_memory:.1f}", *hours])
    hours_on = [f"hours on {gpu}" for gpu in gpus]
    share = f"at {100 * result['utilisation']:.0f}% of the peak TF32 rate"
    header = [
        "training",
        "M parameters",
        "TFLOP an update",
        "PFLOP in all",
        "memory GiB",
        *hours_on,
    ]
    return [
        Table(f"Without padding, {share}", header, rows),
        Table(f"Padded, {share}", ["training", "times the FLOP", "memory GiB", *hours_on], padded),
        _judging_table(result, gpus, share),
    ]


def _judging_table(result: Mapping[str, Any], gpus: list[str], share: str) -> Table:
    """What measuring a model takes beside training it."""
    rows = []
    for name, one in result["experiments"].items():
        work = [
            f"{one['longest_flops'] / 1e9:.1f}",
            f"{one['evaluation_flops'] / 1e15:.2f}",
            f"{100 * one['evaluation_flops'] / one['flops']:.1f}%",
        ]
        rows.append([name, *work, *(f"{one['evaluation_seconds'][gpu]:.0f}" for gpu in gpus)])
    seconds_on = [f"seconds on {gpu}" for gpu in gpus]
    header = ["evaluation of", "GFLOP, longest sequence", "PFLOP in all", "of training"]
    return Table(f"Evaluation, {share}", [*header, *seconds_on], rows)


TABLES: dict[str, Callable[[Mapping[str, Any]], list[Table]]] = {
    "train": train_tables,
    "evaluate": evaluate_tables,
    "data": data_tables,
    "field": field_tables,
    "explore": explore_tables,
    "profile": profile_tables,
    "growth": growth_tables,
    "cost": cost_tables,
}


def machine_line(machine: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in machine.items())

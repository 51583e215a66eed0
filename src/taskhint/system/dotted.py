"""Settings changed by dotted keys, as in `--set model.width=256`."""

from __future__ import annotations

import dataclasses
import types
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Union, get_args, get_origin

from taskhint.system.errors import UserError
from taskhint.system.settings import (
    PLAIN,
    Family,
    conform,
    conform_plain,
    find_kind,
    find_member,
    has_default,
    to_json,
    types_of,
)


def change(value: Any, texts: Iterable[tuple[str, str]]) -> Any:
    """A copy with the fields at dotted keys read from text, as in `--set model.width=256`; checked
    when all are set.
    """
    data = to_json(value)
    for key, text in texts:
        _set(type(value), data, key.split("."), key, text)
    return conform(type(value), data, "recipe")


def short_keys(keys: Iterable[str]) -> dict[str, str]:
    """Every key by its last word, where only one of them ends in it; a choice of kind by what it
    is the kind of.
    """
    plain = {key: key.removesuffix(".kind") for key in keys}
    last = Counter(key.rpartition(".")[2] for key in plain.values())
    words = {key: text.rpartition(".")[2] for key, text in plain.items()}
    return {key: plain[key] if last[word] > 1 else word for key, word in words.items()}


def setting_keys(value: Any, prefix: str = "") -> list[str]:
    """Every dotted key that `change` takes for this value."""
    keys = []
    for name, inner in _children(value).items():
        keys.append(prefix + name)
        keys += setting_keys(inner, f"{prefix}{name}.")
    return keys


def flat_settings(value: Any, key: str = "") -> dict[str, Any]:
    """Every setting by its dotted key, as plain values. A family's own key has its kind."""
    if dataclasses.is_dataclass(value) or _has_kinds(value):
        kind = getattr(type(value), "kind", None)
        own = ",".join(_children(value)) if isinstance(value, tuple) else kind
        found = {key: own} if isinstance(own, str) and key else {}
        for name, inner in _children(value).items():
            found |= flat_settings(inner, f"{key}.{name}".lstrip("."))
        return found
    if isinstance(value, tuple):
        return {key: ",".join(map(str, value))}
    return {key: value}


def _has_kinds(value: Any) -> bool:
    return isinstance(value, tuple) and all(hasattr(item, "kind") for item in value)


def _children(value: Any) -> Mapping[str, Any]:
    """Fields of a dataclass by name; members of a tuple by their kind."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return {item.kind: item for item in value if hasattr(item, "kind")}
    return {}


def _set(wanted: Any, data: Any, path: list[str], key: str, text: str) -> None:
    """Write a text into the JSON form of a value of the wanted type. KeyError if there is no such
    key.
    """
    if get_origin(wanted) is tuple:
        inner = get_args(wanted)[0]
        found = [item for item in data if _kind_in(item) == path[0]]
        if not found or len(path) == 1:
            raise KeyError(key)
        return _set(inner, found[0], path[1:], key, text)
    if not isinstance(data, dict) or not isinstance(wanted, type):
        raise KeyError(key)
    member: Any = find_member(wanted, data, key)[0] if issubclass(wanted, Family) else wanted
    hints = types_of(member)
    if path[0] not in {field.name for field in dataclasses.fields(member)}:
        raise KeyError(key)
    if len(path) == 1:
        data[path[0]] = _parsed(hints[path[0]], text, key)
        return None
    return _set(hints[path[0]], data[path[0]], path[1:], key, text)


def _kind_in(data: Any) -> Any:
    """The kind that a member of a tuple goes by: its own, or that of the task inside it."""
    return data.get("kind") or data.get("task", {}).get("kind")


def _parsed(wanted: Any, text: str, key: str) -> Any:
    """What a text means for a field, as JSON."""
    if get_origin(wanted) in (Union, types.UnionType):
        if text.lower() == "none":
            return None
        wanted = next(member for member in get_args(wanted) if member is not type(None))
    if isinstance(wanted, type) and issubclass(wanted, Family):
        member = find_kind(wanted, text, key)
        lacking = any(not has_default(field) for field in dataclasses.fields(member))
        return {"kind": text} if lacking else to_json(member())
    if get_origin(wanted) is tuple and get_args(wanted)[0] in PLAIN:
        return [_parsed(get_args(wanted)[0], part, key) for part in text.split(",")]
    if dataclasses.is_dataclass(wanted) or get_origin(wanted) is tuple:
        raise UserError(f"{key} has parts; set one of them, as in {key}.NAME=VALUE")
    try:
        if wanted in (int, float):
            return conform_plain(wanted, wanted(text), key)
    except ValueError:
        raise UserError(f"{key}={text} is not {PLAIN[wanted]}") from None
    plain = {"true": True, "false": False}.get(text.lower(), text) if wanted is bool else text
    return conform_plain(wanted, plain, key)

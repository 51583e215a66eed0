"""Frozen dataclasses to JSON and back, with every type checked; and one field set by a dotted key.

A class that has siblings carries a `kind`; its JSON carries it too, and reading picks the sibling by it.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from taskhint.system.errors import UserError, nearest

ADDED: Any = types.MappingProxyType({"added": True})
"""Metadata of a field that is younger than runs people may have: at its default it says nothing new about a run."""


def to_json(value: Any, added: bool = True) -> Any:
    """As JSON; without `added`, younger fields are left out where they have their default."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            f.name: to_json(getattr(value, f.name), added)
            for f in dataclasses.fields(value)
            if added or "added" not in f.metadata or getattr(value, f.name) != f.default
        }
        kind = getattr(type(value), "kind", None)
        return {"kind": kind, **fields} if isinstance(kind, str) else fields
    if isinstance(value, tuple):
        return [to_json(item, added) for item in value]
    return value


def from_json(wanted: Any, data: Any, where: str) -> Any:
    """`data` as a value of type `wanted`; `where` names the place in error messages."""
    kinds = _kinds(wanted)
    if kinds:
        return _read_kind(kinds, data, where)
    if dataclasses.is_dataclass(wanted):
        return _read_fields(wanted, data, where)
    if get_origin(wanted) is tuple:
        if not isinstance(data, list):
            raise UserError(f"{where} must be a list, got {data!r:.60}")
        return tuple(from_json(get_args(wanted)[0], item, f"{where}[{i}]") for i, item in enumerate(data))
    return _read_plain(wanted, data, where)


def with_setting(value: Any, key: str, text: str) -> Any:
    """A copy of a dataclass with the field at a dotted key read from text, as in `--set model.width=256`."""
    return _with_setting(value, key.split("."), key, text)


def setting_keys(value: Any, prefix: str = "") -> list[str]:
    """Every dotted key that `with_setting` takes for this value."""
    keys = []
    for name, inner in _children(value).items():
        keys.append(prefix + name)
        keys += setting_keys(inner, f"{prefix}{name}.")
    return keys


def _children(value: Any) -> dict[str, Any]:
    """Fields of a dataclass by name; members of a tuple of tasks by their kind."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return {item.kind: item for item in value if hasattr(item, "kind")}
    return {}


def _with_setting(value: Any, path: list[str], key: str, text: str) -> Any:
    children = _children(value)
    if path[0] not in children:
        raise KeyError(key)
    if isinstance(value, tuple):
        if len(path) == 1:
            raise KeyError(key)
        return tuple(_with_setting(v, path[1:], key, text) if v is children[path[0]] else v for v in value)
    if len(path) > 1:
        new = _with_setting(children[path[0]], path[1:], key, text)
    else:
        new = _parse(get_type_hints(type(value))[path[0]], text, key)
    return dataclasses.replace(value, **{path[0]: new})


def _parse(wanted: Any, text: str, key: str) -> Any:
    kinds = _kinds(wanted)
    if kinds:
        if text not in kinds:
            raise UserError(f"{key}={text} is not known; {nearest(text, kinds)}")
        return kinds[text]()
    plain: Any = text
    try:
        if wanted is int:
            plain = int(text)
        elif wanted is float:
            plain = float(text)
    except ValueError:
        raise UserError(f"{key}={text} is not {_name(wanted)}") from None
    if wanted is bool:
        plain = {"true": True, "false": False}.get(text.lower(), text)
    if dataclasses.is_dataclass(wanted) or get_origin(wanted) is tuple:
        raise UserError(f"{key} has parts; set one of them, as in {key}.NAME=VALUE")
    return _read_plain(wanted, plain, key)


def _kinds(wanted: Any) -> Mapping[str, type[Any]]:
    """The classes that a field of this type may hold, by the kind that tells them apart."""
    if get_origin(wanted) in (Union, types.UnionType):
        return {member.kind: member for member in get_args(wanted)}
    if hasattr(wanted, "kinds"):
        return wanted.kinds()
    kind = getattr(wanted, "kind", None)
    return {kind: wanted} if isinstance(kind, str) else {}


def _read_kind(kinds: Mapping[str, type[Any]], data: Any, where: str) -> Any:
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        raise UserError(f"{where} must be an object with a 'kind', one of: {', '.join(kinds)}")
    kind = data["kind"]
    if kind not in kinds:
        raise UserError(f"{where}.kind {kind!r:.60} is not known; {nearest(kind, kinds)}")
    return _read_fields(kinds[kind], {k: v for k, v in data.items() if k != "kind"}, where)


def _read_fields(wanted: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise UserError(f"{where} must be an object, got {data!r:.60}")
    types_by_name = get_type_hints(wanted)
    names = [f.name for f in dataclasses.fields(wanted)]
    for name in data:
        if name not in names:
            raise UserError(f"{where} has an unknown key {name!r:.60}; {nearest(name, names)}")
    # A field with a default may be missing: files written before it existed stay readable.
    missing = [f.name for f in dataclasses.fields(wanted) if f.name not in data and f.default is dataclasses.MISSING]
    if missing:
        raise UserError(f"{where} lacks {', '.join(missing)}")
    return wanted(**{name: from_json(types_by_name[name], data[name], f"{where}.{name}") for name in data})


def _read_plain(wanted: Any, data: Any, where: str) -> Any:
    if get_origin(wanted) is Literal:
        if data not in get_args(wanted) or not isinstance(data, str):
            options = [str(option) for option in get_args(wanted)]
            raise UserError(f"{where}={data!s:.60} is not known; {nearest(str(data), options)}")
        return data
    if wanted is float and type(data) is int and abs(data) < 2**1000:
        data = float(data)
    if type(data) is not wanted or (wanted is float and not math.isfinite(data)):
        raise UserError(f"{where}={data!s:.60} is not {_name(wanted)}")
    if wanted is str and not data.isprintable():
        raise UserError(f"{where}={data!r:.60} has unprintable characters")
    return data


def _name(wanted: Any) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    return names.get(wanted, str(wanted))

"""Settings: frozen dataclasses that are valid or refuse to exist; as JSON and back.

Everything in a recipe is made of them. A *family* is a base class of settings with several kinds,
such as tasks or position schemes: a class that derives from it and names its `kind` is registered
by that, and files and `--set` find it by its kind.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import types
import typing
from abc import ABCMeta
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from taskhint.system.errors import UserError, nearest

ADDED: Any = types.MappingProxyType({"added": True})
"""Metadata of a field that is younger than runs people may have: at its default it says nothing
new about a run.
"""

_KIND = re.compile(r"[a-z0-9][a-z0-9_+-]*")
_TYPES: dict[type[Any], dict[str, Any]] = {}
PLAIN = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


class UnknownKindError(UserError):
    """A file or a person names a kind that nobody has registered. What is known stands last."""

    def __init__(self, advice: str, known: str = "") -> None:
        super().__init__(advice + known)
        self.advice, self.known = advice, known


class _Valid(ABCMeta):
    """Checks every argument before an object is made."""

    if not typing.TYPE_CHECKING:  # type checkers read the dataclass's own signature

        def __call__(cls, *given: Any, **named: Any) -> Any:
            return super().__call__(**_checked(cls, given, named))


class Settings(metaclass=_Valid):
    """Derive and decorate with @dataclass(frozen=True). Types are checked here, ranges in
    `__post_init__`.

    `label` is what error messages put before a field's name.
    """

    label: ClassVar[str] = ""

    @classmethod
    def from_older(cls, data: dict[str, Any]) -> dict[str, Any]:
        """What older files say, in today's words."""
        return data


class Family(Settings):
    """A base class that derives from this one directly begins a family; its descendants with a
    `kind` are members.

    `family` is what messages call it. `unwritten` is the one kind whose files do not name it: it
    is older than kinds. In a family with `needs_kind`, nothing can be made without one.
    """

    family: ClassVar[str]
    kind: ClassVar[str]
    unwritten: ClassVar[str] = ""
    needs_kind: ClassVar[bool] = False
    _members: ClassVar[dict[str, type[Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if Family in cls.__bases__:
            cls._members = {}
        elif "kind" in cls.__dict__:
            _register(cls)

    @classmethod
    def kinds(cls) -> dict[str, type[Any]]:
        """Every registered member by its kind; those of installed packages too."""
        from taskhint.system.plugins import import_installed

        import_installed()
        return cls._members


def _register(cls: type[Family]) -> None:
    kind = cls.kind
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise UserError(
            f"class {cls.__name__}: kind {kind!r} must be small letters, digits, '-', '_' or '+'"
        )
    before = cls._members.get(kind)
    if before is not None and (before.__module__, before.__qualname__) != (
        cls.__module__,
        cls.__qualname__,
    ):
        where = f"{before.__module__}.{before.__qualname__}"
        raise UserError(
            f"class {cls.__name__}: the {cls.family} {kind!r} exists already ({where}); choose "
            "another"
        )
    cls._members[kind] = cls


def _checked(cls: type[Any], given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, each as its field's type wants it."""
    if "__dataclass_params__" not in cls.__dict__:
        raise UserError(f"class {cls.__name__} needs @dataclass(frozen=True) above it")
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise UserError(f"class {cls.__name__} lacks {missing}")
    if getattr(cls, "needs_kind", False) and not hasattr(cls, "kind"):
        raise UserError(
            f"class {cls.__name__} names no kind; add to it: "
            f'kind: ClassVar[str] = "my-{cls.family}"'
        )
    fields = [field for field in dataclasses.fields(cls) if field.init]
    names = [field.name for field in fields]
    if len(given) > len(names):
        raise UserError(f"{_name(cls)} takes at most {len(names)} settings, got {len(given)}")
    values = dict(zip(names, given, strict=False))
    for name in named:
        if name not in names:
            raise UserError(f"{_name(cls)} has no setting {name!r}; {nearest(name, names)}")
        if name in values:
            raise UserError(f"{_name(cls)} got {name} twice")
    values |= named
    lacking = [f.name for f in fields if f.name not in values and not has_default(f)]
    if lacking:
        raise UserError(f"{_name(cls)} lacks {', '.join(lacking)}")
    wanted = types_of(cls)
    prefix = f"{cls.label}." if cls.label else ""
    return {name: conform(wanted[name], value, prefix + name) for name, value in values.items()}


def _name(cls: type[Any]) -> str:
    kind = getattr(cls, "kind", None)
    return f"{cls.family} {kind!r}" if isinstance(kind, str) else cls.__name__


def has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def default_of(field: dataclasses.Field[Any]) -> Any:
    if field.default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def types_of(cls: type[Any]) -> dict[str, Any]:
    """The type of every field."""
    if cls not in _TYPES:  # working them out takes most of the time of reading a recipe
        _TYPES[cls] = _resolved(cls)
    return _TYPES[cls]


def _resolved(cls: type[Any]) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except (NameError, TypeError) as error:
        raise UserError(
            f"class {cls.__name__}: the type of a field is not known ({error})"
        ) from None


def to_json(value: Any, added: bool = True) -> Any:
    """As JSON; without `added`, younger fields are left out where they have their default."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            f.name: to_json(getattr(value, f.name), added)
            for f in dataclasses.fields(value)
            if added or "added" not in f.metadata or getattr(value, f.name) != default_of(f)
        }
        kind = getattr(type(value), "kind", None)
        written = isinstance(kind, str) and kind != getattr(type(value), "unwritten", "")
        return {"kind": kind, **fields} if written else fields
    if isinstance(value, (tuple, list)):
        return [to_json(item, added) for item in value]
    if isinstance(value, dict):
        return {str(name): to_json(item, added) for name, item in value.items()}
    return value


def conform(wanted: Any, value: Any, where: str) -> Any:
    """A value as its type wants it: an object as it is, or what JSON has for it. `where` is for
    error messages.

    A family takes the name of a kind for that kind with its defaults.
    """
    origin = get_origin(wanted)
    if origin in (Union, types.UnionType):
        return _conform_union(wanted, value, where)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise UserError(f"{where} must be a list, got {value!r:.60}")
        return tuple(
            conform(get_args(wanted)[0], item, f"{where}[{i}]") for i, item in enumerate(value)
        )
    if origin is dict:
        return _conform_dict(wanted, value, where)
    if isinstance(wanted, type) and dataclasses.is_dataclass(wanted) | issubclass(
        wanted, Settings
    ):
        return value if isinstance(value, wanted) else _build(wanted, value, where)
    return conform_plain(wanted, value, where)


def _conform_union(wanted: Any, value: Any, where: str) -> Any:
    members = [member for member in get_args(wanted) if member is not type(None)]
    if value is None and len(members) < len(get_args(wanted)):
        return None
    if len(members) > 1:
        raise UserError(f"{where}: a setting of several types ({wanted}) is not possible")
    return conform(members[0], value, where)


def _conform_dict(wanted: Any, value: Any, where: str) -> dict[Any, Any]:
    """Keys are texts or whole numbers, which JSON writes as texts."""
    key_type, item_type = get_args(wanted)
    if not isinstance(value, dict):
        raise UserError(f"{where} must be an object, got {value!r:.60}")
    found = {}
    for key, item in value.items():
        if key_type is int and isinstance(key, str) and re.fullmatch(r"\d{1,15}", key):
            key = int(key)
        found[conform_plain(key_type, key, where)] = conform(
            item_type, item, f"{where}.{key!s:.40}"
        )
    return found


def _build(wanted: type[Any], value: Any, where: str) -> Any:
    if issubclass(wanted, Family):
        member, fields = find_member(wanted, value, where)
    else:
        member, fields = wanted, value
    if not isinstance(fields, dict):
        raise UserError(f"{where} must be an object, got {value!r:.60}")
    if issubclass(member, Settings):
        fields = member.from_older(fields)
    known = {field.name: field for field in dataclasses.fields(member)}
    for name in fields:
        if name not in known:
            raise UserError(
                f"{where} has an unknown key {name!r:.60}; {nearest(str(name), known)}"
            )
    # A field with a default may be missing: files written before it existed stay readable.
    missing = [name for name, f in known.items() if name not in fields and not has_default(f)]
    if missing:
        raise UserError(f"{where} lacks {', '.join(missing)}")
    hints = types_of(member)
    return member(
        **{name: conform(hints[name], fields[name], f"{where}.{name}") for name in fields}
    )


def find_member(family: type[Family], value: Any, where: str) -> tuple[type[Any], Any]:
    """The class that is meant, and its fields."""
    fields = {"kind": value} if isinstance(value, str) else value
    if not isinstance(fields, dict):
        raise UserError(f"{where} must be a {family.family}, got {value!r:.60}")
    if "kind" not in fields and family.unwritten:
        fields = {"kind": family.unwritten, **fields}
    kind = fields.get("kind")
    if not isinstance(kind, str):
        raise UserError(
            f"{where} must be an object with a 'kind', one of: {', '.join(family.kinds())}"
        )
    return find_kind(family, kind, where), {
        name: item for name, item in fields.items() if name != "kind"
    }


def find_kind(family: type[Family], kind: str, where: str) -> type[Any]:
    """The member of that kind; it may be meant by a class further down the family."""
    kinds = {name: member for name, member in family.kinds().items() if issubclass(member, family)}
    if kind not in kinds:
        near = nearest(kind, kinds)
        first, last = (f"{near} ", "") if near.endswith("?") else ("", f"; {near}")
        own = "if it is your own, add --import FILE_OR_MODULE"
        raise UnknownKindError(
            f"{where}={kind!s:.60} is not a known {family.family}; {first}{own}", last
        )
    return kinds[kind]


def conform_plain(wanted: Any, value: Any, where: str) -> Any:
    if get_origin(wanted) is Literal:
        if not isinstance(value, str) or value not in get_args(wanted):
            options = [str(option) for option in get_args(wanted)]
            raise UserError(f"{where}={value!s:.60} is not known; {nearest(str(value), options)}")
        return value
    if wanted not in PLAIN:
        allowed = (
            "int, float, bool, str, a Literal, a tuple of one of them, or another settings class"
        )
        raise UserError(f"{where}: a setting of type {wanted} is not possible; allowed: {allowed}")
    if wanted in (int, float) and type(value).__module__ == "numpy":
        value = value.item()
    if wanted is float and type(value) is int and abs(value) < 2**1000:
        value = float(value)
    if type(value) is not wanted or (wanted is float and not math.isfinite(value)):
        raise UserError(f"{where}={value!s:.60} is not {PLAIN[wanted]}")
    if wanted is str and not value.isprintable():
        raise UserError(f"{where}={value!r:.60} has unprintable characters")
    return value

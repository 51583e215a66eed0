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
from typing import Any, ClassVar, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

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


def setting(
    default: Any,
    *,
    at_least: float = -math.inf,
    above: float | None = None,
    at_most: float = math.inf,
) -> Any:
    """A field that takes numbers of a range alone: `share: float = setting(0.5, above=0,
    at_most=1)`. A class that derives keeps the range, whatever default it gives.
    """
    low = at_least if above is None else above
    allowed = f"at least {low}" if above is None else f"above {low}"
    if at_most < math.inf:
        allowed = f"in {low}..{at_most}" if above is None else f"{allowed} and at most {at_most}"
    metadata = {"range": (low, above is not None, at_most, allowed)}
    return dataclasses.field(default=default, metadata=metadata)


class _Valid(ABCMeta):
    """Checks every argument before an object is made."""

    if not typing.TYPE_CHECKING:  # type checkers read the dataclass's own signature

        def __call__(cls, *given: Any, **named: Any) -> Any:
            return super().__call__(**_checked(cls, given, named))


class Settings(metaclass=_Valid):
    """Derive and decorate with @dataclass(frozen=True). Types are checked here, and ranges that
    `setting` gives; what is between fields, in a `__post_init__`.

    `label` is what error messages put before a field's name.
    """

    label: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Nothing: so that one that derives can always call that of its base class."""

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
    kind, allowed = cls.kind, "small letters, digits, '-', '_' or '+'"
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise UserError(f"class {cls.__name__}: kind {kind!r} must be {allowed}")
    before, here = cls._members.get(kind, cls), f"{cls.__module__}.{cls.__qualname__}"
    if (there := f"{before.__module__}.{before.__qualname__}") != here:
        exists = f"the {cls.family} {kind!r} exists already ({there})"
        raise UserError(f"class {cls.__name__}: {exists}; choose another")
    cls._members[kind] = cls


def _checked(cls: type[Any], given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, each as its field's type and range want it."""
    plan = _PLANS.get(cls) or _plan(cls)
    if len(given) > len(plan.names):
        raise UserError(f"{_name(cls)} takes at most {len(plan.names)} settings, got {len(given)}")
    values = dict(zip(plan.names, given, strict=False))
    for name in named:
        if name not in plan.names:
            raise UserError(f"{_name(cls)} has no setting {name!r}; {nearest(name, plan.names)}")
        if name in values:
            raise UserError(f"{_name(cls)} got {name} twice")
    values |= named
    lacking = [name for name in plan.needed if name not in values]
    if lacking:
        raise UserError(f"{_name(cls)} lacks {', '.join(lacking)}")
    prefix = f"{cls.label}." if cls.label else ""
    for name, value in values.items():
        values[name] = found = conform(plan.types[name], value, prefix + name)
        if name in plan.ranges and found is not None:
            low, without_low, high, allowed = plan.ranges[name]
            if not low <= found <= high or (without_low and found == low):
                raise UserError(f"{prefix}{name}={found} is not {allowed}")
    return values


class _Plan(NamedTuple):
    """What there is to know of a class: its fields, those without a default, types and ranges."""

    names: tuple[str, ...]
    needed: tuple[str, ...]
    types: dict[str, Any]
    ranges: dict[str, tuple[float, bool, float, str]]


_PLANS: dict[type[Any], _Plan] = {}


def _plan(cls: type[Any]) -> _Plan:
    if "__dataclass_params__" not in cls.__dict__:
        raise UserError(f"class {cls.__name__} needs @dataclass(frozen=True) above it")
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        raise UserError(f"class {cls.__name__} lacks {missing}")
    if issubclass(cls, Family) and "kind" not in cls.__dict__:
        inherited = getattr(cls, "kind", None)
        of_its_own = f" of its own: files would take it for {inherited!r}" if inherited else ""
        if inherited or cls.needs_kind:
            raise UserError(
                f"class {cls.__name__} names no kind{of_its_own}; add to it: "
                f'kind: ClassVar[str] = "my-{inherited or cls.family}"'
            )
    fields = [field for field in dataclasses.fields(cls) if field.init]
    ranges = {
        field.name: field.metadata["range"]
        for base in reversed(cls.__mro__)
        for field in base.__dict__.get("__dataclass_fields__", {}).values()
        if "range" in field.metadata
    }
    needed = tuple(field.name for field in fields if not has_default(field))
    _PLANS[cls] = _Plan(tuple(field.name for field in fields), needed, types_of(cls), ranges)
    return _PLANS[cls]


def _name(cls: type[Any]) -> str:
    kind = getattr(cls, "kind", None)
    return f"{cls.family} {kind!r}" if isinstance(kind, str) else cls.__name__


def has_default(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def default_of(field: dataclasses.Field[Any]) -> Any:
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()


def types_of(cls: type[Any]) -> dict[str, Any]:
    """The type of every field."""
    try:
        if cls not in _TYPES:  # working them out takes most of the time of reading a recipe
            _TYPES[cls] = get_type_hints(cls)
    except (NameError, TypeError) as error:
        problem = f"the type of a field is not known ({error})"
        raise UserError(f"class {cls.__name__}: {problem}") from None
    return _TYPES[cls]


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
        inner = get_args(wanted)[0]
        return tuple(conform(inner, item, f"{where}[{i}]") for i, item in enumerate(value))
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
        name = conform_plain(key_type, key, where)
        found[name] = conform(item_type, item, f"{where}.{key!s:.40}")
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
            near = nearest(str(name), known)
            raise UserError(f"{where} has an unknown key {name!r:.60}; {near}")
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
        article = "an" if family.family[0] in "aeiou" else "a"
        raise UserError(f"{where} must be {article} {family.family}, got {value!r:.60}")
    if "kind" not in fields and family.unwritten:
        fields = {"kind": family.unwritten, **fields}
    kind = fields.get("kind")
    if not isinstance(kind, str):
        known = ", ".join(family.kinds())
        raise UserError(f"{where} must be an object with a 'kind', one of: {known}")
    rest = {name: item for name, item in fields.items() if name != "kind"}
    return find_kind(family, kind, where), rest


def find_kind(family: type[Family], kind: str, where: str) -> type[Any]:
    """The member of that kind; it may be meant by a class further down the family."""
    found = family._members.get(kind) or family.kinds().get(kind)
    if found is not None and issubclass(found, family):
        return found
    near = nearest(kind, [name for name, one in family.kinds().items() if issubclass(one, family)])
    first, last = (f"{near} ", "") if near.endswith("?") else ("", f"; {near}")
    own = "if it is your own, add --import FILE_OR_MODULE"
    raise UnknownKindError(
        f"{where}={kind!s:.60} is not a known {family.family}; {first}{own}", last
    )


def conform_plain(wanted: Any, value: Any, where: str) -> Any:
    if get_origin(wanted) is Literal:
        if not isinstance(value, str) or value not in get_args(wanted):
            options = [str(option) for option in get_args(wanted)]
            raise UserError(f"{where}={value!s:.60} is not known; {nearest(str(value), options)}")
        return value
    if wanted not in PLAIN:
        allowed = "int, float, bool, str, a Literal, a tuple of one of them, or settings"
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

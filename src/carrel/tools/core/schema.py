"""Arguments of tools: kinds of values, their JSON Schema, and strict parsing into a dataclass."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from carrel.config.kind import did_you_mean
from carrel.errors import ToolError

SHOWN_CHARACTERS = 40
MAX_PROBLEMS = 5
"""So many are told at once."""
LARGEST = 2**63
"""Every number that a tool takes is smaller, since every file is."""

Schema = dict[str, Any]  # Any: whatever JSON can say


class InvalidArgument(Exception):
    """A value is not of its kind; says what it must be, or where in it something is wrong."""


@dataclass(frozen=True, slots=True)
class Param:
    """What is said about one argument, and its bounds."""

    says: str
    least: float | None = None
    """The least number, or the least length of a text or a list."""
    most: float | None = None
    default: object = None
    """What the schema shows as default, where the field itself says only that none was given."""


class ArgumentKind(Protocol):
    """One kind of values."""

    def schema(self) -> Schema:
        """What it is in JSON Schema."""
        ...

    def check(self, value: object) -> Any:  # Any: each kind makes values of its own
        """The value as the tool takes it.

        Raises:
            Wrong: It is not of this kind.
        """
        ...


@dataclass(frozen=True, slots=True)
class TextKind:
    """A text."""

    least: int = 0
    most: int | None = None

    def schema(self) -> Schema:
        bounds = {"minLength": self.least or None, "maxLength": self.most}
        return {"type": "string", **_given(bounds)}

    def check(self, value: object) -> str:
        if not isinstance(value, str):
            raise InvalidArgument(f"must be a text, not {describe_value(value)}")
        if len(value) < self.least:
            raise InvalidArgument("must not be empty")
        if self.most is not None and len(value) > self.most:
            raise InvalidArgument(f"is too long: {len(value)} characters, the limit is {self.most}")
        return value


@dataclass(frozen=True, slots=True)
class NumberKind:
    """A number."""

    least: float | None = None
    most: float | None = None
    whole: bool = False

    def schema(self) -> Schema:
        bounds = {"minimum": self.least, "maximum": self.most}
        return {"type": "integer" if self.whole else "number", **_given(bounds)}

    def check(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not self._has(value):
            raise InvalidArgument(f"must be {self._says()}, not {describe_value(value)}")
        return int(value) if self.whole else value

    def _has(self, value: float) -> bool:
        if not -LARGEST < value < LARGEST or (self.whole and value != int(value)):
            return False
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def _says(self) -> str:
        says = "a whole number" if self.whole else "a number"
        if self.least is not None and self.most is not None:
            return f"{says} from {self.least} to {self.most}"
        if self.least is not None:
            return f"{says} of at least {self.least}"
        return says if self.most is None else f"{says} of at most {self.most}"


@dataclass(frozen=True, slots=True)
class BooleanKind:
    """True or false."""

    def schema(self) -> Schema:
        return {"type": "boolean"}

    def check(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise InvalidArgument(f"must be true or false, not {describe_value(value)}")
        return value


@dataclass(frozen=True, slots=True)
class ChoiceKind:
    """One of some texts."""

    values: tuple[str, ...]

    def schema(self) -> Schema:
        return {"type": "string", "enum": list(self.values)}

    def check(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.values:
            raise InvalidArgument(f"must be one of {', '.join(self.values)}, not {describe_value(value)}")
        return value


@dataclass(frozen=True, slots=True)
class ListKind:
    """A list of values of one kind."""

    kind: ArgumentKind
    least: int = 0
    most: int | None = None

    def schema(self) -> Schema:
        bounds = {"minItems": self.least or None, "maxItems": self.most}
        return {"type": "array", "items": self.kind.schema(), **_given(bounds)}

    def check(self, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise InvalidArgument(f"must be a list, not {describe_value(value)}")
        if len(value) < self.least or (self.most is not None and len(value) > self.most):
            least, most = self.least, "any number of" if self.most is None else self.most
            raise InvalidArgument(
                f"must have {least if least == most else f'{least} to {most}'} items, not {len(value)}"
            )
        return tuple(self._item(index, each) for index, each in enumerate(value))

    def _item(self, index: int, value: object) -> object:
        try:
            return self.kind.check(value)
        except InvalidArgument as wrong:
            raise InvalidArgument(f"[{index}] {wrong}") from None


class ObjectKind:
    """An object with known fields, as a dataclass declares them."""

    def __init__(self, made: Callable[..., Any]) -> None:
        self._made = made
        hints = get_type_hints(made, include_extras=True)
        self._fields: dict[str, tuple[dataclasses.Field[Any], Param, ArgumentKind]] = {}
        for field in dataclasses.fields(made):  # type: ignore[arg-type]  # a dataclass, as all that come here
            hint = hints[field.name]
            about = next(each for each in get_args(hint) if isinstance(each, Param))
            name = field.metadata.get("name", field.name)
            self._fields[name] = field, about, kind_of(get_args(hint)[0], about)
        self._required = [name for name, (field, _, _) in self._fields.items() if not _has_default(field)]

    @property
    def names(self) -> Collection[str]:
        """What the fields are called."""
        return self._fields.keys()

    def schema(self) -> Schema:
        properties = {
            name: {**kind.schema(), "description": about.says, **_default(field, about)}
            for name, (field, about, kind) in self._fields.items()
        }
        return {
            "type": "object",
            "properties": properties,
            "required": self._required,
            "additionalProperties": False,
        }

    def check(self, value: object) -> Any:
        if not isinstance(value, Mapping):
            raise InvalidArgument(f"must be an object, not {describe_value(value)}")
        problems: list[str] = []
        given: dict[str, object] = {}
        for name, each in value.items():
            if len(problems) == MAX_PROBLEMS:
                break
            row = self._fields.get(name) if isinstance(name, str) else None
            if row is None:
                problems.append(self._unknown(name))
                continue
            field, _, kind = row
            if each is None and name not in self._required:
                # Many clients send null for what they leave out.
                continue
            try:
                given[field.name] = kind.check(each)
            except InvalidArgument as wrong:
                problems.append(f"{name!r} {wrong}")
        problems += [f"{name!r} is missing" for name in self._required if name not in value]
        if problems:
            raise InvalidArgument("; ".join(problems[:MAX_PROBLEMS]))
        return self._made(**given)

    def _unknown(self, name: object) -> str:
        if not isinstance(name, str):
            return f"{describe_value(name)} is not a name"
        known = {each: repr(each) for each in self._fields}
        return f"there is no argument {name[:SHOWN_CHARACTERS]!r}{did_you_mean(name, known)}"


def kind_of(hint: Any, about: Param) -> ArgumentKind:  # Any: a type, whatever it is
    """The kind of values that a field with this type takes."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        (hint,) = (each for each in inside if each is not type(None))
        return kind_of(hint, about)
    if origin is Annotated:
        return kind_of(inside[0], next(each for each in inside if isinstance(each, Param)))
    if origin is Literal:
        return ChoiceKind(inside)
    if origin is tuple:
        return ListKind(kind_of(inside[0], Param("")), int(about.least or 0), _whole(about.most))
    if dataclasses.is_dataclass(hint):
        return ObjectKind(hint)  # type: ignore[arg-type]  # a class, not an instance
    simple: dict[object, ArgumentKind] = {
        str: TextKind(int(about.least or 0), _whole(about.most)),
        int: NumberKind(about.least, about.most, whole=True),
        float: NumberKind(about.least, about.most),
        bool: BooleanKind(),
    }
    return simple[hint]


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _default(field: dataclasses.Field[Any], about: Param) -> Schema:
    value = about.default if about.default is not None else field.default
    if value is None or value is dataclasses.MISSING:
        return {}
    return {"default": list(value) if isinstance(value, tuple) else value}


def _given(bounds: Mapping[str, float | None]) -> Schema:
    return {name: value for name, value in bounds.items() if value is not None}


def describe_value(value: object) -> str:
    """What a value is, in a few words, whatever it holds."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return "a list"
    if isinstance(value, str):
        cut = value if len(value) <= SHOWN_CHARACTERS else f"{value[:SHOWN_CHARACTERS]}..."
        return f"the text {cut!r}"
    if isinstance(value, int | float):
        return repr(value) if -LARGEST < value < LARGEST else "a number that is too large"
    return f"a {type(value).__name__}"


Args = TypeVar("Args")


class Parameters(Generic[Args]):
    """What one tool takes, as its dataclass declares it."""

    def __init__(self, made: Callable[..., Args]) -> None:
        """Read arguments into *made*, a dataclass whose fields are `Annotated` with a `Param`."""
        self._table = ObjectKind(made)

    def schema(self) -> Schema:
        """The JSON Schema of the arguments."""
        return self._table.schema()

    def takes(self, name: str) -> bool:
        """Whether there is such an argument."""
        return name in self._table.names

    def read(self, arguments: Any) -> Args:  # Any: whatever JSON can say
        """The arguments as the tool takes them; none at all are an empty object.

        Raises:
            ToolError: They do not fit; says which, and how.
        """
        given = {} if arguments is None else arguments
        if not isinstance(given, Mapping):
            raise ToolError(
                "arguments", f"Wrong arguments: they must be an object, not {describe_value(given)}"
            )
        try:
            made: Args = self._table.check(given)
        except InvalidArgument as wrong:
            problem = str(wrong)
        else:
            return made
        raise ToolError("arguments", f"Wrong arguments: {problem}")

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
"""Longer texts are cut in error messages."""
MAX_PROBLEMS = 5
"""Most problems reported in one error message."""
LARGEST = 2**63
"""Numbers must be smaller in magnitude: no file, line number or duration is larger."""

Schema = dict[str, Any]  # Any: whatever JSON can say

NO_CAPS: Mapping[str, int] = {}
"""No setting lowers a maximum."""


class InvalidArgument(Exception):
    """A value does not fit its kind; the message says what it must be, or which part of it is wrong."""


@dataclass(frozen=True, slots=True)
class Param:
    """The description and the bounds of one argument."""

    description: str
    minimum: float | None = None
    """Smallest number, or shortest text or list."""
    maximum: float | None = None
    """Largest number, or longest text or list."""
    default: object = None
    """Default to show in the schema where the default of the field, `None`, only means "not given"."""
    capped_by: str | None = None
    """Name of the setting that lowers the maximum; a larger number is accepted and capped."""


class ArgumentKind(Protocol):
    """A kind of value: its JSON Schema and its parser."""

    def schema(self) -> Schema:
        """Return the JSON Schema of this kind."""
        ...

    def parse(self, value: object) -> Any:  # Any: each kind has its own type
        """Return *value* as the tool takes it.

        Raises:
            InvalidArgument: The value is not of this kind.
        """
        ...


@dataclass(frozen=True, slots=True)
class TextKind:
    """A string."""

    minimum: int = 0
    maximum: int | None = None

    def schema(self) -> Schema:
        bounds = {"minLength": self.minimum or None, "maxLength": self.maximum}
        return {"type": "string", **_without_none(bounds)}

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise InvalidArgument(f"must be a text, not {describe_value(value)}")
        if len(value) < self.minimum:
            raise InvalidArgument("must not be empty")
        if self.maximum is not None and len(value) > self.maximum:
            raise InvalidArgument(f"is too long: {len(value)} characters, the limit is {self.maximum}")
        return value


@dataclass(frozen=True, slots=True)
class NumberKind:
    """A number."""

    minimum: float | None = None
    maximum: float | None = None
    whole: bool = False

    def schema(self) -> Schema:
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        return {"type": "integer" if self.whole else "number", **_without_none(bounds)}

    def parse(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not self._is_in_range(value):
            raise InvalidArgument(f"must be {self._describe_range()}, not {describe_value(value)}")
        return int(value) if self.whole else value

    def _is_in_range(self, value: float) -> bool:
        if not -LARGEST < value < LARGEST or (self.whole and value != int(value)):
            return False
        return (self.minimum is None or value >= self.minimum) and (
            self.maximum is None or value <= self.maximum
        )

    def _describe_range(self) -> str:
        noun = "a whole number" if self.whole else "a number"
        if self.minimum is not None and self.maximum is not None:
            return f"{noun} from {self.minimum} to {self.maximum}"
        if self.minimum is not None:
            return f"{noun} of at least {self.minimum}"
        return noun if self.maximum is None else f"{noun} of at most {self.maximum}"


@dataclass(frozen=True, slots=True)
class BooleanKind:
    """A boolean."""

    def schema(self) -> Schema:
        return {"type": "boolean"}

    def parse(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise InvalidArgument(f"must be true or false, not {describe_value(value)}")
        return value


@dataclass(frozen=True, slots=True)
class ChoiceKind:
    """One of a fixed set of strings."""

    values: tuple[str, ...]

    def schema(self) -> Schema:
        return {"type": "string", "enum": list(self.values)}

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.values:
            raise InvalidArgument(f"must be one of {', '.join(self.values)}, not {describe_value(value)}")
        return value


@dataclass(frozen=True, slots=True)
class ListKind:
    """A list of values of one kind."""

    kind: ArgumentKind
    minimum: int = 0
    maximum: int | None = None

    def schema(self) -> Schema:
        bounds = {"minItems": self.minimum or None, "maxItems": self.maximum}
        return {"type": "array", "items": self.kind.schema(), **_without_none(bounds)}

    def parse(self, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise InvalidArgument(f"must be a list, not {describe_value(value)}")
        if len(value) < self.minimum or (self.maximum is not None and len(value) > self.maximum):
            low, high = self.minimum, "any number of" if self.maximum is None else self.maximum
            raise InvalidArgument(
                f"must have {low if low == high else f'{low} to {high}'} items, not {len(value)}"
            )
        return tuple(self._item(index, each) for index, each in enumerate(value))

    def _item(self, index: int, value: object) -> object:
        try:
            return self.kind.parse(value)
        except InvalidArgument as error:
            raise InvalidArgument(f"[{index}] {error}") from None


class ObjectKind:
    """An object whose fields are those of a dataclass."""

    def __init__(self, cls: Callable[..., Any]) -> None:
        self._cls = cls
        hints = get_type_hints(cls, include_extras=True)
        self._fields: dict[str, tuple[dataclasses.Field[Any], Param, ArgumentKind]] = {}
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]  # a dataclass, as all that come here
            hint = hints[field.name]
            param = next(each for each in get_args(hint) if isinstance(each, Param))
            name = field.metadata.get("name", field.name)
            self._fields[name] = field, param, kind_of(get_args(hint)[0], param)
        self._required = [name for name, (field, _, _) in self._fields.items() if not _has_default(field)]

    @property
    def names(self) -> Collection[str]:
        """Names of the fields in JSON."""
        return self._fields.keys()

    def schema(self, caps: Mapping[str, int] = NO_CAPS) -> Schema:
        """Return the JSON Schema, with maxima no larger than the *caps* in force."""
        properties = {
            name: {**kind.schema(), "description": param.description, **_default(field, param)}
            for name, (field, param, kind) in self._fields.items()
        }
        for name, (_, param, _) in self._fields.items():
            if param.capped_by is not None and param.capped_by in caps:
                _lower(properties[name], caps[param.capped_by])
        return {
            "type": "object",
            "properties": properties,
            "required": self._required,
            "additionalProperties": False,
        }

    def parse(self, value: object) -> Any:
        if not isinstance(value, Mapping):
            raise InvalidArgument(f"must be an object, not {describe_value(value)}")
        return self.parse_fields(value)

    def parse_fields(self, values: Mapping[Any, object]) -> Any:  # Any: keys that are no text are refused
        """Build the dataclass from the *values* of a JSON object.

        Raises:
            InvalidArgument: A field is unknown, missing or has a wrong value.
        """
        problems: list[str] = []
        parsed: dict[str, object] = {}
        for name, each in values.items():
            if len(problems) == MAX_PROBLEMS:
                break
            row = self._fields.get(name) if isinstance(name, str) else None
            if row is None:
                problems.append(self._unknown(name))
                continue
            field, _, kind = row
            if each is None and name not in self._required:
                # Many clients send null for omitted arguments.
                continue
            try:
                parsed[field.name] = kind.parse(each)
            except InvalidArgument as error:
                problems.append(f"{name!r} {error}")
        problems += [f"{name!r} is missing" for name in self._required if name not in values]
        if problems:
            raise InvalidArgument("; ".join(problems[:MAX_PROBLEMS]))
        return self._cls(**parsed)

    def _unknown(self, name: object) -> str:
        if not isinstance(name, str):
            return f"{describe_value(name)} is not a name"
        known = {each: repr(each) for each in self._fields}
        return f"there is no argument {name[:SHOWN_CHARACTERS]!r}{did_you_mean(name, known)}"


def kind_of(hint: Any, param: Param) -> ArgumentKind:  # Any: any type annotation
    """Return the kind for a field with this type annotation."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        (hint,) = (each for each in args if each is not type(None))
        return kind_of(hint, param)
    if origin is Annotated:
        return kind_of(args[0], next(each for each in args if isinstance(each, Param)))
    if origin is Literal:
        return ChoiceKind(args)
    if origin is tuple:
        return ListKind(kind_of(args[0], Param("")), int(param.minimum or 0), _int_or_none(param.maximum))
    if dataclasses.is_dataclass(hint):
        return ObjectKind(hint)  # type: ignore[arg-type]  # a class, not an instance
    simple: dict[object, ArgumentKind] = {
        str: TextKind(int(param.minimum or 0), _int_or_none(param.maximum)),
        int: NumberKind(param.minimum, param.maximum, whole=True),
        float: NumberKind(param.minimum, param.maximum),
        bool: BooleanKind(),
    }
    return simple[hint]


def _int_or_none(number: float | None) -> int | None:
    return None if number is None else int(number)


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _default(field: dataclasses.Field[Any], param: Param) -> Schema:
    value = param.default if param.default is not None else field.default
    if value is None or value is dataclasses.MISSING:
        return {}
    return {"default": list(value) if isinstance(value, tuple) else value}


def _lower(schema: Schema, cap: int) -> None:
    """Lower the maximum of a number, and its default with it."""
    for word in ("maximum", "default"):
        if word in schema:
            schema[word] = max(schema["minimum"], min(schema[word], cap))


def _without_none(bounds: Mapping[str, float | None]) -> Schema:
    return {name: value for name, value in bounds.items() if value is not None}


def describe_value(value: object) -> str:
    """Describe any value in a few words, for an error message."""
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
    """The arguments of one tool, as its dataclass declares them."""

    def __init__(self, cls: Callable[..., Args]) -> None:
        """Parse arguments into *cls*, a dataclass whose fields are `Annotated` with a `Param`."""
        self._object = ObjectKind(cls)

    def schema(self, caps: Mapping[str, int] = NO_CAPS) -> Schema:
        """Return the JSON Schema of the arguments, with maxima no larger than the *caps* in force."""
        return self._object.schema(caps)

    def accepts(self, name: str) -> bool:
        """Whether the tool has an argument *name*."""
        return name in self._object.names

    def parse(self, arguments: Any) -> Args:  # Any: any JSON value
        """Return *arguments* as the tool takes them; `None` is an empty object.

        Raises:
            ToolError: An argument is wrong; the message names each one.
        """
        values = {} if arguments is None else arguments
        if not isinstance(values, Mapping):
            raise ToolError(
                "arguments", f"Wrong arguments: they must be an object, not {describe_value(values)}"
            )
        try:
            args: Args = self._object.parse_fields(values)
        except InvalidArgument as error:
            problem = str(error)
        else:
            return args
        raise ToolError("arguments", f"Wrong arguments: {problem}")

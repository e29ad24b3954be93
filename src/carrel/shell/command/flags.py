"""Command options, parsed by POSIX and GNU rules into the `Flags` class of a command.

The annotation of a field holds its options. If several options set one field, the last one given wins:

    lines: Annotated[int, Opt("-n", "--lines", metavar="NUM", help="print NUM lines", parse=count)] = 10
    quiet: Annotated[bool, Opt("-q", "--quiet", help="print no headers")] = False
    order: Annotated[str, Opt("-t", const="time", help="by time"), Opt("-S", const="size", ...)] = "name"
    files: Annotated[tuple[str, ...], Opt("--include", metavar="GLOB", help="may be repeated")] = ()

A class with `NEGATIVE_OPERANDS: ClassVar[bool] = True` takes `-5` as an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

from carrel.shell.text.quoting import quote_argument

FlagsType = TypeVar("FlagsType")

NUMBER = "-NUM"
"""Name of an option that is itself a number, as in `head -5`."""
_NUMBER_START = frozenset("0123456789.")


class UsageError(Exception):
    """The arguments of a command are wrong; the command has done nothing."""

    def __init__(self, message: str, *, status: int = 2, hint: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.hint = hint
        """Whether the message is followed by a pointer to `--help`."""


class Opt:
    """One option: its names, and the value it gives its field."""

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str = "",
        const: object = True,
        parse: Callable[[str], object] | None = None,
    ) -> None:
        """Describe an option.

        With a *metavar* it takes a value: *parse* returns the value of the field, or raises `ValueError` with
        a message. The value is optional if the metavar is in brackets (`[WHEN]`). Without a metavar the field
        is set to *const*.
        """
        self.names = names
        self.help = help
        self.metavar = metavar
        self.const = const
        self.parse = parse or str

    @property
    def takes_value(self) -> bool:
        """Whether a value is required."""
        return bool(self.metavar) and not self.may_take_value

    @property
    def may_take_value(self) -> bool:
        """Whether a value is optional; it must then be joined to the option."""
        return self.metavar.startswith("[")


class OptionHelp(NamedTuple):
    """One option in the help of a command."""

    spelling: str
    help: str


class _Option(NamedTuple):
    field: str
    opt: Opt
    is_list: bool


class FlagsParser(Generic[FlagsType]):
    """Parses the arguments of one command."""

    def __init__(self, flags: type[FlagsType], *, options_first: bool = False) -> None:
        """Parse the options of *flags*; with *options_first*, the first operand ends the options."""
        self._flags = flags
        self._options_first = options_first
        self._options = list(_options_of(flags))
        self._short = {n[1]: o for o in self._options for n in o.opt.names if len(n) == 2}
        self._long = {n: o for o in self._options for n in o.opt.names if n.startswith("--")}
        self._negative_operands: bool = getattr(flags, "NEGATIVE_OPERANDS", False)
        self._number = next((o for o in self._options if NUMBER in o.opt.names), None)

    def rows(self) -> list[OptionHelp]:
        """Return the rows of the help text."""
        rows = [OptionHelp(_spelling(option.opt), option.opt.help) for option in self._options]
        return [*rows, OptionHelp("--help", "print this text and do nothing else")]

    def parse(self, argv: Sequence[str]) -> tuple[FlagsType, list[str]]:
        """Return the flags that *argv* sets, and its operands.

        Raises:
            UsageError: An option does not exist, or its value is missing, unexpected or invalid.
            HelpRequest: The arguments include `--help`.
        """
        found: dict[str, Any] = {}
        operands: list[str] = []
        remaining = iter(argv)
        for argument in remaining:
            if argument == "--":
                operands.extend(remaining)
            elif argument.startswith("--"):
                self._parse_long(argument, remaining, found)
            elif len(argument) < 2 or argument[0] != "-":
                operands.append(argument)
                if self._options_first:
                    operands.extend(remaining)
            elif self._negative_operands and argument[1] in _NUMBER_START:
                operands.append(argument)
            elif self._number is not None and argument[1:].isdecimal():
                _set(found, self._number, argument[1:])
            else:
                self._parse_short(argument, remaining, found)
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
        return self._flags(**values), operands

    def _parse_long(self, argument: str, remaining: Iterator[str], found: dict[str, Any]) -> None:
        name, sign, value = argument.partition("=")
        if len(name) > 2 and "--help".startswith(name) and not self._matching_names(name):
            if sign:
                raise UsageError("option '--help' doesn't allow an argument")
            raise HelpRequest
        name, option = self._find_long(name, argument)
        if not option.opt.metavar:
            if sign:
                raise UsageError(f"option '{name}' doesn't allow an argument")
            _set(found, option, None)
        elif sign:
            _set(found, option, value)
        elif option.opt.may_take_value:
            _set(found, option, "")
        else:
            following = next(remaining, None)
            if following is None:
                raise UsageError(f"option '{name}' requires an argument")
            _set(found, option, following)

    def _matching_names(self, name: str) -> list[str]:
        return [known for known in self._long if known.startswith(name)]

    def _find_long(self, name: str, argument: str) -> tuple[str, _Option]:
        if name in self._long:
            return name, self._long[name]
        candidates = self._matching_names(name)
        if not candidates:
            raise UsageError(f"unrecognized option '{argument}'")
        if len({id(self._long[each].opt) for each in candidates}) > 1:
            possible = " ".join(f"'{each}'" for each in candidates)
            raise UsageError(f"option '{argument}' is ambiguous; possibilities: {possible}")
        return candidates[0], self._long[candidates[0]]

    def _parse_short(self, argument: str, remaining: Iterator[str], found: dict[str, Any]) -> None:
        letters = argument[1:]
        for at, letter in enumerate(letters):
            option = self._short.get(letter)
            if option is None:
                raise UsageError(f"invalid option -- '{letter}'")
            if not option.opt.metavar:
                _set(found, option, None)
                continue
            value: str | None = letters[at + 1 :]
            if not value and option.opt.takes_value:
                value = next(remaining, None)
            if value is None:
                raise UsageError(f"option requires an argument -- '{letter}'")
            _set(found, option, value)
            return


class HelpRequest(Exception):  # not an error
    """The arguments include `--help`."""


@cache
def parser_of(flags: type[FlagsType], options_first: bool = False) -> FlagsParser[FlagsType]:
    """Return the parser for *flags*; cached."""
    return FlagsParser(flags, options_first=options_first)


def _options_of(flags: type[Any]) -> Iterator[_Option]:
    hints = get_type_hints(flags, include_extras=True)
    for field in fields(flags):
        for opt in getattr(hints[field.name], "__metadata__", ()):
            yield _Option(field.name, opt, isinstance(field.default, tuple))


def _set(found: dict[str, Any], option: _Option, text: str | None) -> None:
    """Set the field of *option* in *found*; *text* is the value, if it has one."""
    opt = option.opt
    value = opt.const
    if text is not None:
        try:
            value = opt.parse(text)
        except ValueError as error:
            raise UsageError(str(error), status=1, hint=False) from None
    if option.is_list:
        found.setdefault(option.field, []).append(value)
    else:
        found[option.field] = value


def _spelling(opt: Opt) -> str:
    named = [name for name in opt.names if name != NUMBER]
    if named and opt.may_take_value:
        named[-1] += f"[={opt.metavar.strip('[]')}]"
    elif named and opt.metavar:
        named[-1] += ("=" if named[-1].startswith("--") else " ") + opt.metavar
    return ", ".join([*named, NUMBER] if NUMBER in opt.names else named)


@dataclass(frozen=True, slots=True)
class NoFlags:
    """Flags of a command without options."""


def whole_number(what: str) -> Callable[[str], int]:
    """Return a parser of whole numbers, whose error message begins with *what*."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal()):
            raise ValueError(f"{what}: {quote_argument(text)}")
        return int(text[:40])

    return parse


_SUFFIXES: dict[str, int] = {"b": 512, "kB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4} | {
    f"{letter}{tail}": 1024**power for power, letter in enumerate("KMGTPE", 1) for tail in ("", "iB")
}
_SUFFIXES["k"] = 1024


def parse_size(text: str, what: str) -> int:
    """Parse a number of bytes or lines with a GNU suffix: `b kB K MB M GB G TB T KiB` and so on.

    Raises:
        ValueError: The text is not such a number; the message begins with *what*.
    """
    digits = text.rstrip("bkKMGTPEiB")
    factor = _SUFFIXES.get(text[len(digits) :], 1 if digits == text else 0)
    if not factor or not (text and digits.isascii() and (digits or "1").isdecimal()):
        raise ValueError(f"{what}: {quote_argument(text)}")
    return int(digits[:40] or "1") * int(factor)


def one_of(option: str, words: Mapping[str, object]) -> Callable[[str], object]:
    """Return a parser of one of *words*, which may be abbreviated where the value is unambiguous."""

    def parse(text: str) -> object:
        if text in words:
            return words[text]
        found = {value for word, value in words.items() if word.startswith(text)}
        if len(found) == 1:
            return found.pop()
        problem = "ambiguous" if found else "invalid"
        raise UsageError(
            f"{problem} argument {quote_argument(text)} for '{option}'\n{_render_choices(words)}", status=1
        )

    return parse


def _render_choices(words: Mapping[str, object]) -> str:
    rows: dict[object, list[str]] = {}
    for word, value in words.items():
        rows.setdefault(value, []).append(f"'{word}'")
    return "\n".join(["Valid arguments are:", *(f"  - {', '.join(row)}" for row in rows.values())])


class TextSource(NamedTuple):
    """Text given as an argument, or the file that contains it."""

    is_file: bool
    text: str


def from_argument(text: str) -> TextSource:
    """Return the argument itself as the source."""
    return TextSource(False, text)


def from_file(text: str) -> TextSource:
    """Return the file named by the argument as the source."""
    return TextSource(True, text)

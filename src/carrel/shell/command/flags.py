"""Command options, parsed by POSIX and GNU rules from the fields of a command's `Flags` class.

A field says how it is spelled, and a field that several options set takes what the last of them says:

    lines: Annotated[int, Opt("-n", "--lines", metavar="NUM", help="print NUM lines", read=count)] = 10
    quiet: Annotated[bool, Opt("-q", "--quiet", help="print no headers")] = False
    order: Annotated[str, Opt("-t", to="time", help="by time"), Opt("-S", to="size", help="...")] = "name"
    files: Annotated[tuple[str, ...], Opt("--include", metavar="GLOB", help="may be given again")] = ()

A class with `NEGATIVE_OPERANDS: ClassVar[bool] = True` takes `-5` for an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

from carrel.shell.text.quoting import quote_argument

FlagsType = TypeVar("FlagsType")

NUMBER = "-NUM"
"""The spelling of an option that is a number itself, as in `head -5`."""
_BEGINS_NUMBER = frozenset("0123456789.")


class UsageError(Exception):
    """The arguments of a command are wrong; the command does nothing."""

    def __init__(self, message: str, *, status: int = 2, hint: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.hint = hint
        """Whether to point at `--help`."""


class Opt:
    """One option: its spellings, and what it does to its field."""

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str = "",
        to: object = True,
        read: Callable[[str], object] | None = None,
    ) -> None:
        """Describe an option.

        With a *metavar* it takes a value, which *read* turns into that of the field, or raises `ValueError`
        with a message; one in brackets (`[WHEN]`) may be left out. Without one the field becomes *to*.
        """
        self.names = names
        self.help = help
        self.metavar = metavar
        self.to = to
        self.read = read or str

    @property
    def takes_value(self) -> bool:
        """Whether a value must follow."""
        return bool(self.metavar) and not self.may_take_value

    @property
    def may_take_value(self) -> bool:
        """Whether a value may be joined to it."""
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
    """Reads the arguments of one command."""

    def __init__(self, flags: type[FlagsType], *, options_first: bool = False) -> None:
        """Read what *flags* describes; with *options_first*, the first operand ends the options."""
        self._flags = flags
        self._options_first = options_first
        self._all = list(_options_of(flags))
        self._short = {n[1]: o for o in self._all for n in o.opt.names if len(n) == 2}
        self._long = {n: o for o in self._all for n in o.opt.names if n.startswith("--")}
        self._negative_operands: bool = getattr(flags, "NEGATIVE_OPERANDS", False)
        self._number = next((o for o in self._all if NUMBER in o.opt.names), None)

    def rows(self) -> list[OptionHelp]:
        """All options, for people."""
        rows = [OptionHelp(_spelling(option.opt), option.opt.help) for option in self._all]
        return [*rows, OptionHelp("--help", "print this text and do nothing else")]

    def parse(self, argv: Sequence[str]) -> tuple[FlagsType, list[str]]:
        """The flags that *argv* sets, and its operands.

        Raises:
            UsageError: There is no such option, or its value is missing, superfluous or wrong.
            HelpAsked: The user wants to know.
        """
        found: dict[str, Any] = {}
        operands: list[str] = []
        rest = iter(argv)
        for argument in rest:
            if argument == "--":
                operands.extend(rest)
            elif argument.startswith("--"):
                self._read_long(argument, rest, found)
            elif len(argument) < 2 or argument[0] != "-":
                operands.append(argument)
                if self._options_first:
                    operands.extend(rest)
            elif self._negative_operands and argument[1] in _BEGINS_NUMBER:
                operands.append(argument)
            elif self._number is not None and argument[1:].isdecimal():
                _set(found, self._number, argument[1:])
            else:
                self._read_short(argument, rest, found)
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
        return self._flags(**values), operands

    def _read_long(self, argument: str, rest: Iterator[str], found: dict[str, Any]) -> None:
        name, sign, value = argument.partition("=")
        if len(name) > 2 and "--help".startswith(name) and not self._candidates(name):
            if sign:
                raise UsageError("option '--help' doesn't allow an argument")
            raise HelpRequest
        name, option = self._long_named(name, argument)
        if not option.opt.metavar:
            if sign:
                raise UsageError(f"option '{name}' doesn't allow an argument")
            _set(found, option, None)
        elif sign:
            _set(found, option, value)
        elif option.opt.may_take_value:
            _set(found, option, "")
        else:
            following = next(rest, None)
            if following is None:
                raise UsageError(f"option '{name}' requires an argument")
            _set(found, option, following)

    def _candidates(self, name: str) -> list[str]:
        return [known for known in self._long if known.startswith(name)]

    def _long_named(self, name: str, argument: str) -> tuple[str, _Option]:
        if name in self._long:
            return name, self._long[name]
        near = self._candidates(name)
        if not near:
            raise UsageError(f"unrecognized option '{argument}'")
        if len({id(self._long[each].opt) for each in near}) > 1:
            possible = " ".join(f"'{each}'" for each in near)
            raise UsageError(f"option '{argument}' is ambiguous; possibilities: {possible}")
        return near[0], self._long[near[0]]

    def _read_short(self, argument: str, rest: Iterator[str], found: dict[str, Any]) -> None:
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
                value = next(rest, None)
            if value is None:
                raise UsageError(f"option requires an argument -- '{letter}'")
            _set(found, option, value)
            return


class HelpRequest(Exception):  # nothing is wrong
    """Somebody asked for the help of a command."""


@cache
def parser_of(flags: type[FlagsType], options_first: bool = False) -> FlagsParser[FlagsType]:
    """The parser of a class of flags, made once."""
    return FlagsParser(flags, options_first=options_first)


def _options_of(flags: type[Any]) -> Iterator[_Option]:
    hints = get_type_hints(flags, include_extras=True)
    for field in fields(flags):
        for opt in getattr(hints[field.name], "__metadata__", ()):
            yield _Option(field.name, opt, isinstance(field.default, tuple))


def _set(found: dict[str, Any], option: _Option, text: str | None) -> None:
    """Note what *option* says; *text* is its value, if it has one."""
    opt = option.opt
    value = opt.to
    if text is not None:
        try:
            value = opt.read(text)
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
    """Options of a command that has none."""


def whole_number(what: str) -> Callable[[str], int]:
    """A reader of whole numbers, which calls a wrong one an *what*."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal()):
            raise ValueError(f"{what}: {quote_argument(text)}")
        return int(text[:40])

    return read


_SUFFIXES: dict[str, int] = {"b": 512, "kB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4} | {
    f"{letter}{tail}": 1024**power for power, letter in enumerate("KMGTPE", 1) for tail in ("", "iB")
}
_SUFFIXES["k"] = 1024


def parse_size(text: str, what: str) -> int:
    """A number of bytes or lines, with the suffixes of GNU: `b kB K MB M GB G TB T KiB` and so on.

    Raises:
        ValueError: It is something else; the message begins with *what*.
    """
    digits = text.rstrip("bkKMGTPEiB")
    factor = _SUFFIXES.get(text[len(digits) :], 1 if digits == text else 0)
    if not factor or not (text and digits.isascii() and (digits or "1").isdecimal()):
        raise ValueError(f"{what}: {quote_argument(text)}")
    return int(digits[:40] or "1") * int(factor)


def one_of(option: str, words: Mapping[str, object]) -> Callable[[str], object]:
    """A reader of one of *words*, which may be cut short; several that mean the same count as one."""

    def read(text: str) -> object:
        if text in words:
            return words[text]
        found = {value for word, value in words.items() if word.startswith(text)}
        if len(found) == 1:
            return found.pop()
        problem = "ambiguous" if found else "invalid"
        raise UsageError(
            f"{problem} argument {quote_argument(text)} for '{option}'\n{_listed(words)}", status=1
        )

    return read


def _listed(words: Mapping[str, object]) -> str:
    rows: dict[object, list[str]] = {}
    for word, value in words.items():
        rows.setdefault(value, []).append(f"'{word}'")
    return "\n".join(["Valid arguments are:", *(f"  - {', '.join(row)}" for row in rows.values())])


class TextSource(NamedTuple):
    """Where something comes from: an argument, or the file that it names."""

    is_file: bool
    text: str


def from_argument(text: str) -> TextSource:
    """The argument itself."""
    return TextSource(False, text)


def from_file(text: str) -> TextSource:
    """What is in the file."""
    return TextSource(True, text)

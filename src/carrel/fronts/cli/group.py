"""Groups of commands: what their help shows, and what they say about a command that is not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

OTHER = "Other"
"""The section of what is in no other."""


class Group(click.Group):
    """A group that names the nearest of its commands when it has none of a name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that *args* begin with."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and name[:1] not in ("-", ""):
            raise click.UsageError(f"No such command {name!r}.{self._suggestion(name)}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words; if there are none, name those that there could be."""
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            *names, last = self.list_shown()
            one_of = f"{', '.join(names)} or {last}" if names else last
            raise click.UsageError(f"Missing command: {one_of}.", ctx)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in the order in which they are likely to be wanted."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_line(self.commands[name])) for name in self.list_shown()])

    def list_shown(self) -> list[str]:
        """The names of the commands that are no secret, in order."""
        return [name for name, command in self.commands.items() if not command.hidden]

    def _suggestion(self, name: str) -> str:
        from difflib import get_close_matches

        if name in ("help", "version"):
            return did_you_mean([f"--{name}"])
        known = list(self._known())
        nearest = get_close_matches(name, dict(known), n=1)
        return did_you_mean(typed for each, typed in known if each in nearest)

    def _known(self) -> Iterator[tuple[str, str]]:
        """What may have been meant, and what to type for it."""
        for name in self.list_shown():
            yield name, name


class Commands(Group):
    """The group of all, whose help shows the commands of its groups in sections."""

    def __init__(self, *, sections: Mapping[str, Sequence[str]], **rest: object) -> None:
        """Show in each of *sections* the commands that it names, and the others at the end."""
        super().__init__(**rest)  # type: ignore[arg-type]  # what click's own decorator passes on
        self.sections = sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands section by section."""
        for title, rows in self.rows_by_section():
            with formatter.section(title):
                formatter.write_dl(rows)

    def rows_by_section(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """The title of each section, and what each of its commands is called and does."""
        placed = {name for names in self.sections.values() for name in names}
        others = [name for name in self.list_shown() if name not in placed]
        for title, names in (*self.sections.items(), (OTHER, others)):
            if rows := [row for name in names for row in self._rows(name)]:
                yield title, rows

    def _rows(self, name: str) -> Iterator[tuple[str, str]]:
        command = self.commands[name]
        if not isinstance(command, click.Group):
            yield name, first_line(command)
            return
        for sub, each in command.commands.items():
            yield f"{name} {sub}", first_line(each)

    def _known(self) -> Iterator[tuple[str, str]]:
        """Also what is in a group, found by its own name."""
        for name in self.list_shown():
            command = self.commands[name]
            if isinstance(command, click.Group):
                yield from ((sub, f"{name} {sub}") for sub in command.commands)
        yield from super()._known()


def did_you_mean(words: Iterable[str]) -> str:
    """The end of a sentence about what is not there, if anything like it is."""
    quoted = " or ".join(repr(word) for word in words)
    return f" Did you mean {quoted}?" if quoted else ""


def first_line(command: click.Command) -> str:
    """What a command does, in a few words."""
    return (command.help or "").partition("\n")[0].rstrip(".")

"""Help texts: command groups with sections and suggestions, and the examples of every command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import click

OTHER_SECTION = "Other"
"""Title of the section for commands in no other section."""


class Group(click.Group):
    """A command group that suggests the closest name for an unknown command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command named by the first of *args*."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and name[:1] not in ("-", ""):
            raise click.UsageError(f"No such command {name!r}.{self._suggestion(name)}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse *args*; without any, fail with a list of the commands."""
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            *names, last = self.visible_commands()
            one_of = f"{', '.join(names)} or {last}" if names else last
            raise click.UsageError(f"Missing command: {one_of}.", ctx)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in the order in which they were added."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short_help(self.commands[name])) for name in self.visible_commands()])

    def visible_commands(self) -> list[str]:
        """The names of the commands that are not hidden, in order."""
        return [name for name, command in self.commands.items() if not command.hidden]

    def _suggestion(self, name: str) -> str:
        from difflib import get_close_matches

        if name in ("help", "version"):
            return did_you_mean([f"--{name}"])
        candidates = list(self._candidates())
        closest = get_close_matches(name, dict(candidates), n=1)
        return did_you_mean(full for each, full in candidates if each in closest)

    def _candidates(self) -> Iterator[tuple[str, str]]:
        """Each command name to compare with, and the full words to suggest for it."""
        for name in self.visible_commands():
            yield name, name


class RootGroup(Group):
    """The top-level group, whose help lists all commands in sections."""

    def __init__(self, *, sections: Mapping[str, Sequence[str]], **attributes: object) -> None:
        """List the commands named in each of *sections*, and all others at the end."""
        super().__init__(**attributes)  # type: ignore[arg-type]  # passed on by click's own decorator
        self.sections = sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands section by section."""
        for title, rows in self.rows_by_section():
            with formatter.section(title):
                formatter.write_dl(rows)

    def rows_by_section(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Each section's title, with the name and summary of its commands."""
        placed = {name for names in self.sections.values() for name in names}
        others = [name for name in self.visible_commands() if name not in placed]
        for title, names in (*self.sections.items(), (OTHER_SECTION, others)):
            if rows := [row for name in names for row in self._rows(name)]:
                yield title, rows

    def _rows(self, name: str) -> Iterator[tuple[str, str]]:
        command = self.commands[name]
        if not isinstance(command, click.Group):
            yield name, short_help(command)
            return
        for sub, each in command.commands.items():
            yield f"{name} {sub}", short_help(each)

    def _candidates(self) -> Iterator[tuple[str, str]]:
        """Include subcommands, each under its own name."""
        for name in self.visible_commands():
            command = self.commands[name]
            if isinstance(command, click.Group):
                yield from ((sub, f"{name} {sub}") for sub in command.commands)
        yield from super()._candidates()


def did_you_mean(words: Iterable[str]) -> str:
    """The suggestion to append to a message about an unknown word; empty without *words*."""
    quoted = " or ".join(repr(word) for word in words)
    return f" Did you mean {quoted}?" if quoted else ""


def short_help(command: click.Command) -> str:
    """The first line of a command's help, without its full stop."""
    return (command.help or "").partition("\n")[0].rstrip(".")


EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "": (
            "carrel demo",
            "carrel session create rain --ttl 7d",
            "carrel files put rain data.csv",
            "carrel sh rain 'head -n 3 data.csv'",
            "carrel run rain -c 'print(open(\"data.csv\").read())'",
        ),
        "session create": (
            "carrel session create",
            "carrel session create rain",
            "carrel session create --ttl 7d --max-mb 500 --label project=rain",
        ),
        "session list": (
            "carrel session list",
            "carrel session list --limit 100 --after s100",
            "carrel session list --json",
        ),
        "session show": (
            "carrel session show demo",
            "carrel session show demo --journal",
            "carrel session show demo --journal --since 0 --limit 10 --json",
        ),
        "session verify": ("carrel session verify demo", "carrel session verify demo --json"),
        "session extend": ("carrel session extend demo 7d", "carrel session extend demo none"),
        "session delete": ("carrel session delete demo", "carrel session delete --missing-ok demo other"),
        "session sweep": (
            "carrel session sweep --dry-run -v",
            "carrel session sweep --idle 30d",
        ),
        "files ls": (
            "carrel files ls demo",
            "carrel files ls demo notes -l",
            "carrel files ls demo -r --pattern '*.csv'",
        ),
        "files cat": (
            "carrel files cat demo data.csv",
            "carrel files cat demo data.csv --lines 2:10",
            "carrel files cat demo old.txt --encoding latin-1",
        ),
        "files put": (
            "carrel files put demo data.csv",
            "carrel files put demo project src",
            "date | carrel files put demo - notes/today.txt",
            "carrel files put demo project.tar.gz --extract",
        ),
        "files get": (
            "carrel files get demo notes/todo.txt",
            "carrel files get demo notes/todo.txt - | wc -l",
            "carrel files get demo . backup.tar.gz --archive tar.gz",
        ),
        "files rm": ("carrel files rm demo data.csv", "carrel files rm -r demo notes"),
        "policy explain": (
            "carrel policy explain demo notes/todo.txt",
            "carrel policy explain demo /usr/share --access read --allow /usr/share",
        ),
        "sh": (
            "carrel sh demo",
            "carrel sh demo 'grep -rn TODO .'",
            "carrel sh demo --pipelines 'sort data.csv | uniq -c'",
            "carrel sh -c 'workspace status'",
        ),
        "run": (
            "carrel run demo -c 'print(6 * 7)'",
            "carrel run demo analyse.py data.csv",
            "carrel run demo /workspace/notes/count.py",
            "echo 'print(1)' | carrel run demo -",
            "carrel run --container demo -- ls -la",
        ),
        "tools": (
            "carrel tools",
            "carrel tools --role developer --format anthropic",
        ),
        "tool": (
            'carrel tool demo file_list \'{"path": "."}\'',
            'carrel tool demo file_read \'{"path": "data.csv"}\' --role developer',
            "carrel tool demo bash - < arguments.json",
        ),
        "key create": (
            "carrel key create ci",
            "carrel key create alice --role developer --expires 30d --rate 600",
        ),
        "key list": ("carrel key list", "carrel key list --json"),
        "key local": (
            "carrel key local",
            'curl --oauth2-bearer "$(carrel key local)" localhost:8080/api/v1/sessions',
        ),
        "key revoke": ("carrel key revoke ci",),
        "serve": (
            "carrel serve",
            "carrel serve --host 0.0.0.0 --port 8080",
            "carrel serve --port 0 --no-grpc --json",
        ),
        "mcp": (
            "carrel mcp --session demo --role developer",
            "carrel mcp --session demo --role developer --profile mcp",
        ),
        "demo": ("carrel demo",),
        "setup": ("carrel setup", "carrel setup --fuel --quiet"),
        "doctor": ("carrel doctor", "carrel doctor --settings", "carrel doctor --json"),
        "completion": (
            'eval "$(carrel completion bash)"',
            'eval "$(carrel completion zsh)"',
            "carrel completion fish > ~/.config/fish/completions/carrel.fish",
        ),
    }
)
"""Examples by the words after `carrel`; the key of the program itself is empty."""


def add_examples(program: click.Group) -> None:
    """Append the examples to the help of *program*, its groups and its commands."""
    for name, command in commands_of(program):
        if lines := examples_of(name):
            # "\b" keeps click from rewrapping the lines.
            command.epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def examples_of(name: str) -> tuple[str, ...]:
    """The examples of a command; for a group, the first one of each of its commands."""
    return EXAMPLES.get(name) or tuple(
        lines[0] for each, lines in EXAMPLES.items() if each.startswith(f"{name} ")
    )


def commands_of(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """The group and all visible commands below it, each with its words on the command line."""
    yield name, group
    for word, command in group.commands.items():
        full = f"{name} {word}".strip()
        if isinstance(command, click.Group):
            yield from commands_of(command, full)
        elif not command.hidden:
            yield full, command

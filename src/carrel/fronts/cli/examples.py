"""The examples of every command: what `--help`, the manual and the reference show. A test runs them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import click

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
"""By the words after `carrel`; the program itself has none."""


def add_examples(program: click.Group) -> None:
    """Let the help of *program*, of its groups and of its commands end with their examples."""
    for name, command in commands_of(program):
        if lines := examples_of(name):
            # The sign keeps click from filling the lines.
            command.epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def examples_of(name: str) -> tuple[str, ...]:
    """The examples of a command, or the first of each command of a group."""
    return EXAMPLES.get(name) or tuple(
        lines[0] for each, lines in EXAMPLES.items() if each.startswith(f"{name} ")
    )


def commands_of(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """The group and all below it that is no secret, by the words that are typed for it."""
    yield name, group
    for word, command in group.commands.items():
        full = f"{name} {word}".strip()
        if isinstance(command, click.Group):
            yield from commands_of(command, full)
        elif not command.hidden:
            yield full, command

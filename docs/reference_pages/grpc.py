"""The page about gRPC."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import carrel.remote.proto
from docs.reference_pages.markdown import page, paragraph, table, wrapped

PROTO = Path(carrel.remote.proto.__path__[0]) / "carrel_v1.proto"
_RPC = re.compile(r"rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);")
_FIELD = re.compile(r"((?:optional |repeated )?)([\w.]+(?:<[^>]+>)?) (\w+) = \d+;")


def make() -> str:
    """The page about gRPC."""
    text = PROTO.read_text()
    head, _, _ = text.partition("syntax =")
    services = [block for block in proto_blocks(text) if block.kind == "service"]
    messages = [block for block in proto_blocks(text) if block.kind == "message"]
    return page(
        "gRPC",
        """
        The gRPC interface of `carrel serve`, in addition to health (`grpc.health.v1`) and reflection; see
        [run the service](../how-to/serve.md). The package is `carrel.v1`; its file is
        `carrel/remote/proto/carrel_v1.proto` in the installed package.
        """,
        # The first paragraph is about the file itself.
        "\n\n".join(wrapped(each) for each in proto_comment(head.splitlines()).split("\n\n")[1:]),
        "The statuses of errors are in the [table of errors](errors.md).",
        *(part for block in services for part in rpc_parts(block)),
        "## Messages",
        *(part for block in messages for part in message_parts(block)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtoBlock:
    """A service or a message of the file."""

    kind: str
    name: str
    comment: str
    lines: list[str]


def proto_blocks(text: str) -> Iterator[ProtoBlock]:
    """The services and messages, in their order."""
    for match in re.finditer(
        r"(?P<comment>(?:^//[^\n]*\n)*)"
        r"^(?P<kind>service|message) (?P<name>\w+) \{(?P<body>\}|[^\n]*\n.*?^\})",
        text,
        re.MULTILINE | re.DOTALL,
    ):
        yield ProtoBlock(
            kind=match["kind"],
            name=match["name"],
            comment=paragraph(proto_comment(match["comment"].splitlines())),
            lines=[line.strip() for line in match["body"].splitlines()],
        )


def proto_comment(lines: Iterable[str]) -> str:
    """The words of comments."""
    return "\n".join(
        line.strip().removeprefix("//").strip() for line in lines if line.strip().startswith("//")
    )


def commented(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each line that says something, with the comment above it."""
    comment: list[str] = []
    for line in lines:
        if line.startswith("//"):
            comment.append(line)
        elif line:
            yield line, paragraph(proto_comment(comment))
            comment = []


def rpc_parts(block: ProtoBlock) -> Iterator[str]:
    """One service and its calls."""
    yield f"## {block.name}"
    yield block.comment
    rows = []
    for line, comment in commented(block.lines):
        if match := _RPC.match(line):
            name, many, takes, streams, gives = match.groups()
            rows.append((f"`{name}`", f"{many or ''}{link(takes)}", f"{streams or ''}{link(gives)}", comment))
    yield table(("call", "request", "response", "meaning"), rows)


def message_parts(block: ProtoBlock) -> Iterator[str]:
    """One message and its fields."""
    yield f"### {block.name}"
    if block.comment:
        yield block.comment
    rows, group = [], ""
    for line, comment in commented(block.lines):
        if line.startswith("oneof "):
            group = f"One of `{line.split()[1]}`. "
        elif line == "}":
            group = ""
        elif match := _FIELD.match(line):
            label, kind, name = match.groups()
            shown = link(kind) if kind[0].isupper() else f"`{kind}`"
            rows.append((f"`{name}`", f"{label}{shown}", f"{group}{comment}".strip()))
    yield table(("field", "type", "meaning"), rows) if rows else "It has no fields."


def link(message: str) -> str:
    """A message of this page."""
    return f"[`{message}`](#{message.lower()})"

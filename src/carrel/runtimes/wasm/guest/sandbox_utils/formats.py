"""Conversions between CSV, JSON and XML."""

from __future__ import annotations

import csv
import io
import json

from .paths import Given, inside
from .text import read_text

TYPE_CHECKING = False  # importing `typing` would take longer than this module
if TYPE_CHECKING:
    from typing import Any


def csv_to_json(csv_file: Given, output: Given | None = None) -> str | None:
    """Convert CSV to a JSON array of objects, whose keys are the first row.

    Args:
        csv_file: A file, or the CSV itself as text of more than one line.
        output: The file to write; without it, the JSON is returned.

    Raises:
        ValueError: A row has more fields than the first one.
    """
    is_text = isinstance(csv_file, str) and "\n" in csv_file
    reader = csv.DictReader(io.StringIO(_text(csv_file, is_text=is_text), newline=""))
    rows = []
    for row in reader:
        if None in row:
            raise ValueError(f"line {reader.line_num} has more fields than the first row")
        rows.append(row)
    return _write(json.dumps(rows, indent=2, ensure_ascii=False), output)


def json_to_csv(json_file: Given, output: Given | None = None) -> str | None:
    """Convert a JSON array of objects to CSV; the first row has all their keys.

    Text is written unchanged, `null` and missing values are empty, and other values are written as JSON.

    Args:
        json_file: A file, or the JSON itself as text that starts with `[` or `{`.
        output: The file to write; without it, the CSV is returned.

    Raises:
        ValueError: The input is not JSON, or not an array of objects.
    """
    is_text = isinstance(json_file, str) and json_file.lstrip().startswith(("[", "{"))
    rows = json.loads(_text(json_file, is_text=is_text))
    rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("the JSON must be an array of objects")
    keys = list(dict.fromkeys(key for row in rows for key in row))
    made = io.StringIO(newline="")
    writer = csv.DictWriter(made, keys, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return _write(made.getvalue(), output)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(given: Given, *, is_text: bool) -> str:
    return str(given) if is_text else read_text(inside(given))


def _write(text: str, output: Given | None) -> str | None:
    """Write *text* to *output* if given; otherwise return it."""
    if output is None:
        return text
    with open(inside(output), "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return None


def xml_to_dict(xml_str: str | bytes) -> dict[str, Any]:  # Any: values depend on the XML
    """Convert XML to a dict with one key, the name of the root element.

    An element with only text becomes that text, an empty one `None`, and any other a dict: attribute names
    start with `@`, repeated elements become a list, and text next to elements is `#text`.

    Raises:
        ValueError: The XML is not well-formed, or has a DOCTYPE, whose entities could expand without limit or
            refer to files.
    """
    from xml.parsers import expat

    elements = _Elements()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = elements.start
    parser.EndElementHandler = elements.end
    parser.CharacterDataHandler = elements.text
    try:
        parser.Parse(xml_str, True)
    except expat.ExpatError as error:
        raise ValueError(f"not well-formed XML: {error}") from None
    return elements.root


def _refuse_doctype(*_: object) -> None:
    raise ValueError("XML with a DOCTYPE is refused")


class _Elements:
    """Builds the dict while parsing, without recursion, at any depth."""

    def __init__(self) -> None:
        self.root: dict[str, Any] = {}
        self._open: list[tuple[dict[str, Any], list[str]]] = [(self.root, [])]

    def start(self, _name: str, attributes: dict[str, str]) -> None:
        self._open.append(({f"@{key}": value for key, value in attributes.items()}, []))

    def text(self, data: str) -> None:
        self._open[-1][1].append(data)

    def end(self, name: str) -> None:
        content, pieces = self._open.pop()
        text = "".join(pieces).strip()
        if content and text:
            content["#text"] = text
        _add(self._open[-1][0], name, content or text or None)


def _add(parent: dict[str, Any], name: str, value: object) -> None:
    if name not in parent:
        parent[name] = value
    elif isinstance(parent[name], list):
        parent[name].append(value)
    else:
        parent[name] = [parent[name], value]

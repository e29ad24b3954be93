"""A JSON Schema, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator

from carrel.tools.core.schema import Schema
from docs.reference_pages.markdown import plain


def argument_rows(schema: Schema, within: str = "") -> Iterator[tuple[str, ...]]:
    """A row for each argument, and for each field of what is in a list."""
    for name, about in schema["properties"].items():
        default = f"`{json.dumps(about['default'])}`" if "default" in about else ""
        is_needed = name in schema["required"]
        says = plain(about["description"])
        yield f"`{within}{name}`", type_of(about), "required" if is_needed else default, says
        if "properties" in about.get("items", {}):
            yield from argument_rows(about["items"], f"{name}[].")


def type_of(about: Schema) -> str:
    """The type and the bounds of an argument, in words."""
    if "enum" in about:
        return ", ".join(f"`{each}`" for each in about["enum"])
    if about["type"] == "array":
        items = about["items"]
        text = f"list of {'objects' if items['type'] == 'object' else type_of(items) + 's'}"
        return text + bounds_of(about, "minItems", "maxItems", " items")
    unit = " characters" if about["type"] == "string" else ""
    keys = ("minLength", "maxLength") if unit else ("minimum", "maximum")
    return f"{about['type']}{bounds_of(about, *keys, unit)}"


def bounds_of(about: Schema, least: str, most: str, unit: str) -> str:
    """The bounds of a number or of a length."""
    low, high = about.get(least), about.get(most)
    if low is None and high is None:
        return ""
    if low == high:
        return f", {low}{unit}"
    if low == 1 and high is None and unit:
        return ", not empty"
    if low is not None and high is not None:
        return f", {low} to {high}{unit}"
    return f", at least {low}{unit}" if high is None else f", at most {high}{unit}"


def schema_type(schema: Schema) -> str:
    """A type of JSON Schema, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[`{name}`](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(schema_type(each) for each in schema[key]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {schema_type(schema.get('items') or {})}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {schema_type(schema['additionalProperties'])}"
    return str(kind)


def default_of(schema: Schema) -> str:
    """The default, if it says anything."""
    default = schema.get("default")
    return "" if default is None else f"`{json.dumps(default)}`"

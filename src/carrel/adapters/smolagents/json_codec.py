"""Encodes values as JSON and back, between guest and host; this source also runs in the guest.

Decoding creates plain values only, never objects of a class named by the other side.
"""

from __future__ import annotations

import base64
import datetime
import decimal
from typing import Any  # JSON values, and the values that they encode

TAG = "$"
"""The key that marks a value without a JSON type of its own."""
NUMBERS = frozenset({
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
})  # fmt: skip
"""Supported dtypes of arrays."""


def encode(value: Any) -> Any:
    """Encode *value* as JSON.

    Raises:
        TypeError: The type of a value is not supported.
    """
    if value is None or isinstance(value, bool):
        return value
    for plain in (str, int, float):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, list):
        return [encode(each) for each in value]
    if isinstance(value, dict):
        return _dictionary(value)
    for kind in (tuple, set, frozenset):
        if isinstance(value, kind):
            return {TAG: kind.__name__, "of": [encode(each) for each in value]}
    return _tagged(value)


def _dictionary(value: dict[Any, Any]) -> Any:
    if TAG not in value and all(type(key) is str for key in value):
        return {key: encode(each) for key, each in value.items()}
    return {TAG: "dict", "of": [[encode(key), encode(each)] for key, each in value.items()]}


def _tagged(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return {TAG: "bytes", "of": base64.b64encode(value).decode()}
    if isinstance(value, complex):
        return {TAG: "complex", "of": [value.real, value.imag]}
    if isinstance(value, datetime.timedelta):
        return {TAG: "timedelta", "of": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, decimal.Decimal):
        return {TAG: "Decimal", "of": str(value)}
    # A datetime is also a date, so it comes first.
    for kind in (datetime.datetime, datetime.date, datetime.time):
        if isinstance(value, kind):
            return {TAG: kind.__name__, "of": value.isoformat()}
    if type(value).__module__ == "numpy" and value.dtype.name in NUMBERS:
        if value.ndim == 0:
            return encode(value.item())
        return {TAG: "array", "of": encode(value.tolist()), "dtype": value.dtype.name}
    raise TypeError(f"a value of type {type(value).__name__} cannot be passed")


def decode(value: Any) -> Any:
    """Decode a value from JSON.

    Raises:
        ValueError: The encoding is invalid.
        TypeError: The encoding is invalid.
    """
    if isinstance(value, list):
        return [decode(each) for each in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: decode(each) for key, each in value.items()}
    decoder = _DECODERS.get(value[TAG])
    if decoder is None:
        raise ValueError("a value of an unknown kind")
    return decoder(value)


def _array(value: Any) -> Any:
    elements, dtype = decode(value["of"]), value["dtype"]
    if dtype not in NUMBERS:
        raise ValueError("an array of an unsupported dtype")
    try:
        import numpy
    except ImportError:
        return elements
    return numpy.array(elements, dtype=dtype)


def _timedelta(value: Any) -> datetime.timedelta:
    days, seconds, microseconds = value["of"]
    return datetime.timedelta(days, seconds, microseconds)


_DECODERS = {
    "tuple": lambda value: tuple(decode(value["of"])),
    "set": lambda value: set(decode(value["of"])),
    "frozenset": lambda value: frozenset(decode(value["of"])),
    "dict": lambda value: {decode(key): decode(each) for key, each in value["of"]},
    "bytes": lambda value: base64.b64decode(value["of"], validate=True),
    "complex": lambda value: complex(*value["of"]),
    "timedelta": _timedelta,
    "Decimal": lambda value: decimal.Decimal(value["of"]),
    "datetime": lambda value: datetime.datetime.fromisoformat(value["of"]),
    "date": lambda value: datetime.date.fromisoformat(value["of"]),
    "time": lambda value: datetime.time.fromisoformat(value["of"]),
    "array": _array,
}

"""Shell-like helpers for scripts in a session: files, text, lists, and conversions between formats.

This package runs in the guest. Names are loaded on first use. Relative paths start at the working directory.
Paths must be in the session or in `/tmp`; any other raises `ValueError`.
"""

from __future__ import annotations

_HOMES = {
    "data": ("chunk", "filter_by", "group_by", "map_items", "sort_by", "unique"),
    "files": ("copy_tree", "find", "remove_tree", "tree", "walk"),
    "formats": ("csv_to_json", "json_to_csv", "xml_to_dict"),
    "shell": ("cat", "cp", "echo", "ls", "mkdir", "mv", "rm", "touch"),
    "text": ("diff", "grep", "head", "sed", "tail", "wc"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605  # the table above is the one list


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = __import__(f"{__name__}.{home}", fromlist=["*"])
    globals().update((each, getattr(module, each)) for each in _HOMES[home])
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__

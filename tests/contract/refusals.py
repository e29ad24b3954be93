"""A tree with every kind of obstacle, and where in it nothing can be written, whoever asks.

What is absolute leads to nothing, so that a guard that fails does no harm to the host.
"""

from __future__ import annotations

from carrel.errors import (
    CarrelError,
    EscapeError,
    IsDirectoryError,
    LoopError,
    MissingError,
    NotDirectoryError,
    PathError,
)

TREE = (
    "f = old",
    "d/",
    "to-f => f",
    "to-d => d",
    "to-new => new",
    "to-new-in => n1/n2/new",
    "to-slash => new/",
    "to-dot => new/.",
    "to-d-dot => d/.",
    "to-f-dot => f/.",
    "to-here => .",
    "loop => loop",
    "out => ../outside/secret",
    "out-new => ../outside/new",
    "out-dir => ../outside",
    "absolute => /nonexistent/secret",
    "up => ..",
)
REFUSED: list[tuple[str, type[CarrelError]]] = [
    ("d", IsDirectoryError),
    ("d/", IsDirectoryError),
    ("to-d", IsDirectoryError),
    ("new/", IsDirectoryError),
    ("new///", IsDirectoryError),
    ("f/", IsDirectoryError),
    ("to-slash", IsDirectoryError),
    (".", PathError),
    ("new/.", PathError),
    ("d/..", PathError),
    ("to-dot", MissingError),
    ("to-d-dot", IsDirectoryError),
    ("to-f-dot", NotDirectoryError),
    ("to-here", IsDirectoryError),
    ("up", EscapeError),
    ("f/x", NotDirectoryError),
    ("f/x/y", NotDirectoryError),
    ("to-f/x", NotDirectoryError),
    ("to-new/x", NotDirectoryError),
    ("missing/../x", MissingError),
    ("loop", LoopError),
    ("loop/x", LoopError),
    ("..", EscapeError),
    ("../evil", EscapeError),
    ("../evil/", EscapeError),
    ("../ws/f", EscapeError),
    ("../outside/secret", EscapeError),
    ("d/../../evil", EscapeError),
    ("out", EscapeError),
    ("out/", EscapeError),
    ("out-new", EscapeError),
    ("out-dir/new", EscapeError),
    ("out-dir/new/", EscapeError),
    ("out-dir/n1/n2", EscapeError),
    ("absolute", EscapeError),
    ("up/evil", EscapeError),
    ("up/ws/f", EscapeError),
]
"""Where nothing can be written, whoever asks."""

"""The areas of a workspace as a view shows them: only some directories of it, and asked before every step."""

from __future__ import annotations

from collections.abc import Iterable

from carrel.audit.event import Event, is_cut
from carrel.errors import PathError, UnavailableError
from carrel.fs.api import Files
from carrel.fs.checked import Check, CheckedFiles
from carrel.fs.part import Part
from carrel.fs.root import Root
from carrel.paths.rel import Where, leads_out, parse, parse_any, relative
from carrel.workspace.areas import HOST, WORKSPACE, Areas, Place, Places, parts_of

Names = tuple[str, ...]
"""What leads from the workspace to a directory in it."""

_FIRST = HOST - 1
"""The area of the first directory that a view shows; those of the others follow downwards."""
_TOP = parse(".")


class Shown:
    """Tells what a view of some directories shows, without looking at any file.

    Not covered: records have paths as they were requested. What others change through a link that stands in
    one of the directories counts as changed there, wherever the link leads.
    """

    def __init__(self, places: Places, within: tuple[Names, ...]) -> None:
        """Show of the workspace only what is at or beneath *within*."""
        self._places = places
        self._within = within

    def locate(self, where: Where) -> Place:
        """Where *where* lies; what the view does not show lies in no rule."""
        place = self._places.locate(where)
        if place.area != WORKSPACE:
            return place
        parts = place.where.parts
        for index, names in enumerate(self._within):
            if parts[: len(names)] == names:
                return Place(0, _FIRST - index, relative(place.where, parts[len(names) :]))
        return Place(None, HOST, place.where)

    def has(self, event: Event) -> bool:
        """Whether the view shows the path of *event*, and both of a move or a copy."""
        # The text of a link can be read by whoever sees the link.
        other = None if event.operation == "link" else event.other_path
        return self._has(event.path) and (other is None or self._has(other))

    def _has(self, path: str) -> bool:
        if is_cut(path):
            # The rest may lead out again.
            return False
        try:
            place = self.locate(parse_any(path))
        except PathError:
            return False
        return place.rule is not None and not leads_out(_TOP, place.where.text)


class View:
    """Finds what a view shows in the areas of a workspace, and closes none of them."""

    def __init__(self, areas: Areas, *, within: tuple[Names, ...] | None = None, check: Check | None = None):
        """Show of the workspace only what is at or beneath *within*, if that is given.

        Raises:
            UnavailableError: The workspace has no directories that could be opened on their own.
        """
        self.areas = areas
        self.within = within
        self.check = check
        self._parts = [_part(areas.workspace, names) for names in within or ()]
        self._checked: dict[int, CheckedFiles] = {}
        self.shown = None if within is None else Shown(areas.places, within)
        """What limits it to some directories, if anything does."""

    def narrowed(self, within: tuple[Names, ...], check: Check | None) -> View:
        """A view that shows no more than this one, and asks *check* as well."""
        return View(self.areas, within=_meet(self.within, within), check=_both(self.check, check))

    def locate(self, where: Where) -> Place:
        """Where *where* lies; what the view does not show lies in no rule."""
        return (self.shown or self.areas).locate(where)

    def files(self, place: Place) -> Files:
        """The files of the area that *place* lies in.

        Raises:
            MissingError: The rule's directory is not there.
            ClosedError: The workspace was closed.
        """
        found = self._parts[_FIRST - place.area] if place.area <= _FIRST else self.areas.files(place)
        if self.check is None:
            return found
        checked = self._checked.get(place.area)
        if checked is None:
            # One for each area, because a move looks whether both ends are the same files.
            checked = self._checked.setdefault(place.area, CheckedFiles(found, self.check))
        return checked

    def close(self) -> None:
        """Leave the areas to the workspace that they belong to."""


def parse_within(paths: Iterable[str], mount: str) -> tuple[Names, ...]:
    """What leads to each of *paths*; none that lies in another, and nothing if one is the workspace itself.

    Raises:
        ValueError: One is empty, leads out, or is absolute and not beneath *mount*.
    """
    if isinstance(paths, str):
        raise TypeError("the paths must come in a list, not as one str")
    found = {_names(path, parts_of(mount)) for path in paths}
    if () in found:
        return ()
    return tuple(
        sorted(names for names in found if not any(names[:count] in found for count in range(len(names))))
    )


def _names(path: str, mount: Names) -> Names:
    where = parse_any(path)
    names = where.parts
    if where.absolute:
        if names[: len(mount)] != mount:
            raise ValueError(f"{path!r} is not in the workspace")
        names = names[len(mount) :]
    if ".." in names:
        raise ValueError(f"{path!r} must say without '..' what it means")
    return names


def _part(workspace: Files, names: Names) -> Part:
    if not isinstance(workspace, Root):
        raise UnavailableError(
            "the workspace is not on the host's disk, so no part of it can be opened alone"
        )
    return Part(workspace, names)


def _meet(one: tuple[Names, ...] | None, other: tuple[Names, ...]) -> tuple[Names, ...] | None:
    """What lies in both; an empty *other* is no condition."""
    if one is None or not other:
        return other or one
    inner = {_deeper(left, right) for left in one for right in other}
    return tuple(sorted(names for names in inner if names is not None))


def _deeper(left: Names, right: Names) -> Names | None:
    """The one that lies at or beneath the other, if one does."""
    shorter, longer = sorted((left, right), key=len)
    return longer if longer[: len(shorter)] == shorter else None


def _both(one: Check | None, other: Check | None) -> Check | None:
    if one is None or other is None:
        return one or other
    first, second = one, other

    def check() -> None:
        first()
        second()

    return check

"""All mutants."""

from __future__ import annotations

from tests.mutants import callers, containers, files, resolving, running, sessions

MUTANTS = [
    mutant for area in (resolving, files, sessions, running, callers, containers) for mutant in area.MUTANTS
]

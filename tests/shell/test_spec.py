"""The output of every command and option, as recorded from the real tools."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace
from tests.attack.privilege import IS_ROOT, missing
from tests.spec import tools
from tests.spec.case import Case, Printed, Spec, specs

SPECS = specs()


@pytest.mark.parametrize(
    ("spec", "case"),
    [
        pytest.param(spec, case, id=f"{spec.path.stem}:{case.line}:{case.command[:60]}")
        for spec in SPECS
        for case in spec.cases
    ],
)
def test_a_command_prints_what_the_real_tool_prints(spec: Spec, case: Case, tmp_path: Path) -> None:
    expected = case.expected
    if spec.live and case.recorded:
        if shutil.which("bash") is None:
            missing("bash, to compare with")
        if not IS_ROOT:
            missing("root, since the real tools print who owns a file")
        expected = tools.run(spec, case, tmp_path)
    top = tmp_path / "workspace"
    top.mkdir()
    spec.plant(top)
    with Workspace.open(top) as workspace:
        result = BareShell(workspace, pipelines=True).run(case.command, stdin=case.stdin)
    found = Printed(stdout=result.stdout, stderr=result.stderr, status=result.exit_code)
    assert found == expected, f"{spec.path.name}:{case.line}: {case.command}"


def test_there_are_many_cases() -> None:
    assert sum(case.recorded for spec in SPECS for case in spec.cases) >= 400

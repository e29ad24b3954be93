"""A toolbox may be given what runs guest code."""

from __future__ import annotations

from pathlib import Path

from carrel.config.settings import PythonSettings
from carrel.errors import RuntimeMissingError
from carrel.runtimes.api import Runtime
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace


def test_commands_and_code_run_on_the_engine_that_a_toolbox_is_given(tmp_path: Path) -> None:
    asked: list[PythonSettings] = []

    def find(settings: PythonSettings) -> Runtime:
        asked.append(settings)
        raise RuntimeMissingError("there is no engine here")

    with Workspace.open(tmp_path) as workspace, Toolbox(workspace, engine=find) as toolbox:
        for name, arguments in (
            ("bash", {"command": "python -c 1"}),
            ("python_executor", {"code": "1"}),
        ):
            result = toolbox.call(name, arguments)
            assert not result.success
            assert "there is no engine here" in result.text().lower()
    assert len(asked) == 2

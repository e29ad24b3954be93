from __future__ import annotations

from pathlib import Path

import pytest
from grpc_tools import protoc

import carrel.remote.proto

HERE = Path(carrel.remote.proto.__file__).parent
SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the compiler makes of the proto file now."""
    directory = tmp_path_factory.mktemp("made")
    options = (f"--{kind}_out={directory}" for kind in ("python", "pyi", "grpc_python"))
    assert protoc.main(["protoc", f"-I{SOURCE}", *options, "carrel/remote/proto/carrel_v1.proto"]) == 0
    return directory / "carrel/remote/proto"


@pytest.mark.parametrize("name", ["carrel_v1_pb2.py", "carrel_v1_pb2.pyi", "carrel_v1_pb2_grpc.py"])
def test_the_modules_are_what_the_compiler_makes_of_the_proto_file(made: Path, name: str) -> None:
    assert (HERE / name).read_text() == (made / name).read_text(), "run `make proto`"

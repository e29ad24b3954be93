"""Libraries work on the files of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.sandbox.sandbox import BaseSandbox
from tests.sandbox.house import House, said

CASES = {
    "json": (
        "import json\njson.dump({'a': [1, None]}, open('f', 'w'))\nprint(json.load(open('f')))",
        "{'a': [1, None]}",
    ),
    "csv": (
        "import csv\nwith open('f', 'w', newline='') as f: csv.writer(f).writerow(['a', 'b,c'])\n"
        "print(list(csv.reader(open('f'))))",
        "[['a', 'b,c']]",
    ),
    "zipfile": (
        "import zipfile\nwith zipfile.ZipFile('f', 'w', 8) as z: z.writestr('in/side', 'x' * 9)\n"
        "z = zipfile.ZipFile('f')\nz.extractall('out')\nprint(z.namelist(), open('out/in/side').read())",
        "['in/side'] xxxxxxxxx",
    ),
    "tarfile": (
        "import tarfile\nopen('a', 'w').write('x')\nwith tarfile.open('f', 'w:gz') as t: t.add('a')\n"
        "print(tarfile.open('f').getnames())",
        "['a']",
    ),
    "gzip": (
        "import gzip\nwith gzip.open('f', 'wt') as f: f.write('text')\nprint(gzip.open('f', 'rt').read())",
        "text",
    ),
    "pickle": (
        "import pickle\nclass C: pass\npickle.dump(C(), open('f', 'wb'))\n"
        "print(type(pickle.load(open('f', 'rb'))) is C)",
        "True",
    ),
    "shelve": (
        "import shelve\nwith shelve.open('f') as s: s['k'] = [1]\nprint(dict(shelve.open('f')))",
        "{'k': [1]}",
    ),
    "tempfile": (
        "import tempfile\nwith tempfile.NamedTemporaryFile('w') as f:\n    f.write('x')\n    f.flush()\n"
        "    print(open(f.name).read(), f.name.startswith('/tmp/'))",
        "x True",
    ),
    "temporary directory": (
        "import tempfile, os\nwith tempfile.TemporaryDirectory() as d:\n"
        "    open(d + '/a', 'w').close()\n    print(os.listdir(d))\nprint(os.path.exists(d))",
        "['a']\nFalse",
    ),
    "logging": (
        "import logging\nlogging.basicConfig(filename='f', level=20)\nlogging.info('x')\n"
        "print(open('f').read(), end='')",
        "INFO:root:x",
    ),
    "configparser": (
        "import configparser\nc = configparser.ConfigParser()\nc['a'] = {'b': '1'}\nc.write(open('f', 'w'))\n"
        "d = configparser.ConfigParser()\nd.read('f')\nprint(d['a']['b'])",
        "1",
    ),
    "hashlib": (
        "import hashlib\nopen('f', 'wb').write(b'abc')\n"
        "print(hashlib.file_digest(open('f', 'rb'), 'sha256').hexdigest()[:8])",
        "ba7816bf",
    ),
    "sqlite3": (
        "import sqlite3\nwith sqlite3.connect('/app/f') as c:\n    c.execute('create table t(a)')\n"
        "    c.executemany('insert into t values (?)', [(n,) for n in range(100)])\n"
        "print(sqlite3.connect('/app/f').execute('select sum(a) from t').fetchone())",
        "(4950,)",
    ),
}
COUNT = "import sqlite3\nprint(sqlite3.connect('/workspace/f').execute('select count(*) from t').fetchone())"
PICTURE = """
import pandas as pd
import matplotlib.pyplot as plt

table = pd.read_csv("numbers.csv")
table["double"] = table["value"] * 2
table.to_csv("double.csv", index=False)
table.plot(x="value", y="double")
plt.savefig("plot.png")
print(int(table["double"].sum()))
"""


@pytest.mark.parametrize("name", CASES)
def test_a_library_of_python_works(sandbox: BaseSandbox, name: str) -> None:
    code, answer = CASES[name]
    assert said(sandbox.execute(code)) == f"{answer}\n"


def test_a_database_lasts(sandbox: BaseSandbox) -> None:
    sandbox.execute(CASES["sqlite3"][0])
    assert said(sandbox.execute(COUNT)) == "(100,)\n"


def test_a_transaction_that_failed_was_never_there(sandbox: BaseSandbox) -> None:
    sandbox.execute(CASES["sqlite3"][0])
    sandbox.execute("import sqlite3\nc = sqlite3.connect('f')\nc.execute('delete from t')\n1 / 0")
    assert said(sandbox.execute(COUNT)) == "(100,)\n"


@pytest.mark.slow
def test_a_table_becomes_a_picture(house: House) -> None:
    sandbox = house.new(memory_bytes=512_000_000, timeout_seconds=120)
    files: Path = house.files(sandbox)
    (files / "numbers.csv").write_text("value\n1\n2\n3\n")
    result = sandbox.execute(PICTURE)
    assert result.success, result.stderr
    assert result.stdout == "12\n"
    assert result.files_created == ["double.csv", "plot.png"]
    assert (files / "plot.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert (files / "double.csv").read_text() == "value,double\n1,2\n2,4\n3,6\n"

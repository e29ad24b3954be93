"""Code whose last value is shown, or is not, in every runtime."""

SHOWN = {
    "1 + 1": "2\n",
    "x = [1]\nx": "[1]\n",
    "'a text'": "'a text'\n",
    "x = 1; x  # a remark": "1\n",
    "# a remark\n\n(\n  'in ' +\n  'lines'\n)\n": "'in lines'\n",
    "from __future__ import annotations\ndef f(x: name): pass\nf.__annotations__": "{'x': 'name'}\n",
    "import sys\nsys.displayhook = lambda value: print('>', value)\n6\n7": "> 7\n",
}
"""Code with what it prints."""
SILENT = ["", "# a remark", "None", "x = 1", "1;", "1 ; \n", "if True:\n    1", "1\nx = 2"]
"""Code that shows nothing."""
FAILING = [
    "def f():\n    return 1 / 0\n\nf()",
    "1 / 0\n2",
    "x = = 1\nx",
    "return 1",
    "await x",
    "class A:\n    def __repr__(self):\n        raise ValueError('no')\n\nprint(A())",
]
"""Code that fails in the same way whether its last value is shown or not."""
WARNING = "x = '\\d'\nassert x\nx"
"""Code with a warning of the compiler, which is printed once."""

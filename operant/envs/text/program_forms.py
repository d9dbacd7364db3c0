"""A program as an answer gives it: in other correct forms, nearly right, or made to pass without being right."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from random import Random

Change = Callable[[], object]
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Lt: ast.GtE, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def program_forms(program: str) -> dict[str, str]:
    """Answers that hold a whole program."""
    return {
        "fenced": f"```python\n{program}\n```",
        "fenced without a name": f"```\n{program}\n```\n",
        "fenced with words": f"Here is the function:\n\n```python\n{program}\n```\n\nIt runs in linear time.",
        "fence not closed": f"```python\n{program}",
        "between marks": f"[BEGIN]\n{program}\n[DONE]",
        "ended by a mark": f"{program}\n[DONE]\nAnd more words.",
        "comments": f"# A solution.\n\n{program}\n\n# The end.\n",
        "prints": f"{program}\nprint('it works')\n",
        "Windows line ends": program.replace("\n", "\r\n"),
        "its own main": f"{program}\n\nif __name__ == '__main__':\n    raise SystemExit('not run')\n",
    }


def changed_programs(program: str, rng: Random) -> dict[str, str]:
    """The program with one operator, number, condition or result changed, each by its kind."""
    kinds = {"operator": _operators, "number": _numbers, "condition": _conditions, "result": _results}
    found: dict[str, str] = {}
    for kind, changes in kinds.items():
        try:
            count = sum(1 for _ in changes(ast.parse(program)))
        except SyntaxError:
            return {}
        if count:
            tree, chosen = ast.parse(program), rng.randrange(count)
            for place, change in enumerate(changes(tree)):
                if place == chosen:
                    change()
                    break
            found[f"{kind} changed"] = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    return found


def _operators(tree: ast.Module) -> Iterator[Change]:
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPPED:
            yield lambda node=node: setattr(node, "op", SWAPPED[type(node.op)]())
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
            yield lambda node=node: setattr(node, "ops", [SWAPPED[type(node.ops[0])](), *node.ops[1:]])


def _numbers(tree: ast.Module) -> Iterator[Change]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            yield lambda node=node, value=node.value: setattr(node, "value", value + 1)


def _conditions(tree: ast.Module) -> Iterator[Change]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp):
            yield lambda node=node: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))


def _results(tree: ast.Module) -> Iterator[Change]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            yield lambda node=node: setattr(node, "value", ast.Constant(None))


def program_cheats(name: str) -> dict[str, str]:
    """Programs that define a name, or end, so that a careless test would pass."""
    head, yes = f"def {name}(*a, **k):\n", "    def __eq__(self, other): return True\n    __hash__ = None\n"
    return {
        "exits at once": "import os\nos._exit(0)\n",
        "exits when called": f"{head}    raise SystemExit(0)\n",
        "equals everything": f"class Yes:\n{yes}    def __ne__(self, other): return False\n{head}    return Yes()\n",
        "a number that equals everything": (
            f"class Yes(int):\n{yes.replace('None', 'int.__hash__')}{head}    return Yes(0)\n"
        ),
        "no failed assertions": (
            f"import builtins\nclass Never(BaseException): pass\nbuiltins.AssertionError = Never\n{head}    return 0\n"
        ),
        "says that it passed": f"import sys\nprint('right')\nprint('PASSED', file=sys.stderr)\n{head}    return 0\n",
        "skips what follows": f"import sys\nsys.settrace(lambda *a: None)\n{head}    return NotImplemented\n",
        "is itself": f"{head}    return {name}\n",
        "a comment": "# The solution is left to the reader.\n",
    }

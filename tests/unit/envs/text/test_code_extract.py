"""Finding the program in an answer."""

from __future__ import annotations

import pytest

from operant.envs.text.code_extract import completed_program, whole_program

PROMPT = 'def half(x):\n    """Half of x."""\n'


@pytest.mark.parametrize(
    ("completion", "program"),
    [
        ("def f():\n    return 1\n", "def f():\n    return 1\n"),
        ("def f():\n    return 1\n[DONE]\nmore", "def f():\n    return 1\n"),
        ("[BEGIN]\ndef f(): pass\n[DONE]", "\ndef f(): pass\n"),
        ("def f(): pass\n```\nThis is it.", "def f(): pass\n"),
        ("Here:\n```python\ndef f(): pass\n```\nDone.", "def f(): pass"),
        ("```\nimport re\n```\nand\n``` py\ndef f(): pass\n```", "import re\ndef f(): pass"),
        ("```python\ndef f(): pass", "def f(): pass"),
        ("```python\ndef f(): pass\n[DONE]", "def f(): pass\n"),
        (
            "def f(): pass\n\nYour code should pass:\n[BEGIN]\ndef g(): pass",
            "def f(): pass\n\nYour code should pass:\n",
        ),
        ("Sure, here it is.\n[BEGIN]\ndef f(): pass", "\ndef f(): pass"),
        ("", ""),
    ],
)
def test_a_whole_program(completion: str, program: str) -> None:
    assert whole_program(completion) == program


@pytest.mark.parametrize(
    "completion",
    [
        "    return x / 2\n",
        "    return x / 2\n\nprint(half(3))\nassert False",
        "return x / 2",
        "\n    y = x\n\n    return y / 2\ndef other(): raise",
        "    y = [\n        x\n]\n    return y[0] / 2\nThis halves it.",
        "def half(x):\n    return x / 2\n",
        "def half(x):\n    return x / 2\n\nprint(nonsense)",
        "Sure!\n\ndef half(x):\n    return helped(x) / 2\n\ndef helped(x):\n    return x\n\nThis halves it.",
        "Sure:\n```python\nimport math\n\ndef half(x):\n    return math.fabs(x) / 2\n```\nIt halves.",
        "```python\n    return x / 2\n```",
        "    return x / 2\n```\nThat is all.",
    ],
)
def test_a_function_that_is_completed_or_given_again(completion: str) -> None:
    namespace: dict = {}
    exec(completed_program(PROMPT, "half", completion), namespace)
    assert namespace["half"](3) == 1.5

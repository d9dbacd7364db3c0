"""What a message asks for: three forms, their corners, and what is said to those that ask for nothing."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import pytest

from operant.envs.research.commands import Misspoken, parse

FENCED_EDIT = "```edit a.py\n<<<<<<< old\nx = 1\n=======\nx = 2\n>>>>>>>\n<<<<<<< old\ny\n=======\n>>>>>>> new\n```"


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ('<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>', "bash", {"command": "ls"}),
        ('so: <tool_call>\n{"name": "validate"}\n', "validate", {}),
        ('{"name": "view", "arguments": "{\\"path\\": \\"a\\", \\"from\\": 2}"}', "view", {"path": "a", "from": 2}),
        (
            '{"name": "edit", "arguments": {"path": "a", "old": "x", "new": ""}}',
            "edit",
            {"path": "a", "old": ["x"], "new": [""]},
        ),
        ("I look.\n```bash\nls -l\ncat a\n```\nThen more.", "bash", {"command": "ls -l\ncat a"}),
        ("```sh\nls\n```", "bash", {"command": "ls"}),
        ("```python\nprint(1)\n```", "bash", {"command": "python3 -", "stdin": "print(1)\n"}),
        ("```write out/a.py\nx = 1\n\n```", "write", {"path": "out/a.py", "content": "x = 1\n\n"}),
        ("````write a.md\n```bash\nls\n```\n````", "write", {"path": "a.md", "content": "```bash\nls\n```\n"}),
        ("```view a.py 3 9\n```", "view", {"path": "a.py", "from": 3, "to": 9}),
        ("```view\na.py\n```", "view", {"path": "a.py"}),
        ("```submit\n```", "submit", {}),
        (FENCED_EDIT, "edit", {"path": "a.py", "old": ["x = 1\n", "y\n"], "new": ["x = 2\n", ""]}),
        ("```json\n{}\n```\n```validate\n```", "validate", {}),
        ("```bash\nls", "bash", {"command": "ls"}),
        ("write plan.txt 20 20 20", "write", {"path": "plan.txt", "content": "20 20 20\n"}),
        ("validate", "validate", {}),
        ("  submit\n".strip(), "submit", {}),
        ("view plan.txt", "view", {"path": "plan.txt"}),
        ("bash ls | wc -l", "bash", {"command": "ls | wc -l"}),
        ("<think>validate\nsubmit\n</think>view a", "view", {"path": "a"}),
    ],
)
def test_an_action(text: str, tool: str, arguments: dict[str, Any]) -> None:
    action = parse(text)
    assert (action.tool, action.arguments, action.more) == (tool, arguments, False)


@pytest.mark.parametrize(
    "text",
    [
        "```bash\nls\n```\n```validate\n```",
        "write a 1\nvalidate",
        '<tool_call>{"name": "validate"}</tool_call><tool_call>{"name": "submit"}</tool_call>',
    ],
)
def test_of_several_actions_the_first_is_taken(text: str) -> None:
    action = parse(text)
    assert action.more
    assert action.tool in ("bash", "write", "validate")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no action found"),
        ("I would validate the model and then submit it.", "no action found"),
        ("validate the model", "no action found"),
        ("```text\nhello\n```", "no action found"),
        ("<tool_call>ls</tool_call>", "no JSON"),
        ('<tool_call>["bash"]</tool_call>', "no JSON"),
        ('{"name": "rm", "arguments": {}}', "no tool 'rm'"),
        ('{"name": "bash", "arguments": {}}', "bash needs command"),
        ('{"name": "bash", "arguments": {"command": 5}}', "must be text"),
        ('{"name": "bash", "arguments": {"command": "a\\u0000b"}}', "zero byte"),
        ('{"name": "submit", "arguments": {"score": 1}}', "takes no 'score'"),
        ('{"name": "edit", "arguments": {"path": "a", "old": [1], "new": "b"}}', "must be text"),
        ("```view a b c\n```", "number of a line"),
        ("```write\nx\n```", "write needs path"),
        ("```edit a\nx\n```", "<<<<<<< old"),
        (f"{'[' * 100_000}", "no action found"),
        ('{"name": ' + "[" * 100_000, "no JSON"),
    ],
)
def test_what_is_said_to_words_that_ask_for_nothing(text: str, said: str) -> None:
    with pytest.raises(Misspoken, match=said):
        parse(text)


@pytest.mark.parametrize("text", ["```write a.py\nx = 1", "write a.txt 1 2", '<tool_call>{"name": "ba', "I think"])
def test_half_an_action_is_not_done(text: str) -> None:
    with pytest.raises(Misspoken, match="cut"):
        parse(text, cut=True)


def test_a_whole_action_before_the_cut_is_done() -> None:
    assert parse("```bash\nls\n```\nand then", cut=True).tool == "bash"


@pytest.mark.parametrize(
    "text",
    [
        "```" + "a" * 300_000 + "`\n",
        "```edit a\n<<<<<<< old\n" + "a\n" * 400_000,
        "bash a" + " " * 300_000 + "b",
        "```edit a\n" + "<<<<<<< old\n" * 50_000,
        "```a\n" * 100_000,
        "x" * 2_000_000,
    ],
)
def test_no_message_takes_long_to_read(text: str) -> None:
    began = time.perf_counter()
    with suppress(Misspoken):
        parse(text)
    assert time.perf_counter() - began < 20, "linear, where a quadratic reading would take minutes"

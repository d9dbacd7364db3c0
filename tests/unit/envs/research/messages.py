"""Messages that no sensible policy would write: seeded, endless, and of every kind that tools have to survive."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

SETTING = r"""```bash
mkfifo pipe; ln -s loop loop; ln -s /dev/zero zero; ln -s /etc out; mkdir -p folder/below 'odd
name'; mkdir locked; chmod 0 locked
head -c 70000 /dev/urandom > binary; printf 'one\ntwo\nsix\n' > lines; printf 'no newline' > short; : > empty
printf '\xff\xfe\x80\x00broken' > latin; yes 0123456789 | head -c 300000 > long
printf '%s' "$(yes a | head -c 200000 | tr -d '\n')" > one_line; i=0; mkdir many
while [ $i -lt 300 ]; do : > many/$i; i=$((i+1)); done
```"""
"""What the workspace of a fuzzed rollout holds: a pipe, links that loop and lead out, a device, odd names."""

PATHS = (
    *("lines", "short", "empty", "binary", "latin", "long", "one_line", "many", "solution.py", "examples.txt", "new/a"),
    *("pipe", "loop", "loop/x", "zero", "out/passwd", "folder", "folder/below", "locked", "locked/x", "odd\nname"),
    *(
        "/",
        ".",
        "..",
        "",
        "-",
        "--",
        "-n",
        "~",
        "*",
        " ",
        "\n",
        "\t",
        "a b",
        "a//b",
        "a/./b",
        "a/",
        "lines/",
        "lines/x",
    ),
    *("../../etc/passwd", "/etc/shadow", "/proc/self/mem", "/proc/1/environ", "/proc/self/fd/0", "/proc/self/root/etc"),
    *("/dev/zero", "/dev/full", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/tty", "/dev/random", "/sys/kernel"),
    *("file:///etc/passwd", "C:\\x", "$(reboot)", "`id`", "a;rm -rf .", "a|b", "'", '"', "a\\", "%s%n", "{}", "(", "!"),
)
ODD = (
    *(
        "\ud800",
        "\udfff",
        "\udc80x",
        "x\ud83d",
        "\udc00\ud800",
        "\0",
        "a\0b",
        "\x1b[2J",
        "\x07",
        "\x08",
        "\x7f",
        "\x9b31m",
    ),
    *(
        "\u202egnp",
        "\ufeff",
        "\ufffe",
        "\uffff",
        "\u2028",
        "\x85",
        "\x0b",
        "\r",
        "\r\n",
        "\u200b",
        "e\u0301" * 40,
        "\U0001d51f\U0001d51e\U0001d530\U0001d525",
    ),
    *(
        "\uff42\uff41\uff53\uff48",
        "b\u0430sh",
        "wr\u0456te",
        "\u0663",
        "\uff11\uff12",
        "\u00b2",
        "\u00bd",
        "😀",
        "\U0010ffff",
        "NaN",
        "Infinity",
        "null",
        "<|im_end|>",
        "</s>",
    ),
    *(
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        "```",
        "````",
        "<<<<<<< old",
        "=======",
        ">>>>>>>",
        "{{",
        "%",
    ),
)
COMMANDS = (
    *(
        "true",
        "exit 200",
        "echo hello",
        "ls -la",
        "cat lines",
        "printf '\\xff\\xfe\\x00\\x80'",
        "echo -e '\\033[2J'",
        "cd /; ls",
    ),
    *(
        "head -c 300000 /dev/urandom",
        "yes | head -c 2000000",
        "kill -9 $$",
        "kill -9 -1",
        "echo $'\\ud800'",
        "cat",
        "(",
        "'",
    ),
    *(
        "rm -rf lines; echo x > lines",
        "cat /proc/self/status",
        "ulimit -a",
        "sh -c 'kill -SEGV $$'",
        "echo x >&2; exit 3",
    ),
    *(
        "exec 1>&-; exec 2>&-",
        "sleep 0.2 & disown",
        "cat binary",
        "cat nothing",
        "umask 777; echo 1 > masked",
        "cat < /dev/null",
    ),
)
SLOW_COMMANDS = (
    *("sleep 30", "cat pipe", "yes", "cat /dev/zero", "while :; do :; done", ":(){ :|:& };:", "cat /dev/urandom"),
    *("python3 -c 'x = b\"x\" * (1 << 30)'", "head -c 1G /dev/zero > big", "echo x > pipe", "trap '' TERM; sleep 30"),
)
NAMES = ("bash", "view", "write", "edit", "validate", "submit")
ARGUMENTS = ("command", "stdin", "path", "from", "to", "content", "old", "new")
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(10**18), 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", "1", "-1", "999999999", "9999999999", "0x10", "1e3", [], {}, [[]], ["a"], ["a", 1], {"a": {}}, [None]),
)


class Messages:
    """Message after message of one seed: `next()` gives the kind, the text, and whether it was cut by its length.

    `slow` is the share of commands that use up their time, their memory or their processes.
    """

    def __init__(self, seed: int, slow: float = 0.001, submits: float = 0.003) -> None:
        self.rng = Random(seed)
        self.slow = slow
        self.submits = submits
        self.kinds: tuple[tuple[str, Callable[[], str]], ...] = (
            ("call", self.call),
            ("call", self.call),
            ("fence", self.fence),
            ("line", self.line),
            ("mutated", self.mutated),
            ("half", self.half),
            ("several", self.several),
            ("no JSON", self.no_json),
            ("noise", self.noise),
            ("nested", self.nested),
        )

    def next(self) -> tuple[str, str, bool]:
        """The kind of a message, its text, and whether it counts as cut."""
        if self.rng.random() < self.submits:
            return "submit", self.rng.choice(("submit", "```submit\n```", '{"name": "submit"}')), False
        kind, make = self.rng.choice(self.kinds)
        text = make()
        return kind, text, self.rng.random() < 0.1

    def call(self) -> str:
        """A tool call in JSON, most often with the arguments that its tool needs, of any value."""
        rng, name = self.rng, self.rng.choice(NAMES[:5])
        wanted = {
            "bash": {"command": self.command},
            "view": {"path": self.path},
            "write": {"path": self.path, "content": self.words},
            "edit": {"path": self.path, "old": self.part, "new": self.words},
        }.get(name, {})
        given: dict[str, Any] = {key: make() for key, make in wanted.items()}
        if name == "view" and rng.random() < 0.5:
            given |= {"from": self.value(), "to": self.value()}
        if rng.random() < 0.2:
            given[rng.choice(ARGUMENTS)] = self.value()
        if given and rng.random() < 0.1:
            del given[rng.choice(list(given))]
        if rng.random() < 0.05:
            name = rng.choice(ODD)
        body = json.dumps({"name": name, "arguments": given if rng.random() < 0.9 else json.dumps(given)})
        if rng.random() < 0.1:  # the same key twice
            body = body.replace('"name"', f'"name": {json.dumps(self.value())}, "name"', 1)
        return body if rng.random() < 0.1 else f"{self.thought()}<tool_call>{body}</tool_call>"

    def fence(self) -> str:
        """A fenced block."""
        tool = self.rng.choice((*NAMES[:5], "python", "sh", "json", "\uff22\uff21\uff33\uff28", "bash2", ""))
        ticks = "`" * self.rng.choice((3, 3, 3, 4, 2, 7))
        bodies = {"bash": self.command, "sh": self.command, "view": self.path, "edit": self.edits}
        rest = self.path() if tool in ("write", "edit", "view") else ""
        end = self.rng.choice((f"\n{ticks}", f"\n{ticks}", "", "\n```", f"{ticks}"))
        return f"{self.thought()}{ticks}{tool} {rest}\n{bodies.get(tool, self.words)()}{end}"

    def line(self) -> str:
        """A line that begins with the name of a tool."""
        tool = self.rng.choice(NAMES[:5])
        rest = self.command() if tool == "bash" else f"{self.path()} {self.words()}"
        return f"{tool} {rest}" if self.rng.random() < 0.9 else tool

    def mutated(self) -> str:
        """A message in which a few characters are others."""
        text = list(self.call() if self.rng.random() < 0.6 else self.fence())
        for _ in range(self.rng.randrange(1, 6)):
            if text:
                place = self.rng.randrange(len(text))
                text[place : place + self.rng.choice((0, 1, 1, 5))] = self.rng.choice(
                    (*ODD, '"', "\\", "{", "}", "[", ",")
                )
        return "".join(text)

    def half(self) -> str:
        """A message that breaks off."""
        text = self.call() if self.rng.random() < 0.6 else self.fence()
        return text[: self.rng.randrange(len(text) + 1)]

    def several(self) -> str:
        """Several messages in one."""
        return self.rng.choice(("\n", "", " then ")).join(self.call() for _ in range(self.rng.randrange(2, 5)))

    def no_json(self) -> str:
        """What looks like a call and is deep, large or wrong."""
        rng = self.rng
        depth = rng.choice((3, 300, 900, 990, 1100, 50_000))
        nested = rng.choice(("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth))
        digits = "9" * rng.choice((5, 400, 4_301, 5_000))
        value = rng.choice(
            (nested, digits, f"-{digits}", "NaN", "-Infinity", "1e999999", '"\\ud800"', "'a'", "0x1", "")
        )
        bodies = (
            f'{{"name": "view", "arguments": {{"path": "lines", "from": {value}}}}}',
            f'{{"name": "bash", "arguments": {{"command": {value}}}}}',
            f'{{"name": "bash", "arguments": {value}}}',
            f'{{"name": {value}}}',
            f'{{"name": "edit", "arguments": {{"path": "lines", "old": {value}, "new": ["x"]}}}}',
            value,
        )
        return f"<tool_call>{rng.choice(bodies)}</tool_call>"

    def noise(self) -> str:
        """Characters of any kind, or none."""
        rng = self.rng
        made = (
            lambda: "",
            lambda: " " * rng.randrange(1, 2_000),
            lambda: "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(1, 300))),
            lambda: rng.randbytes(rng.randrange(1, 600)).decode("latin-1"),
            lambda: rng.choice(ODD) * rng.randrange(1, 300),
            self.words,
        )
        return rng.choice(made)()

    def nested(self) -> str:
        """Marks within marks, and marks without end."""
        rng = self.rng
        mark = rng.choice(
            ("<tool_call>", "</tool_call>", "<think>", "```bash\n", "```", "<<<<<<< old\n", "{", "[", '"')
        )
        return f"{mark * rng.randrange(1, 60)}{self.call()}{mark * rng.randrange(0, 60)}"

    def path(self) -> str:
        """Where a tool is to look."""
        rng = self.rng
        if rng.random() < 0.7:
            return rng.choice(PATHS)
        return rng.choice(
            (lambda: f"{rng.choice(PATHS)}{rng.choice(ODD)}", self.large, lambda: "a/" * rng.randrange(3_000))
        )()

    def command(self) -> str:
        """What a shell is to run."""
        rng = self.rng
        if rng.random() < self.slow:
            return rng.choice(SLOW_COMMANDS)
        return rng.choice(COMMANDS) if rng.random() < 0.8 else f"echo {self.words()}"

    def part(self) -> Any:
        """What is to be replaced."""
        return self.rng.choice(("two\n", "one", "", "0", "no newline", ["one", "two"], [], "\ufffd", self.words()))

    def edits(self) -> str:
        """The body of an edit."""
        return f"<<<<<<< old\n{self.part()}\n=======\n{self.words()}\n>>>>>>>"

    def words(self) -> str:
        """Text for a file."""
        rng = self.rng
        if rng.random() < 0.03:
            return self.large()
        return rng.choice(
            ("x", "", "def solve(n):\n    return 2 * n\n", "1 2 3", rng.choice(ODD), rng.choice(ODD) * 30)
        )

    def large(self) -> str:
        """200 kB most often, seldom more than a message may hold."""
        letter = self.rng.choice(("a", "a", "/", "\n", " ", "é", "\ud800", "`", "\U0001d51f"))
        return letter * self.rng.choice((256, 4_096, 5_000, 70_000, 140_000, 200_000, 200_000))

    def value(self) -> Any:
        """A value of any type."""
        return self.rng.choice(VALUES) if self.rng.random() < 0.8 else self.words()

    def thought(self) -> str:
        """Something before the action."""
        return self.rng.choice(("", "", "", "I look.\n", "<think>hm</think>", "<think>", f"{self.rng.choice(ODD)}\n"))


def enormous(rng: Random) -> str:
    """A message of megabytes, such as only a very long context allows."""
    size = rng.choice((1_000_000, 1_048_500, 2_000_000, 10_000_000))
    unit = rng.choice(
        (
            "a",
            "<tool_call>",
            "```\n",
            "```bash\n",
            " ",
            "\n",
            "[",
            '{"a":',
            "<think>",
            "`",
            "\ud800",
            "=======\n",
            "x\n",
        )
    )
    head = rng.choice(
        (
            "",
            "<tool_call>",
            "```",
            "```bash\n",
            "```edit lines\n<<<<<<< old\n",
            '{"name": "bash", "arguments": {"command": "',
        )
    )
    return head + unit * (size // len(unit)) + rng.choice(("", "`", "</tool_call>", '"}}', "\n```"))

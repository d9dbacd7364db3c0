"""The prompts of an agent, in two styles: in sentences, and as briefly as a model of a few hundred bytes needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from operant.envs.research.settings import Settings
from operant.envs.text.dialogue import Message

MANNERS = """You work on files in a sandbox {network}. Every message of yours uses one tool, by one fenced block:

```bash
COMMAND
```
```write PATH
the whole new file
```
```edit PATH
<<<<<<< old
text that occurs once in the file
=======
the text in its place
>>>>>>>
```
```view PATH FROM TO
```
```validate
```
```submit
```
or by a tool call such as <tool_call>{{"name": "bash", "arguments": {{"command": "ls"}}}}</tool_call>.

`validate` scores your files on validation cases, {validations} times at most; `submit` ends the work. The score that
counts is measured on other cases, which you never see, from these files alone: {artefacts}. A command may take
{seconds:g} s and {memory} MB; what it leaves running is ended."""

INTERRUPTED = (
    "[the sandbox died and was made anew, from the last validation and the files written since; "
    "what commands changed since then is lost]"
)
TOOL_ERROR = "[the tool itself failed, which is no fault of yours; look at what it has done before you go on]"
MORE = "[only the first action of a message is done]"
LONGEST_BRIEF = 40


@dataclass(frozen=True)
class Left:
    """What is left of a budget."""

    turn: int
    turns: int
    validations: int
    seconds: float

    def __str__(self) -> str:
        head = f"turn {self.turn} of {self.turns} | validations left {self.validations}"
        return f"[{head} | {max(self.seconds, 0):.0f} s left]"


def manners(settings: Settings) -> str:
    """How the tools are used, and what is graded."""
    limits = settings.folder.task.limits
    return MANNERS.format(
        network="with a network" if limits.network else "without a network",
        validations=settings.validations,
        artefacts=", ".join(settings.folder.task.artefacts),
        seconds=limits.seconds,
        memory=limits.memory_mb,
    )


def assignment(settings: Settings, files: Sequence[str]) -> str:
    """The problem itself."""
    task = settings.folder.task
    if settings.style == "bare":
        return f"{(task.bare or task.name).strip()}\n"
    better = "higher" if task.metric.direction == "up" else "lower"
    lines = [
        task.prompt.strip(),
        "",
        f"Metric: {task.metric.name}, {better} is better; the baseline is {task.baseline:g}.",
    ]
    return "\n".join([*lines, f"Files: {', '.join(sorted(files)) or 'none'}."])


def answer(settings: Settings, text: str, left: Left, tool: str | None) -> Message:
    """A tool's words, and what is left."""
    if settings.style == "bare":
        return Message("tool", f"{text.rstrip()}\n", tool)
    return Message("tool", f"{text.rstrip()}\n{left}".lstrip(), tool)


def scored(settings: Settings, score: float, best: float, left: int) -> str:
    """What a validation found."""
    if settings.style == "bare":
        return f"{score:.3g} {left} left"
    return f"validation {settings.folder.task.metric.name}: {score:.6g} (best so far {best:.6g})"


def done(settings: Settings, words: str) -> str:
    """That something was done."""
    return "ok" if settings.style == "bare" else words


def fault(settings: Settings, reason: str) -> str:
    """That something was wrong."""
    if settings.style == "bare":
        return f"? {' '.join(reason.split())[:LONGEST_BRIEF]}"
    return f"[fault] {reason}"

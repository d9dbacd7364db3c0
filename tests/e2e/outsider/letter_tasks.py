"""A taskset as an outsider would write it for verifiers' v1 API: one turn, and no word of Operant in it."""

import verifiers.v1 as vf

__all__ = ["LetterTaskset"]

HALVES = {"early": "abcdefghijklm", "late": "nopqrstuvwxyz"}


class LetterData(vf.TaskData):
    """The half of the alphabet that is wanted."""

    half: str


class LetterTask(vf.Task[LetterData, vf.State]):
    """Say letters of one half."""

    @vf.reward
    async def in_half(self, trace: vf.Trace) -> float:
        """The share of the reply that lies in the wanted half."""
        said = trace.last_reply
        return sum(letter in HALVES[self.data.half] for letter in said) / max(len(said), 1)

    @vf.metric
    async def characters(self, trace: vf.Trace) -> float:
        """How long the reply was."""
        return float(len(trace.last_reply))


class LetterConfig(vf.TasksetConfig):
    """What a run may choose."""

    rows: int = 60


class LetterTaskset(vf.Taskset[LetterTask, LetterConfig]):
    """Rows alternate between the halves."""

    def load(self):
        for number in range(self.config.rows):
            half = list(HALVES)[number % 2]
            yield LetterTask(LetterData(prompt=f"{half}:", half=half), self.config.task)

"""A taskset as an outsider would write it for verifiers' v1 API: one turn, no word of Operant in it."""

import verifiers.v1 as vf

__all__ = ["LetterTaskset"]


class LetterData(vf.TaskData):
    """The letter that is wanted is not shown to anybody but the score."""

    letter: str


class LetterTask(vf.Task[LetterData, vf.State]):
    """Say the letter that the prompt names."""

    @vf.reward
    async def right_letter(self, trace: vf.Trace) -> float:
        """1 where the reply begins with the wanted letter."""
        return float(trace.last_reply.strip().startswith(self.data.letter))

    @vf.metric
    async def characters(self, trace: vf.Trace) -> float:
        """How long the reply was."""
        return float(len(trace.last_reply))


class LetterConfig(vf.TasksetConfig):
    """What a run may choose."""

    rows: int = 40
    letters: str = "abcdef"


class LetterTaskset(vf.Taskset[LetterTask, LetterConfig]):
    """Rows alternate between the letters."""

    def load(self):
        for number in range(self.config.rows):
            letter = self.config.letters[number % len(self.config.letters)]
            yield LetterTask(LetterData(prompt=f"say {letter}:", letter=letter), self.config.task)

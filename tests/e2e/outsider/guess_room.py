"""A v1 environment of several turns, as an outsider would write it: an `Env` of its own drives the conversation."""

import verifiers.v1 as vf

__all__ = ["GuessEnv", "GuessTaskset"]


class GuessData(vf.TaskData):
    """What is to be said in the end."""

    letter: str


class GuessTask(vf.Task[GuessData, vf.State]):
    """The last reply counts."""

    @vf.reward
    async def right_letter(self, trace: vf.Trace) -> float:
        """1 where the last reply begins with the wanted letter."""
        return float(trace.last_reply.strip().startswith(self.data.letter))


class GuessConfig(vf.TasksetConfig):
    """What a run may choose."""

    rows: int = 30


class GuessTaskset(vf.Taskset[GuessTask, GuessConfig]):
    """Rows alternate between three letters."""

    def load(self):
        for number in range(self.config.rows):
            letter = "abc"[number % 3]
            yield GuessTask(GuessData(prompt=f"say {letter}:", letter=letter), self.config.task)


class GuessEnvConfig(vf.EnvConfig):
    """One seat."""

    agent: vf.AgentConfig = vf.AgentConfig(max_turns=2)


class GuessEnv(vf.Env[GuessEnvConfig]):
    """Asks twice."""

    async def run(self, task, agents):
        async with agents.agent.interaction(task) as talk:
            first = await talk.turn()
            if not first.terminated:
                await talk.turn(f"again {task.data.letter}:")

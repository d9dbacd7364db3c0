"""The table of Operant's own environments, each declared as an installed package would declare one of its own."""

from __future__ import annotations

from operant.envs.environment import Environment, Traits

DISCRETE, CONTINUOUS = Traits(discrete=True), Traits(discrete=False)
PROBES = ("constant", "observation", "discount", "action", "both")
CLASSIC = "operant.envs.functional.classic"
PUZZLES = "operant.envs.puzzles"
TEXT = "operant.envs.text"


def _task(path: str, about: str) -> Environment:
    return Environment(about, task=path)


# Environments of Gymnasium that have a second form in JAX; and our own, for which this table is the only one.
CONTROL: dict[str, Environment | str] = {
    "CartPole-v0": Environment(functional=f"{CLASSIC}:CartPole", max_episode_steps=200, traits=DISCRETE),
    "CartPole-v1": Environment(functional=f"{CLASSIC}:CartPole", traits=DISCRETE),
    "Acrobot-v1": Environment(functional="operant.envs.functional.acrobot:Acrobot", traits=DISCRETE),
    "MountainCar-v0": Environment(functional=f"{CLASSIC}:MountainCar", traits=DISCRETE),
    "MountainCarContinuous-v0": Environment(functional=f"{CLASSIC}:MountainCarContinuous", traits=CONTINUOUS),
    "Pendulum-v1": Environment(functional=f"{CLASSIC}:Pendulum", traits=CONTINUOUS),
    "HackMatrix-v0": "operant.envs.hackmatrix:HACKMATRIX",
    "operant/HackMatrixBridge-v0": "operant.envs.hackmatrix:BRIDGE",
    "operant/Masked-v0": Environment(gymnasium=f"{PUZZLES}:Masked", max_episode_steps=1000),
    "operant/Recall-v0": Environment(gymnasium=f"{PUZZLES}:Recall", max_episode_steps=1000),
    "operant/Partial-v0": Environment(gymnasium=f"{PUZZLES}:make_partial"),
    "operant/CartPoleNoVelocity-v1": Environment(
        gymnasium=f"{PUZZLES}:make_partial",
        kwargs={"base": "CartPole-v1", "keep": [0, 2]},
        max_episode_steps=500,
    ),
    **{
        f"operant/Probe{kind.capitalize()}-v0": Environment(
            gymnasium="operant.envs.probe:Probe",
            functional="operant.envs.functional.probe:FunctionalProbe",
            kwargs={"kind": kind},
            max_episode_steps=10,
        )
        for kind in PROBES
    },
}

TASKS: dict[str, Environment | str] = {
    "arithmetic": _task(f"{TEXT}.arithmetic:Arithmetic", "sums, differences, products, the multiplication table"),
    "countdown": _task(f"{TEXT}.countdown:Countdown", "reach a target with a few numbers, each used once"),
    "largest": _task(f"{TEXT}.number_lists:Largest", "the largest of a few numbers"),
    "count_letters": _task(f"{TEXT}.letters:CountLetters", "how often a letter occurs in a string"),
    "sort": _task(f"{TEXT}.number_lists:Sort", "a few numbers from the smallest to the largest"),
    "copy": _task(f"{TEXT}.letters:Copy", "a string of letters again, with credit for each in its place"),
    "gsm8k": _task(f"{TEXT}.word_problems:Gsm8k", "grade-school word problems (needs data)"),
    "svamp": _task(f"{TEXT}.word_problems:Svamp", "short word problems with a twist (needs data)"),
    "math": _task(f"{TEXT}.competition:Math", "competition mathematics, answers in LaTeX (needs data)"),
    "mbpp": _task(f"{TEXT}.mbpp:Mbpp", "short Python functions with tests, run in the sandbox (needs data)"),
    "humaneval": _task(f"{TEXT}.humaneval:HumanEval", "Python functions to complete, run in the sandbox (needs data)"),
    "ifeval": _task(f"{TEXT}.ifeval:IfEval", "instructions whose following can be checked (needs data)"),
    "if_multi_constraints": _task(
        f"{TEXT}.instruction_sets:IfMultiConstraints", "up to five instructions at once (needs data)"
    ),
    "rlvr_ifeval": _task(f"{TEXT}.instruction_sets:RlvrIfEval", "one instruction a prompt, to train on (needs data)"),
    "deepscaler": _task(f"{TEXT}.math_sets:DeepScaler", "40,000 problems of competitions, in LaTeX (needs data)"),
    "allenai_rlvr": _task(f"{TEXT}.math_sets:AllenaiRlvr", "gsm8k, MATH and instructions of Tulu 3 (needs data)"),
    "apps": _task(f"{TEXT}.apps:Apps", "programs that read standard input, run in the sandbox (needs data)"),
    "one_question": _task(f"{TEXT}.math_sets:OneQuestion", "one question again and again, to see a reward rise"),
    "reasoning_gym": _task(f"{TEXT}.reasoning:ReasoningGym", "any dataset of the package reasoning-gym"),
    "hackmatrix": _task(
        f"{TEXT}.hackmatrix:HackMatrix", "the best next move of the grid hacking game, from a board as text"
    ),
    "guess": _task(f"{TEXT}.guessing:Guess", "a number found by guessing higher and lower, in several turns"),
    "hackmatrix_game": _task(f"{TEXT}.hackmatrix_game:HackMatrixGame", "whole games of it, one action a turn"),
    "directed_research": _task(
        "operant.envs.research.directed:DirectedResearch",
        "a tree of attempts at a research task, directed by the policy and made by another model",
    ),
    "jsonl": _task(f"{TEXT}.jsonl:JsonlTask", "a JSONL file of one's own, with a verifier by name or import path"),
}
BUILTIN = {**CONTROL, **TASKS}

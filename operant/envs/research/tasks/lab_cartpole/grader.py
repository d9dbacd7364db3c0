"""The score of a spec by the lab's own report, trained with seeds that the agent does not know."""

from __future__ import annotations

from pathlib import Path

from operant.envs.research.grading import Work
from operant.envs.research.kit.lab import Lab, grade_lab

LAB = Lab(Path(__file__).parent / "visible" / "spec.yaml", sessions=2)


def grade(work: Work) -> float:
    """Train the spec and read its score."""
    return grade_lab(work, LAB)

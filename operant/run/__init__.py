"""The record of a run: its directory, logs, checkpoints, lock and seeds. Standard library and numpy only."""

from operant.run.checkpoint import Checkpoint as Checkpoint
from operant.run.checkpoint import CorruptCheckpoint as CorruptCheckpoint
from operant.run.episode import Episode as Episode
from operant.run.episode import Turn as Turn
from operant.run.metrics import read_rows as read_rows
from operant.run.progress import Progress as Progress
from operant.run.progress import is_timing as is_timing
from operant.run.run import Experiment as Experiment
from operant.run.run import Run as Run
from operant.run.run import Trial as Trial
from operant.run.run import create_experiment as create_experiment
from operant.run.run import find_sessions as find_sessions
from operant.run.run import list_experiments as list_experiments
from operant.run.run import resolve as resolve
from operant.run.seeding import Seeds as Seeds

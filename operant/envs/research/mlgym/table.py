"""Every setting of MLGym's task and dataset files: what it means there, and what becomes of it here."""

from __future__ import annotations

from operant.spec.dialects.table import Row, Table, only_of

TASK, DATASET = "task", "dataset"
TITLE = "MLGym"
ABOUT = "`operant tasks import CHECKOUT` reads all task files of a checkout, and a dataset's file by itself."


def _here(place: str, means: str, ours: str, said: str = "") -> Row:
    return Row(place, means, "worked", (ours,), said)


def _left_out(place: str, means: str, said: str) -> Row:
    return Row(place, means, "ignored", (), f"left out: {said}")


TABLE = Table(
    (
        *only_of(
            (TASK,),
            _here("id", "the name by which the task is registered", "name", "with mlgym_ before it, in small letters"),
            _here("name", "the name that people read", "about"),
            _here(
                "description",
                "the prompt; {dataset_docs} stands for the descriptions of its datasets",
                "prompt",
                "a numbered list under SUBMISSION FORMAT names the artefacts of model tasks",
            ),
            _here("dataset_configs", "files of datasets, below configs", "data"),
            _here(
                "task_entrypoint",
                "the class that finds the submission and runs the evaluation",
                "artefacts",
                "CSVSubmissionTasks: submission.csv; ModelSubmissionTasks, LMSubmissionTasks: what the description"
                " lists; PythonSubmissionTasks: the programs that it names, run in a sandbox of their own; any other is"
                " read as CSVSubmissionTasks, with a mark",
            ),
            _here(
                "training_timeout",
                "the seconds of a command that trains, and of the evaluation; 3,600 by default",
                "limits.seconds",
                "of every command; all of them together may take four times as long",
            ),
            _left_out(
                "requirements_path", "packages of the task's own environment", "packages are those of this Python"
            ),
            _left_out("benchmark_name", "the benchmark that the task belongs to", "their program does not use it"),
            _here(
                "use_generic_conda",
                "whether the common environment is used, with pandas, torch and others; true by default",
                "packages",
                "those of the common environment that are installed here are shown to programs",
            ),
            _here(
                "starter_code",
                "files and folders that are copied into the workspace",
                "visible",
                "files of labels are not shown; the evaluation uses pristine copies",
            ),
            _here("baseline_paths", "programs that make a first submission; the first is run", "agents: baseline"),
            _here(
                "baseline_scores",
                "the metrics of the baseline; computed where there are none",
                "baseline, metric",
                "of several metrics the first known one counts; a file without any is refused",
            ),
            _here("sample_submission", "an example of a submission", "the control of the evaluation"),
            _here(
                "evaluation_paths",
                "programs that print the metrics as JSON; the first is run in the agent's container",
                "grader",
                "the first is run in a fresh sandbox, one process also where they start one for each accelerator",
            ),
            _left_out(
                "evaluation_read_only", "whether the agent may change the evaluation", "what it changes is not used"
            ),
            _left_out("secret_files", "files that the agent may not read", "their program does not use it"),
            _left_out("memory_path", "a file of notes that outlives an episode", "no rollout knows of another"),
        ),
        *only_of(
            (DATASET,),
            _here("name", "the name that stands above its description", "prompt"),
            _here("description", "what the agent reads about the data", "prompt"),
            _here(
                "data_path",
                "a folder of the checkout, which becomes data/ in the workspace, or a name on the hub",
                "data",
                "a name on the hub is looked for in --data FOLDER and in the hub's cache, and lies in the workspace"
                " under that name; labels of the rows that are asked are not shown",
            ),
            _here("is_local", "whether data_path is a folder", "data"),
            *(
                _left_out(f"{split}_split", f"which files make the {words} split", "their program does not use it")
                for split, words in (("train", "training"), ("valid", "validation"), ("test", "test"))
            ),
        ),
    )
)

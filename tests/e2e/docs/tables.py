"""What the pages suppose, by page, and what cannot be run where the tests run."""

from __future__ import annotations

NOT_HERE = {
    r"pytest -n auto": "the whole test suite, which .ci/run runs",
    r"_gpu\b|--device cuda|generator_gpus|planner|hackmatrix_im": "a GPU",
    r"vllm": "vLLM is no package of the tests",
    r"playground/": "MuJoCo Playground is no package of the tests",
    r"_mjx\b": "MJX is no package of the tests",
    r"sb3_contrib": "sb3-contrib is no package of the tests",
    r"hackmatrix_ceiling|ceiling/": "1,000 games of each player: a benchmark of minutes",
    r"pip install|uv tool install|-m venv|toolkit/": "packages come from the network",
    r"sagemaker --local": "AWS's container toolkit is no package of the tests",
    r"image\.sh": "Docker and a registry of images",
    r"mlgym:|tasks import": "a checkout of MLGym",
    r"mbpp|validate all|hf://datasets": "data sets that are not in the repository",
    r"eval smollm2-135m-instruct --tasks hackmatrix_game": "a model of a longer context than tiny",
    r"lm_eval --model": "lm-evaluation-harness fetches its tasks from the hub",
    r"HACKMATRIX_BINARY|HackMatrixBridge": "a build of the game",
    r'on="slurm"': "a Slurm cluster; tests/e2e/test_slurm.py has one",
    r"--coordinator-address|torchrun": "several machines; tests/contract/test_processes.py has two processes",
    r"OPERANT_STORAGE|/shared/search": "a PostgreSQL server; tests/contract/test_search_postgres.py has one",
}
"""Lines and blocks in which this is found are not run; why."""

RUNS = {
    "README.md": "dqn_cartpole",
    "docs/algorithms/random.md": "ppo_cartpole",
    "docs/howto/app.md": "ppo_cartpole",
    "docs/howto/evaluate.md": "ppo_cartpole",
    "docs/howto/export.md": "ppo_cartpole",
    "docs/howto/resume.md": "ppo_cartpole",
    "docs/howto/run-directory.md": "ppo_cartpole",
    "docs/howto/serve-and-eval.md": "grpo_tiny",
    "docs/howto/store.md": "ppo_cartpole",
    "docs/howto/trackers.md": "ppo_cartpole",
}
"""The spec of which a page supposes a run."""

WORDS = {
    "RUN": "latest",
    "MODEL": "tiny",
    "SPEC": "grpo_tiny",
    "DIR": "data",
    "smollm2-135m-instruct": "tiny",
    "127.0.0.1:8000": "127.0.0.1:$DOCS_PORT",
    "20261115-101500": "STAMP",
    "1638400": "latest",
    "/safe/place": "$PWD",
    "--trials 64": "--trials 3",
}
"""Words that stand for something of the reader's, and what they are here. STAMP: the first run of its spec."""

BEFORE = {
    "docs/howto/compare.md": [
        *(f"operant train {name}" for name in ("ppo_cartpole", "dqn_cartpole", "a2c_cartpole")),
    ],
    "docs/howto/app.md": ["cp -r runs/ppo_cartpole runs/search_blotto"],
    "docs/howto/compare-runs.md": ["operant train ppo_cartpole", "operant train ppo_cartpole"],
    "docs/howto/report.md": ["operant train ppo_cartpole", "operant train dqn_cartpole"],
    "docs/howto/launch.md": [
        "operant train ppo_cartpole -s meta.sync=s3://bucket/runs",
        "operant launch ppo_cartpole",
        "operant launch ppo_cartpole",
    ],
    "docs/howto/own-algorithm.md": [
        "echo 'env: {name: CartPole-v1, max_frame: 1024}' > my_spec.yaml",
        """echo 'agent: {algorithm: {name: "my_algorithm:MyPpo"}}' >> my_spec.yaml""",
    ],
    "docs/howto/slm-lab.md": ["sed -i 's/^ppo_continuous:/ppo_mujoco:/' ppo_mujoco.yaml"],
    "docs/howto/research.md": [
        "operant specs grpo_prisoners_dilemma | sed '/^grpo_battle_of_sexes:/,$d' > spec.yaml",
        "umask 077 && echo a secret of more than thirty-two characters > grading",
    ],
}
"""Commands that a page supposes its reader to have typed before."""

FILES = {
    "docs/howto/bench.md": {"my_suite.yaml": "operant/benchmark/suites/quick.yaml"},
    "docs/howto/language-labs.md": {
        "rl.toml": "tests/unit/spec/dialects/files/prime_rl_gsm8k.toml",
        "gsm8k.yaml": "tests/unit/spec/dialects/files/rlvr_gsm8k.yaml",
        **{
            f"configs/{name}.toml": f"tests/unit/spec/dialects/files/prime_rl_programs/{name}.toml"
            for name in ("orch", "train", "infer")
        },
    },
    "docs/howto/slm-lab.md": {
        "ppo_cartpole.json": "tests/unit/spec/dialects/slm/files/ppo_cartpole.json",
        "ppo_mujoco.yaml": "tests/unit/spec/dialects/slm/files/ppo_continuous.yaml",
    },
    "docs/howto/verifiers.md": {"half_alphabet.py": "tests/e2e/outsider/half_alphabet.py"},
}
"""Files of the repository that a page supposes in the reader's folder."""

#!/usr/bin/env bash
# Measurements on a GPU machine that has no network; what it lacks comes along as files.
#   benchmarks/h200.sh archive ARCHIVE [NAMES] beforehand, on a machine with a network: the packages that may be lacking, for Python 3.12
#   benchmarks/h200.sh packages ARCHIVE        unpack them, and offer those that the machine lacks on PYTHONPATH
#   benchmarks/h200.sh model GGUF_PARTS...     put a model's parts together and write a Hugging Face folder
#   benchmarks/h200.sh versus                  GRPO's tokens per second beside TRL
#   benchmarks/h200.sh learn [operant train arguments]
#   benchmarks/h200.sh cells SECONDS OUT       the published cells of classic control and Box2D, which go on after SECONDS;
#                                              again: wait SECONDS more; OUT/suites.tgz has the cells that have ended
#   benchmarks/h200.sh mixture                 GRPO and SFT of SmolLM2 on six tasks, and what either forgets (DATA: gsm8k, svamp, ifeval)
#   benchmarks/h200.sh stale                   GRPO on one task at staleness 0, 1 and 4, with and without correction
#   benchmarks/h200.sh games SECONDS OUT CELL  cells of Atari at whole budgets, side by side
#   benchmarks/h200.sh mjx OUT                 PPO on MJX's HalfCheetah, three seeds in one program, played in Gymnasium's own
#   benchmarks/h200.sh blotto OUT              SmolLM2 as a research agent on Colonel Blotto, three seeds beside each other
#   benchmarks/h200.sh mujoco SECONDS OUT CELL cells of MuJoCo at whole budgets, such as sac_ant sac_humanoid
#   benchmarks/h200.sh tries FILE SECONDS OUT  settings beside each other, a file for `python -m benchmarks.variants`
#   benchmarks/h200.sh memory OUT              predicted against measured memory of a language run
#   benchmarks/h200.sh returns SECONDS OUT     returns beside SB3's on the CPU cores, 16 seeds, as far as time goes
set -euo pipefail
MODEL=${MODEL:-/tmp/smollm2}
PACKAGES=${PACKAGES:-/tmp/packages}
export PYTHONPATH="$PWD:$PACKAGES" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1

archive() { # without what they depend on, since a GPU machine has numpy, jax, torch and transformers; versions are those of pyproject.toml
    local unpacked names=(pydantic pydantic-core annotated-types typing-inspection typing-extensions ruamel-yaml
        gymnasium farama-notifications cloudpickle imageio pygame-ce ale-py box2d mujoco mujoco-core glfw gguf
        mujoco-mjx trimesh etils fsspec importlib-resources zipp absl-py "${@:2}")
    unpacked=$(mktemp -d)
    scripts/uv pip install --quiet --no-deps --target "$unpacked" --python-version 3.12 --python-platform x86_64-manylinux_2_28 "${names[@]}"
    tar cJf "$1" -C "$unpacked" .
}

packages() {
    mkdir -p "$PACKAGES.all" "$PACKAGES"
    tar xJf "$1" -C "$PACKAGES.all"
    PYTHONPATH="" python3 - "$PACKAGES.all" "$PACKAGES" <<'PYTHON'
import sys
from importlib.util import find_spec
from pathlib import Path

unpacked, offered = map(Path, sys.argv[1:])
for metadata in unpacked.glob("*.dist-info"):
    files = [line.split(",")[0] for line in (metadata / "RECORD").read_text().splitlines()]
    entries = {file.split("/")[0] for file in files if (unpacked / file.split("/")[0]).exists()}
    modules = [entry.removesuffix(".py") for entry in entries if entry.removesuffix(".py").isidentifier()]
    if any(find_spec(module) is None for module in modules):
        for entry in entries:
            (offered / entry).unlink(missing_ok=True)
            (offered / entry).symlink_to(unpacked / entry)
        print(metadata.stem, end=" ")
PYTHON
}

model() {
    mkdir -p "$MODEL.gguf"
    cat "$@" > "$MODEL.gguf/model.gguf"
    python3 -c "
from pathlib import Path
from operant.engines.language.policy.model import load_policy, write_folder
write_folder(load_policy('$MODEL.gguf/model.gguf', dtype='bfloat16'), Path('$MODEL'))"
}

suites() { # SECONDS OUT: what `operant bench` runs comes from standard input; what has ended so far is written to OUT, for the machine may go
    local tries finished=runs/suites waited=0
    tries=$(mktemp)
    cat > "$tries"
    mkdir -p "$finished"
    if ! pgrep -f "[b]enchmarks.variants" > /dev/null; then
        share_gpu
        # From a copy: this tree may be replaced while they go on.
        mkdir -p /tmp/lab && cp -r operant operant_tasks benchmarks pyproject.toml .git /tmp/lab
        PYTHONPATH="/tmp/lab:$PACKAGES" setsid python3 -m benchmarks.variants "$tries" --out "$finished" < /dev/null > "$finished/summary.txt" 2>&1 &
        sleep 2
    fi
    while pgrep -f "[b]enchmarks.variants" > /dev/null && [ $((waited += 1)) -le "$1" ]; do sleep 1; done
    tail -n 3 "$finished"/*.log
    tar czf "$2/suites.tgz" -C "$finished" .
}

share_gpu() { # processes that use one GPU take turns; with NVIDIA's MPS their kernels run side by side
    command -v nvidia-cuda-mps-control > /dev/null || return 0
    export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps CUDA_MPS_LOG_DIRECTORY=/tmp/mps
    mkdir -p /tmp/mps
    nvidia-cuda-mps-control -d || true
}

cells() {
    suites "$@" <<'JSON'
{"box2d": ["box2d", "--cells", "*dqn*,a2c*,ppo*", "--jobs", "7"],
 "classic": ["classic", "--cells", "reinforce*,sarsa*,*dqn*,a2c*,ppo*", "--jobs", "9"]}
JSON
}

mujoco() { # SECONDS OUT CELL...: two seeds a cell, eight sessions at once; SAC on Ant, Humanoid and both inverted pendulums took 1,700 s
    local cells
    cells=$(IFS=, && echo "${*:3}")
    suites "$1" "$2" <<JSON
{"mujoco": ["mujoco", "--cells", "$cells", "--seeds", "2", "--jobs", "8", "-s", "engine=jax", "-s", "meta.device=cuda"]}
JSON
}

tries() { # FILE SECONDS OUT
    suites "$2" "$3" < "$1"
}

games() { # SECONDS OUT CELL...: two at once make 13,600 steps a second in all, which is 10 M each in 27 minutes; one alone makes 11,700
    local cell tries=""
    for cell in "${@:3}"; do
        tries+=", \"$cell\": [\"atari\", \"--cells\", \"$cell\", \"--seeds\", \"1\", \"--jobs\", \"1\", \"-s\", \"engine=jax\""
        tries+=", \"-s\", \"env.num_envs=64\", \"-s\", \"agent.algorithm.time_horizon=32\"]"
    done
    suites "$1" "$2" <<< "{${tries#, }}"
}

mjx() { # memory as needed, for what else runs on the GPU
    export XLA_PYTHON_CLIENT_PREALLOCATE=false
    operant train ppo_halfcheetah_mjx -s meta.max_session=3 2>&1 | tail -30
    operant eval ppo_halfcheetah_mjx --env HalfCheetah-v5 --episodes 100 | tee "$1/gymnasium.txt"
    tar czf "$1/mjx.tgz" --exclude=replay* runs/ppo_halfcheetah_mjx*
}

blotto() { # a process for each seed: they are bound by launching kernels, not by the GPU
    local seed
    for seed in 0 1 2; do
        model_spec grpo_smollm2_blotto -s name="blotto_$seed" -s meta.max_session=1 --seed "$seed" > "$1/blotto_$seed.txt" &
    done
    wait
    python3 -m benchmarks.transcripts runs/blotto_*/*/trial_000/session_0 --json "$1/transcripts.json"
    tar czf "$1/blotto.tgz" --exclude=*.safetensors --exclude=checkpoints runs/blotto_*
}

memory() {
    python3 -m benchmarks.language_memory --device cuda --model 135m --json "$1/memory.json"
}

operant() { python3 -m operant "$@"; }

model_spec() { # spec with this model: SPEC [arguments]
    operant train "$1" -s agent.model.source="$MODEL" -s meta.device=cuda "${@:2}" 2>&1 | tail -30
}

mixture() {
    model_spec grpo_smollm2_mixture
    sft_mixture
    forgetting
}

sft_mixture() { # lr 3e-4 was chosen on seed 100, which is not reported
    model_spec sft_smollm2_mixture -s env.max_frame="${SFT_EXAMPLES:-230400}"
}

forgetting() { # problems that were not trained on, and the easy ones at which both began
    local easy=(-a arithmetic.operations=add,subtract -a arithmetic.digits=2 -a largest.count=4 -a count_letters.length=5 -a sort.count=3 -a countdown.count=2 -a countdown.target=40)
    local one
    for one in grpo_smollm2_mixture sft_smollm2_mixture "$MODEL"; do
        operant eval "$one" --tasks gsm8k,svamp,ifeval -a data="$DATA" --limit 200 --device cuda > "runs/others_${one##*/}.txt" 2>&1 &
        operant eval "$one" --tasks arithmetic,largest,count_letters,sort,copy,countdown "${easy[@]}" --device cuda > "runs/easy_${one##*/}.txt" 2>&1 &
    done
    wait
}

stale() { # five runs of one seed at a time: each takes some 16 GiB
    local seed staleness importance
    for seed in 0 1 2; do
        for staleness in 0 1 4; do
            for importance in none truncate; do
                [ "$staleness$importance" = 0truncate ] && continue
                model_spec grpo_smollm2_largest -s name="stale_${staleness}_$importance" -s agent.algorithm.staleness="$staleness" \
                    -s agent.algorithm.importance="$importance" -s env.max_frame=25600 -s meta.eval_frequency=6400 \
                    -s meta.save_frequency=25600 -s meta.max_session=1 --seed "$seed" &
            done
        done
        wait
    done
}

returns() {
    timeout "$1" python3 -m benchmarks.returns_sb3 --cells ppo-cartpole dqn-cartpole dqn-cartpole-tuned sac-pendulum ppo-halfcheetah \
        --seeds "${SEEDS:-16}" --jobs "$(nproc)" --out "$2/returns_sb3.jsonl" || [ $? = 124 ]
}

case ${1:-} in
archive | packages | model | cells | games | mujoco | tries | mjx | blotto | memory | returns | mixture | sft_mixture | forgetting | stale) "$@" ;;
versus) python3 -m benchmarks.versus_trl --model "$MODEL" --device cuda --prompts 64 --group 8 --new 128 --steps 8 "${@:2}" ;;
learn) model_spec grpo_smollm2_largest "${@:2}" ;;
*) grep '^# ' "$0" && exit 2 ;;
esac

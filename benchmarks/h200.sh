#!/usr/bin/env bash
# Measurements on a GPU machine that has no network; what it lacks comes along as files.
#   benchmarks/h200.sh packages ARCHIVE        unpack wheels, and offer those that the machine lacks on PYTHONPATH
#   benchmarks/h200.sh model GGUF_PARTS...     put a model's parts together and write a Hugging Face folder
#   benchmarks/h200.sh versus                  GRPO's tokens per second beside TRL
#   benchmarks/h200.sh learn [operant train arguments]
#   benchmarks/h200.sh cells SECONDS OUT       the published cells of classic control and Box2D, as far as time goes;
#                                              again: go on, and in the end write OUT/cells.tgz
#   benchmarks/h200.sh pong SECONDS OUT        PPO on Pong: frames per second and a learning curve
#   benchmarks/h200.sh returns SECONDS OUT     returns beside SB3's on the CPU cores, 16 seeds, as far as time goes
set -euo pipefail
MODEL=${MODEL:-/tmp/smollm2}
PACKAGES=${PACKAGES:-/tmp/packages}
export PYTHONPATH="$PWD:$PACKAGES" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1

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

cells() {
    local tries finished=runs/cells
    tries=$(mktemp)
    cat > "$tries" <<'JSON'
{"box2d": ["box2d", "--cells", "*dqn*,a2c*,ppo*", "--jobs", "7"],
 "classic": ["classic", "--cells", "reinforce*,sarsa*,*dqn*,a2c*,ppo*", "--jobs", "9"]}
JSON
    mkdir -p "$finished"
    python3 -m benchmarks.variants "$tries" --out "$finished" --seconds "$1"
    tar czf "$2/cells.tgz" -C "$finished" .
}

returns() {
    timeout "$1" python3 -m benchmarks.returns_sb3 --cells ppo-cartpole dqn-cartpole dqn-cartpole-tuned sac-pendulum ppo-halfcheetah \
        --seeds "${SEEDS:-16}" --jobs "$(nproc)" --out "$2/returns_sb3.jsonl" || [ $? = 124 ]
}

case ${1:-} in
packages | model | cells | returns) "$@" ;;
versus) python3 -m benchmarks.versus_trl --model "$MODEL" --device cuda --prompts 64 --group 8 --new 128 --steps 8 "${@:2}" ;;
learn) python3 -m operant train grpo_smollm2_largest -s agent.model.source="$MODEL" -s meta.device=cuda "${@:2}" ;;
pong) python3 -m benchmarks.pong --spec ppo_atari_lam85 --frames 2500000 --seconds "$2" --out "$3" ;;
*) grep '^# ' "$0" && exit 2 ;;
esac

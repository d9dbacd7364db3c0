#!/usr/bin/env bash
# GRPO of a real model on a GPU machine that has no network: the comparison with TRL, or the learning curve.
#   benchmarks/grpo_h200.sh unpack GGUF_PARTS...      put the model's parts together and write a Hugging Face folder
#   benchmarks/grpo_h200.sh versus                    tokens per second beside TRL
#   benchmarks/grpo_h200.sh learn [operant train arguments]
set -euo pipefail
MODEL=${MODEL:-/tmp/smollm2}
case $1 in
unpack)
    mkdir -p "$MODEL.gguf"
    cat "${@:2}" > "$MODEL.gguf/model.gguf"
    python -c "
import sys
from pathlib import Path
from operant.engines.language.model import load_policy, write_folder
write_folder(load_policy('$MODEL.gguf/model.gguf', dtype='bfloat16'), Path('$MODEL'))"
    ;;
versus) python -m benchmarks.versus_trl --model "$MODEL" --device cuda --prompts 64 --group 8 --new 128 --steps 8 "${@:2}" ;;
learn) python -m operant train grpo_smollm2_largest -s agent.model.source="$MODEL" -s meta.device=cuda "${@:2}" ;;
esac

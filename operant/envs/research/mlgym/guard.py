"""Runs an evaluation file so that a checkpoint is data: its pickles may name parts of arrays and containers only.

This file runs in the sandbox, by itself: `guard.py NAMES FILE ARGUMENTS`, where NAMES is a JSON object of the modules
of the starter code and the classes of each. An audit hook cannot be taken back by what runs after it.
"""

import json
import runpy
import sys
from pathlib import Path

MODULES = {
    "builtins": {"set", "frozenset", "complex", "slice", "range", "bytearray", "object", "list", "dict", "tuple"},
    "collections": {"OrderedDict", "defaultdict", "deque"},
    "copyreg": {"_reconstructor"},
    "_codecs": {"encode"},
    "dotmap": {"DotMap"},
    "flax.core.frozen_dict": {"FrozenDict"},
    "jax._src.array": {"_reconstruct_array"},
    "jax._src.dtypes": {"bfloat16"},
    "ml_dtypes": {"bfloat16"},
    "numpy": {"ndarray", "dtype", "bool_", "float32", "float64", "int32", "int64", "uint8", "uint32"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "torch": {"FloatStorage", "LongStorage", "BFloat16Storage", "HalfStorage", "Size", "device", "float32", "bfloat16"},
    "torch._utils": {"_rebuild_tensor_v2", "_rebuild_parameter"},
    "torch.nn.parameter": {"Parameter"},
}


def main() -> None:
    """Set the hook, then be the evaluation file."""
    own, script = json.loads(sys.argv[1]), sys.argv[2]
    sys.argv = sys.argv[2:]
    sys.path[0] = ""
    if own is not None:
        keep_to_data({**MODULES, **own})
    if "DataLoader" in Path(script).read_text():
        load_in_this_process()
    runpy.run_path(script, run_name="__main__")


def keep_to_data(allowed) -> None:
    """Refuse pickles that name anything else."""

    def hook(event, details):
        if event != "pickle.find_class":
            return
        module, name = details
        if name not in allowed.get(module, ()):
            raise RuntimeError(f"a checkpoint may not hold {module}.{name}: arrays, numbers, texts and containers only")

    sys.addaudithook(hook)


def load_in_this_process() -> None:
    """Let torch load data without processes of its own: a sandbox has no shared memory for them."""
    from torch.utils.data import DataLoader

    init = DataLoader.__init__
    workers = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory", "multiprocessing_context")

    def alone(self, *args, **kwargs):
        init(self, *args, **{name: value for name, value in kwargs.items() if name not in workers})

    DataLoader.__init__ = alone


main()

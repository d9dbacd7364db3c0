"""The built-in generator: continuous batching with a cache of keys and values, on the trainer's own weights."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from operant.engines.language.generation.activation_cache import ActivationCache
from operant.engines.language.generation.decoder import BLOCK, Decoder, LeanDecoder, Prefilled
from operant.engines.language.generation.generator import Completion, Listener, Probe, Prompt, Sampling
from operant.engines.language.generation.model_decoder import ModelDecoder
from operant.engines.language.generation.sampling import chances, check_room, check_sampling, draw, prompt_key
from operant.engines.language.generation.slots import Slots, Stepper
from operant.engines.language.generation.stop_strings import StopStrings
from operant.engines.language.policy.batching import Segment
from operant.engines.language.policy.fingerprint import Fingerprint, fingerprint
from operant.engines.language.policy.sampling_mask import SamplingMask, packed_width
from operant.engines.language.policy.weights import copy_weights, plain_weights, supports, vocabulary_size
from operant.errors import RunError

if TYPE_CHECKING:
    from torch import Tensor

    from operant.engines.language.policy.model import Policy

PREFILL_TOKENS = 16384
"""At most so many tokens of prompts, padding included, are read at once."""


@dataclass
class _Job:
    """One completion to be written: the `index`-th of prompt `prompt`."""

    prompt: int
    index: int
    checked: int = 0


class TorchGenerator:
    """Writes completions with the weights of a policy's model, as they are when `generate` is called (final).

    `slots` completions are written side by side; one that ends makes room for the next. The host looks at them
    every `stride` tokens, and calls `beat` each time; what that raises ends the call. Without `graphs` nothing is
    captured on a GPU, which a second thread that computes there would disturb. An `activation_cache` of the policy's
    model keeps what is computed while it records.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        slots: int | None = None,
        stride: int = 8,
        version: int = 0,
        graphs: bool = True,
        activation_cache: ActivationCache | None = None,
    ) -> None:
        self.policy = policy
        self.device = next(policy.model.parameters()).device
        self.on_gpu = self.device.type == "cuda"
        self.slots = slots or (512 if self.on_gpu else 128)
        self.stride = stride
        self.version = version
        self.halted = False
        self.graphs = graphs
        self.activation_cache = activation_cache
        self.beat: Callable[[], object] = lambda: None
        self.ends = torch.tensor(policy.eos_ids, device=self.device)
        self._engine: tuple[Decoder, Stepper] | None = None

    @torch.inference_mode()
    def generate(
        self, prompts: Sequence[Prompt], sampling: Sampling, listener: Listener | None = None
    ) -> list[list[Completion]]:
        """`sampling.n` completions of each prompt, in the order of the prompts; `listener` hears them being written."""
        check_sampling(sampling)
        check_room(prompts, self.policy.context)
        if not prompts:
            return []
        training = self.policy.model.training
        self.policy.model.eval()
        try:
            decoder, stepper = self._ready(prompts, sampling)
            if isinstance(decoder, LeanDecoder):
                decoder.activation_cache = self._opened(prompts, sampling)
            return _Batch(self, decoder, stepper, prompts, sampling, listener).run()
        finally:
            self.policy.model.train(training)

    def load(self, weights: Mapping[str, Tensor], version: int) -> None:
        """Take over weights by name; none at all where the model itself was trained and only the version is new."""
        copy_weights(self.policy.model, weights)
        self.version = version

    def probe(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[Probe]:
        """What it writes to these prompts, and the weights that wrote it, as the decoder has them."""
        written = self.generate(prompts, sampling)
        return [Probe("the generator", self.version, self.fingerprint(), written)]

    def fingerprint(self) -> Fingerprint:
        """That of the weights which the last completions were written with."""
        held = plain_weights(self.policy.model, tied=True) if self._engine is None else self._engine[0].held()
        return fingerprint(held, self.policy)

    def halt(self) -> None:
        """End what is being written, for good: another thread's call of `generate` raises. Any thread may call this."""
        self.halted = True

    def close(self) -> None:
        """Let the cache and the captured graphs go."""
        self._engine = None

    def _opened(self, prompts: Sequence[Prompt], sampling: Sampling) -> ActivationCache | None:
        """The activation cache, if it records and has the room, padding and a last step for nothing included."""
        read = len(prompts) * max(len(prompt.tokens) for prompt in prompts)
        written = sum(prompt.max_tokens + 1 for prompt in prompts) * sampling.n
        return (
            self.activation_cache
            if self.activation_cache is not None and self.activation_cache.open(read + written)
            else None
        )

    def _ready(self, prompts: Sequence[Prompt], sampling: Sampling) -> tuple[Decoder, Stepper]:
        """A decoder with room enough, its weights up to date."""
        places = max(prompt.max_tokens for prompt in prompts)
        length = max(len(prompt.tokens) + prompt.max_tokens for prompt in prompts)
        rows = min(self.slots, len(prompts) * sampling.n)
        mask_bytes = packed_width(vocabulary_size(self.policy.model)) if sampling.masks else 0
        if self._engine is not None:
            decoder, stepper = self._engine
            wide = mask_bytes <= stepper.slots.mask.shape[2] and stepper.slots.written.shape[1] > places
            if decoder.slots >= rows and decoder.length >= length and wide:
                decoder.refresh()
                return self._engine
            mask_bytes = max(mask_bytes, stepper.slots.mask.shape[2])
            rows, length = max(rows, decoder.slots), max(length, decoder.length)
            places = max(places, stepper.slots.written.shape[1] - 1)
        self._engine = None
        model, padded = self.policy.model, -(-length // BLOCK) * BLOCK
        decoder = (LeanDecoder if supports(model) else ModelDecoder)(model, rows, padded)
        graphs = self.graphs and self.on_gpu and isinstance(decoder, LeanDecoder)
        stepper = Stepper(decoder, Slots.empty(rows, places, self.device, mask_bytes), self.ends, graphs)
        self._engine = decoder, stepper
        return self._engine


class _Batch:
    """The work of one call of `generate` (final)."""

    def __init__(
        self,
        owner: TorchGenerator,
        decoder: Decoder,
        stepper: Stepper,
        prompts: Sequence[Prompt],
        sampling: Sampling,
        listener: Listener | None,
    ) -> None:
        self.owner = owner
        self.decoder = decoder
        self.activation_cache = decoder.activation_cache if isinstance(decoder, LeanDecoder) else None
        self.stepper = stepper
        self.slots = stepper.slots
        self.prompts = prompts
        self.sampling = sampling
        self.listener = listener
        self.followed = listener is not None and listener.follows
        self.stops = StopStrings(owner.policy.tokenizer)
        self.waiting = deque(_Job(i, k) for i in range(len(prompts)) for k in range(sampling.n))
        self.active: list[_Job] = []
        # Prompts of the same tokens are of one kind, named by the first of them, and are read once.
        first: dict[tuple[int, ...], int] = {}
        self.kinds = [first.setdefault(prompt.tokens, number) for number, prompt in enumerate(prompts)]
        self.keys = [prompt_key(sampling.seed, prompt) for prompt in prompts]
        self.to_begin = Counter(self.kinds[job.prompt] for job in self.waiting)
        self.read: dict[int, tuple[Prefilled, int]] = {}
        self.done: list[list[Completion | None]] = [[None] * sampling.n for _ in prompts]

    def run(self) -> list[list[Completion]]:
        """Start, write and collect until every completion is done, or the time is up."""
        begun, seconds = time.monotonic(), self.sampling.seconds
        self._start(list(range(min(self.decoder.slots, len(self.waiting)))))
        while self.active:
            if self.owner.halted:
                raise RunError("the generator was halted while it wrote")
            self._collect()
            self.owner.beat()
            if seconds is not None and time.monotonic() - begun > seconds:
                self.slots.alive[:] = False
                break
            if self.active:
                self._write()
        aborted = Completion((), (), "", "abort", self.owner.version)
        return [[one or aborted for one in group] for group in self.done]

    def _write(self) -> None:
        steps = self.owner.stride
        longest = int(self.slots.position[: len(self.active)].max()) + steps
        block = BLOCK * 4 if self.owner.on_gpu else BLOCK
        columns = min(-(-longest // block) * block, self.decoder.length)
        self.stepper.run(len(self.active), columns, steps, self.sampling)

    def _collect(self) -> None:
        """Take out the rows that have ended and give their places to those who wait."""
        rows = len(self.active)
        state = torch.stack([self.slots.alive[:rows], self.slots.count[:rows]]).tolist()
        alive, counts = state[0], state[1]
        written = self._texts(alive)
        ended = []
        for row, job in enumerate(self.active):
            stopped = self._stop(job, written, row, counts[row])
            if stopped is not None or not alive[row] or not self._wanted(job):
                ended.append((row, stopped if stopped is not None else counts[row], stopped is not None))
        if self.listener is not None and self.followed and written is not None:
            self._tell(self.listener, written, counts, {row for row, _, _ in ended})
        if ended:
            self._finish(ended)
            self._refill([row for row, _, _ in ended])

    def _wanted(self, job: _Job) -> bool:
        return self.listener is None or self.listener.wants(job.prompt)

    def _tell(self, listener: Listener, written: np.ndarray, counts: list[int], ended: set[int]) -> None:
        """Let the listener hear how far each row has come that goes on."""
        logprobs = self.slots.logprob[: len(self.active)].tolist()
        for row, job in enumerate(self.active):
            if row not in ended:
                count = counts[row]
                listener.progress(job.prompt, job.index, written[row, :count].tolist(), logprobs[row][:count])

    def _texts(self, alive: list[int]) -> np.ndarray | None:
        """What is written, brought to the host only if something there has to be looked at."""
        stops = any(self.prompts[job.prompt].stop for job in self.active)
        if all(alive) and not stops and not self.followed:
            return None
        return self.slots.written[: len(self.active)].cpu().numpy()

    def _stop(self, job: _Job, written: np.ndarray | None, row: int, count: int) -> int | None:
        stop = self.prompts[job.prompt].stop
        if not stop or written is None:
            return None
        found = self.stops.find(written[row, :count].tolist(), job.checked, stop)
        job.checked = count
        return found

    def _finish(self, ended: list[tuple[int, int, bool]]) -> None:
        rows = torch.tensor([row for row, _, _ in ended], device=self.owner.device)
        tokens, logprobs = self.slots.written[rows].tolist(), self.slots.logprob[rows].tolist()
        for (row, count, stopped), ids, values in zip(ended, tokens, logprobs, strict=True):
            job = self.active[row]
            mask = SamplingMask.of(self.slots.mask[row, :count].cpu().numpy()) if self.sampling.masks else None
            over = stopped or ids[count - 1] in self.owner.policy.eos_ids
            completion = Completion(
                tokens=tuple(ids[:count]),
                logprobs=tuple(values[:count]),
                text=self.stops.text(ids[:count], self.prompts[job.prompt].stop),
                finish="stop" if over else "length",
                version=self.owner.version,
                mask=mask,
            )
            self.done[job.prompt][job.index] = completion
            self._note(job, row, completion)
            if self.listener is not None:
                self.listener.done(job.prompt, job.index, completion)

    def _note(self, job: _Job, row: int, completion: Completion) -> None:
        """Tell the activation cache where a completion is."""
        if self.activation_cache is not None and isinstance(self.decoder, LeanDecoder):
            prompt = self.prompts[job.prompt].tokens
            segment = Segment(prompt, completion.tokens)
            rows = self.decoder.where[row, len(prompt) : len(prompt) + segment.read]
            self.activation_cache.note(segment, rows.clone())

    def _refill(self, free: list[int]) -> None:
        """New completions take the free rows; where too few wait, the last rows move into the gaps."""
        self._drop_unwanted()
        filled = free[: len(self.waiting)]
        gaps = free[len(filled) :]
        self._start(filled)
        left = len(self.active) - len(gaps)
        keep = sorted(set(range(left, len(self.active))) - set(gaps))
        holes = [row for row in gaps if row < left]
        if keep:
            source, target = (torch.tensor(rows, device=self.owner.device) for rows in (keep, holes))
            self.decoder.move(source, target)
            self.slots.move(source, target)
            for old, new in zip(keep, holes, strict=True):
                self.active[new] = self.active[old]
        del self.active[left:]
        self.slots.alive[left:] = False

    def _drop_unwanted(self) -> None:
        """Completions that nobody waits for any more do not begin."""
        waiting, self.waiting, unwanted = self.waiting, deque[_Job](), list[int]()
        for job in waiting:
            if self._wanted(job):
                self.waiting.append(job)
            else:
                unwanted.append(self.kinds[job.prompt])
        self._forget(unwanted)

    def _start(self, rows: list[int]) -> None:
        """Let the next waiting completions begin in the rows."""
        jobs = [self.waiting.popleft() for _ in rows]
        if not jobs:
            return
        kinds = [self.kinds[job.prompt] for job in jobs]
        self._prefill(kinds)
        device, prompts = self.owner.device, [self.prompts[job.prompt] for job in jobs]
        keys = [self.keys[job.prompt] + job.index for job in jobs]
        chance = torch.from_numpy(chances(keys, max(prompt.max_tokens for prompt in prompts))).to(device)
        lengths = torch.tensor([len(prompt.tokens) for prompt in prompts], device=device)
        limits = torch.tensor([prompt.max_tokens for prompt in prompts], device=device)
        self.slots.fill(torch.tensor(rows, device=device), lengths, limits, chance)
        together: dict[int, list[int]] = {}
        for at, kind in enumerate(kinds):
            together.setdefault(id(self.read[kind][0]), []).append(at)
        for mine in together.values():
            read, which = self.read[kinds[mine[0]]][0], [self.read[kinds[at]][1] for at in mine]
            self._begin(read, [rows[at] for at in mine], which, chance[mine, 0])
        for row, job in zip(rows, jobs, strict=True):
            self.active[row : row + 1] = [job]
        self._forget(kinds)

    def _begin(self, read: Prefilled, rows: list[int], which: list[int], chance: Tensor) -> None:
        at, source = (torch.tensor(numbers, device=self.owner.device) for numbers in (rows, which))
        self.decoder.admit(at, read, source)
        token, logprob, mask = draw(read.logits[source], chance, self.sampling)
        self.slots.begin(at, token, logprob, mask, self.owner.ends)

    def _prefill(self, wanted: list[int]) -> None:
        """Read every prompt that was not yet read, in batches of a bounded number of tokens."""
        fresh = [kind for kind in dict.fromkeys(wanted) if kind not in self.read]
        while fresh:
            room = max(1, PREFILL_TOKENS // max(len(self.prompts[kind].tokens) for kind in fresh))
            batch, fresh = fresh[:room], fresh[room:]
            lines = [self.prompts[kind].tokens for kind in batch]
            width = max(map(len, lines))
            padded = [line + (self.owner.policy.pad_id,) * (width - len(line)) for line in lines]
            lengths = torch.tensor([len(line) for line in lines], device=self.owner.device)
            read = self.decoder.prefill(torch.tensor(padded, device=self.owner.device), lengths)
            self.read |= {kind: (read, at) for at, kind in enumerate(batch)}
            if self.activation_cache is not None and read.rows is not None:
                for line, rows in zip(lines, read.rows, strict=True):
                    self.activation_cache.note(Segment(line), rows[: len(line)])

    def _forget(self, begun: list[int]) -> None:
        """Let go of prompts whose completions have all begun."""
        self.to_begin.subtract(begun)
        for kind in set(begun):
            if self.to_begin[kind] == 0:
                self.read.pop(kind, None)

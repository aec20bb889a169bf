"""Sampler: chooses tokens from scores and remembers them for its penalties."""

from __future__ import annotations

import ctypes
import math
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Iterator, Mapping, Optional, SupportsIndex

import numpy as np

from ._arrays import Logits, int32
from ._errors import invalid
from ._handles import Handle, ModelOwner
from ._library import C, LogitBias, SamplerOptions, check, make

if TYPE_CHECKING:
    from .model import Model


def _options(seed: Optional[int], biases: "list[LogitBias]", top_k: int, penalty_last_n: int,
             **numbers: float) -> SamplerOptions:
    options = SamplerOptions()
    C.sn_sampler_options_init(ctypes.byref(options))
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise invalid(f"{name} must be a number, not {value!r}")
        setattr(options, name, float(value))
    options.top_k, options.penalty_last_n = top_k, penalty_last_n
    options.seed = secrets.randbits(53) if seed is None else seed
    options.bias = (LogitBias * len(biases))(*biases)
    options.n_bias = len(biases)
    return options


def make_sampler(model: Model, owner: ModelOwner, *, temperature: float = 0.8, top_k: int = 40,
                 top_p: float = 0.95, min_p: float = 0.0, repetition_penalty: float = 1.0,
                 presence_penalty: float = 0.0, frequency_penalty: float = 0.0,
                 penalty_last_n: int = 64, seed: Optional[int] = None,
                 logit_bias: Optional[Mapping[int, float]] = None,
                 ignore_eos: bool = False) -> Sampler:
    if seed is not None and not 0 <= int(seed) < 2**64:
        raise invalid(f"seed must be a whole number of 0 to 2**64 - 1, not {seed!r}")
    biases = [LogitBias(int32(id, "an id of logit_bias"), float(bias))
              for id, bias in (logit_bias or {}).items()]
    if ignore_eos and model.eos is not None:
        biases.append(LogitBias(model.eos, -math.inf))
    options = _options(seed, biases, int32(top_k, "top_k"),
                       int32(penalty_last_n, "penalty_last_n"), temperature=temperature,
                       top_p=top_p, min_p=min_p, repetition_penalty=repetition_penalty,
                       presence_penalty=presence_penalty, frequency_penalty=frequency_penalty)
    pointer = make(C.sn_sampler_new, model.vocab, C.sn_model_tokenizer(owner.pointer),
                   ctypes.byref(options))
    return Sampler(model, owner, pointer, options.seed)


class Sampler(Handle):
    """Made by Model.sampler() and clone().

    The same seed, options and scores give the same ids on every target.
    """

    _what = "sampler"

    def __init__(self, model: Model, owner: ModelOwner, pointer: int, seed: int) -> None:
        super().__init__(owner, pointer, C.sn_sampler_free)
        self._model = model
        self._seed = seed

    @contextmanager
    def _lent_to(self, model: Model) -> Iterator[int]:
        """The pointer for a call of the model's, under the lock."""
        if self._model is not model:
            raise invalid("the sampler is not one of this model")
        with self._lock:
            yield self._use()

    @property
    def seed(self) -> int:
        """The seed it was made with."""
        return self._seed

    def sample(self, logits: Logits) -> int:
        """The id that is chosen from scores [vocab]; accept() notes it."""
        scores = np.ascontiguousarray(logits, dtype=np.float32)
        if scores.shape != (self._model.vocab,):
            raise invalid(f"logits must be an array of shape ({self._model.vocab},)")
        id = ctypes.c_int32()
        with self._lock:
            check(C.sn_sampler_sample(self._use(), scores.ctypes.data, ctypes.byref(id)))
        return id.value

    def accept(self, id: SupportsIndex) -> None:
        """Notes a token of the prompt or the answer, for the penalties."""
        with self._lock:
            check(C.sn_sampler_accept(self._use(), int32(id, "a token id")))

    def reset(self) -> None:
        """Forgets the tokens seen and starts the random numbers again from the seed."""
        with self._lock:
            check(C.sn_sampler_reset(self._use()))

    def clone(self) -> Sampler:
        """A second one that goes on like this one."""
        with self._lock:
            copy = make(C.sn_sampler_clone, self._use())
        return self._model._keep(Sampler(self._model, self._owner, copy, self._seed))

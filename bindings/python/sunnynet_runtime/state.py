"""State: all that a model remembers of a sequence."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from typing import TYPE_CHECKING, ContextManager, Optional, SupportsIndex, Union

import numpy as np
import numpy.typing as npt

from ._arrays import Logits, Tokens, ids_of, int32, output
from ._errors import invalid
from ._handles import Handle, ModelOwner
from ._library import C, check, make

if TYPE_CHECKING:
    from .model import Model
    from .sampler import Sampler

# Chunks of one call of a prefill: between calls Python sees to signals such as Ctrl-C. Where a
# prefill is cut changes no bit.
CHUNKS_A_CALL = 8


class State(Handle):
    """The state of one sequence. Its size does not grow with what it has seen.

    Made by Model.init_state(), Model.load_state() and clone(). A context manager; without
    close() its memory goes with the last reference.
    """

    _what = "state"

    def __init__(self, model: Model, owner: ModelOwner, pointer: int) -> None:
        super().__init__(owner, pointer, C.sn_state_free)
        self._model = model

    @property
    def model(self) -> Model:
        return self._model

    @property
    def position(self) -> int:
        """Tokens seen."""
        with self._lock:
            return int(C.sn_state_position(self._use()))

    @property
    def weight_bytes_read(self) -> int:
        """Bytes of weights read on behalf of this state so far."""
        with self._lock:
            return int(C.sn_state_weight_bytes_read(self._use()))

    def step(self, token: SupportsIndex, out: Optional[Logits] = None) -> Logits:
        """Advances by one token; the scores of the next one, [vocab], in `out` if it is given."""
        id = int32(token, "a token id")
        logits = output(out, (self._model.vocab,))
        with self._lock:
            check(C.sn_state_step(self._use(), id, logits.ctypes.data))
        return logits

    def prefill(self, tokens: Tokens, out: Optional[Logits] = None) -> Logits:
        """Advances by at least one token, reading the weights once per max_chunk of them.

        The scores after the last one, [vocab]: the same bits as those of as many step().
        """
        ids = ids_of(tokens, self._model.vocab)
        if not len(ids):
            raise invalid("prefill: there are no tokens")
        logits = output(out, (self._model.vocab,))
        self._prefill(ids, logits.ctypes.data)
        return logits

    def feed(self, tokens: Tokens) -> None:
        """Advances by tokens without computing scores."""
        self._prefill(ids_of(tokens, self._model.vocab), None)

    def _prefill(self, ids: npt.NDArray[np.int32], logits: Optional[int]) -> None:
        most = CHUNKS_A_CALL * self._model.info.max_chunk
        with self._lock:
            for start in range(0, len(ids), most):
                piece = ids[start:start + most]
                last = start + most >= len(ids)
                check(C.sn_state_prefill(self._use(), piece.ctypes.data, len(piece),
                                         logits if last else None))

    def prefill_all(self, tokens: Tokens, out: Optional[Logits] = None) -> Logits:
        """The same with the scores after every token, [len(tokens), vocab]."""
        ids = ids_of(tokens, self._model.vocab)
        logits = output(out, (len(ids), self._model.vocab))
        with self._lock:
            check(C.sn_state_prefill_all(self._use(), ids.ctypes.data, len(ids),
                                         logits.ctypes.data))
        return logits

    def reset(self) -> State:
        """Back to the start of a sequence; the state itself."""
        with self._lock:
            check(C.sn_state_reset(self._use()))
        return self

    def clone(self) -> State:
        """A second state that goes on from the same place."""
        with self._lock:
            return self._model._new_state(make(C.sn_state_clone, self._use()))

    def _history(self, sampler: Optional[Sampler]) -> ContextManager[Optional[int]]:
        return nullcontext() if sampler is None else sampler._lent_to(self._model)

    def save(self, sampler: Optional[Sampler] = None) -> bytes:
        """The state as bytes, with the history of `sampler` if it is given.

        Any other target goes on from them with the same bits (docs/state-format.md).
        """
        with self._lock, self._history(sampler) as history:
            size = ctypes.c_size_t()
            check(C.sn_state_save(self._use(), history, None, 0, ctypes.byref(size)))
            buffer = ctypes.create_string_buffer(size.value)
            check(C.sn_state_save(self._use(), history, buffer, size.value,
                                  ctypes.byref(size)))
            return buffer.raw

    def restore(self, saved: Union[bytes, bytearray, memoryview],
                sampler: Optional[Sampler] = None) -> State:
        """Goes on from what save() gave; the state itself. On failure nothing has changed."""
        data = bytes(saved)
        with self._lock, self._history(sampler) as history:
            check(C.sn_state_restore(self._use(), history, data, len(data)))
        return self

    def compare(self, other: State) -> float:
        """The largest absolute difference between two states of one model; 0.0: equal."""
        if not isinstance(other, State) or other._model is not self._model:
            raise invalid("compare: the other state is not one of this model")
        difference = ctypes.c_double()
        first, second = sorted((self, other), key=id)  # one order, so that nobody waits in a ring
        with first._lock, second._lock:
            check(C.sn_state_compare(self._use(), other._use(), ctypes.byref(difference)))
        return difference.value

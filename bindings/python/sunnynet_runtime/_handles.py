"""Who owns what of the C library, and when it is freed.

A model must outlive its states, samplers and texts, also where Python's collector ends them
together, in any order. So whatever is made from a model keeps the model's owner, not the Model
that a program holds.
"""

from __future__ import annotations

import threading
import weakref
from types import TracebackType
from typing import Callable, Optional, TypeVar

from ._errors import invalid
from ._library import C

Self = TypeVar("Self", bound="Handle")


class ModelOwner:
    """The model of the C library; it is freed with the last reference to this."""

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer
        self._free = C.sn_model_free  # the module may be gone when the interpreter ends

    def __del__(self) -> None:
        self._free(self.pointer)


def _release(free: Callable[[int], None], pointer: int, owner: ModelOwner) -> None:
    free(pointer)  # `owner` was kept until here


class Handle:
    """What belongs to one model and is used by one thread at a time: others wait."""

    _what = "object"

    def __init__(self, owner: ModelOwner, pointer: int, free: Callable[[int], None]) -> None:
        self._owner = owner
        self._pointer = pointer
        self._lock = threading.RLock()
        self._finalizer = weakref.finalize(self, _release, free, pointer, owner)
        self._finalizer.atexit = False  # type: ignore[misc]

    def _use(self) -> int:
        """The pointer; to be called under the lock."""
        if not self._finalizer.alive:
            raise invalid(f"the {self._what} is closed")
        return self._pointer

    @property
    def closed(self) -> bool:
        """True once close() was called, or the model's."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Frees the memory now; calling it again does nothing."""
        with self._lock:
            self._finalizer()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

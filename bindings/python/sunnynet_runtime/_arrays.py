"""Tokens in, scores out: numpy arrays that the C library can read and write."""

from __future__ import annotations

import operator
from typing import Iterable, Optional, SupportsIndex, Union

import numpy as np
import numpy.typing as npt

from ._errors import invalid

Logits = npt.NDArray[np.float32]
Tokens = Union[Iterable[SupportsIndex], npt.NDArray[np.integer]]

INT32_MAX = 2**31 - 1


def int32(value: SupportsIndex, what: str) -> int:
    """A whole number that C takes as int32_t."""
    try:
        number = operator.index(value)
    except TypeError:
        raise invalid(f"{what} must be a whole number, not {value!r}") from None
    if abs(number) > INT32_MAX:
        raise invalid(f"{what} {number} is too large")
    return number


def ids_of(tokens: Tokens, vocab: int) -> npt.NDArray[np.int32]:
    """Ids as int32, each inside the vocabulary, so that nothing is computed if one is not."""
    if isinstance(tokens, (str, bytes)):
        raise invalid("tokens must be ids; tokenize() makes them of text")
    given = tokens if isinstance(tokens, np.ndarray) else np.array(
        [int32(id, "a token id") for id in tokens], dtype=np.int32)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise invalid("tokens must be one row of whole numbers")
    for id in given[(given < 0) | (given >= vocab)][:1]:
        raise invalid(f"token {id} is outside the vocabulary of {vocab}")
    return np.ascontiguousarray(given, dtype=np.int32)


def output(out: Optional[Logits], shape: tuple[int, ...]) -> Logits:
    """A new array, or the caller's if it fits."""
    if out is None:
        return np.empty(shape, dtype=np.float32)
    if not isinstance(out, np.ndarray) or out.dtype != np.float32 or out.shape != shape:
        raise invalid(f"out must be an array of float32 of shape {shape}")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise invalid("out must be contiguous and writeable")
    return out

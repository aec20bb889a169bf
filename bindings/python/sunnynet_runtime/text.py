"""Ids to text: whole characters only, up to a stop text."""

from __future__ import annotations

import ctypes
from typing import Sequence

from ._errors import invalid
from ._handles import Handle, ModelOwner
from ._library import C, check, make


def text_of(call: object, *arguments: object) -> str:
    """The text that a function of the C library gives through its next two arguments."""
    return bytes_of(call, *arguments).decode("utf-8", "replace")


def bytes_of(call: object, *arguments: object, more: "tuple[object, ...]" = ()) -> bytes:
    start = ctypes.POINTER(ctypes.c_char)()
    length = ctypes.c_size_t()
    check(call(*arguments, ctypes.byref(start), ctypes.byref(length), *more))  # type: ignore
    return ctypes.string_at(start, length.value) if length.value else b""


class TextStream(Handle):
    """sn_text of sunnynet.h."""

    _what = "text"

    def __init__(self, owner: ModelOwner, stops: Sequence[str]) -> None:
        texts = [stop.encode() for stop in stops]
        if any(not text or b"\0" in text for text in texts):
            raise invalid("stop texts must not be empty, nor hold a NUL")
        pointer = make(C.sn_text_new, C.sn_model_tokenizer(owner.pointer),
                       (ctypes.c_char_p * len(texts))(*texts), len(texts))
        super().__init__(owner, pointer, C.sn_text_free)

    def push(self, id: int) -> "tuple[str, bool]":
        """The text that is certain now, and whether a stop text was met."""
        stopped = ctypes.c_int32()
        text = bytes_of(C.sn_text_push, self._use(), id, more=(ctypes.byref(stopped),))
        return text.decode("utf-8", "replace"), stopped.value != 0

    def finish(self) -> str:
        """What was held back."""
        return text_of(C.sn_text_finish, self._use())

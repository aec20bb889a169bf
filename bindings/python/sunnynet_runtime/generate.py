"""Generation, what Model.generate() returns: text as it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from ._arrays import Logits, Tokens, ids_of
from ._errors import invalid
from ._handles import Handle
from .sampler import Sampler
from .state import State
from .text import TextStream

if TYPE_CHECKING:
    from .model import Model


class _Run:
    """What a generation works with. The generator below refers to this and not to the
    Generation, so that one that is dropped in the middle ends at once."""

    def __init__(self, model: Model, prompt: npt.NDArray[np.int32], max_tokens: Optional[int],
                 state: State, sampler: Sampler, text: TextStream,
                 own: Sequence[Handle]) -> None:
        self.ids: list[int] = []
        self.reason: Optional[str] = None
        self.pending: Optional[int] = None  # came out, but the state has not seen it
        self.eos = model.eos
        self.prompt, self.max_tokens = prompt, max_tokens
        self.state, self.sampler, self.text = state, sampler, text
        self.own = own  # what is closed at the end

    def end(self, failed: bool = False) -> None:
        """The state sees all that came out, unless it cannot."""
        pending, self.pending = self.pending, None
        if self.reason is None:
            self.reason = "abort"
        try:
            if pending is not None and not failed and not self.state.closed:
                self.state.feed([pending])
        finally:
            for one in self.own:
                one.close()

    def next_token(self, logits: Logits) -> Optional[int]:
        """The next id of the answer; None at its end."""
        if self.max_tokens is not None and len(self.ids) >= self.max_tokens:
            self.reason = "length"
            return None
        if self.pending is not None:
            token, self.pending = self.pending, None
            self.state.step(token, out=logits)
        id = self.sampler.sample(logits)
        if id == self.eos:
            self.reason = "eos"
            return None
        self.sampler.accept(id)
        self.pending = id
        self.ids.append(id)
        return id

    def pieces(self) -> Iterator[str]:
        logits = self.state.prefill(self.prompt)
        for id in self.prompt:
            self.sampler.accept(id)
        while (token := self.next_token(logits)) is not None:
            piece, stopped = self.text.push(token)
            if stopped:
                self.reason = "stop"
            if piece:
                yield piece
            if stopped:
                return
        rest = self.text.finish()
        if rest:
            yield rest


def _iterate(run: _Run) -> Iterator[str]:
    try:
        yield from run.pieces()
    except GeneratorExit:
        run.end()
        raise
    except BaseException:
        run.end(failed=True)
        raise
    run.end()


class Generation(Iterator[str]):
    """An iterator of pieces of text, each of whole characters.

    When it ends, also where a loop over it is left, a state that was given has seen the prompt
    and all of `ids`. A context manager, for who keeps it and wants it to end at a known place.
    """

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._pieces = _iterate(run)
        self._started = False

    @property
    def ids(self) -> list[int]:
        """The tokens generated so far."""
        return list(self._run.ids)

    @property
    def reason(self) -> Optional[str]:
        """None while it runs, then why it ended: "length", "eos", "stop" (before a stop text) or
        "abort" (it was left, or failed)."""
        return self._run.reason

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> str:
        self._started = True
        return next(self._pieces)

    def text(self) -> str:
        """All that is still to come, at once."""
        return "".join(self)

    def close(self) -> None:
        """Ends it now; calling it again does nothing."""
        self._pieces.close()  # type: ignore[attr-defined]
        if not self._started:  # a generator that never ran does not run to its end either
            self._started = True
            self._run.end()

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def prompt_of(model: Model, prompt: Union[str, bytes, Tokens], begin: bool,
              bos: Optional[bool]) -> npt.NDArray[np.int32]:
    """The ids of a prompt, which may be text: behind the begin-of-text token where bos says so,
    or, if that is None, where the file does."""
    if bos and model.bos is None:
        raise invalid("the model has no begin-of-text token for bos")
    if isinstance(prompt, (str, bytes)):
        prompt = model.tokenize(prompt, begin=begin and bos is None)
    found = ids_of(prompt, model.vocab)
    if bos:
        found = np.concatenate([np.array([model.bos], dtype=np.int32), found])
    if not len(found):
        raise invalid("the prompt is empty: give at least one token, or bos")
    return found

"""Model: weights and tokenizer; load_model() makes it."""

from __future__ import annotations

import ctypes
import logging
import os
import threading
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Callable, Optional, Sequence, SupportsIndex, TypeVar, Union

import numpy as np
import numpy.typing as npt

from . import _library
from ._arrays import INT32_MAX, Logits, Tokens, ids_of, int32, output
from ._errors import SunnyNetError, invalid
from ._handles import Handle, ModelOwner
from ._library import C, ENCODE_BEGIN, ENCODE_ENDS, ENCODE_SPECIAL, check, make
from .generate import Generation, _Run, prompt_of
from .sampler import Sampler, make_sampler
from .state import State
from .text import TextStream, bytes_of

Path = Union[str, "os.PathLike[str]"]
H = TypeVar("H", bound=Handle)

ACTIVATIONS = ("int8", "f32")
MAX_BATCH = 4096

_log = logging.getLogger("sunnynet_runtime")


@dataclass(frozen=True)
class ModelInfo:
    """What a model is; sizes are bytes."""

    architecture: str
    name: str
    backend: str
    chat_template: str
    layers: int
    width: int
    ffn: int
    heads: int
    head_size: int
    vocab: int
    activations: str
    threads: int
    max_chunk: int
    parameters: int
    file_bytes: int
    resident_bytes: int
    state_bytes: int
    bytes_per_token: int


@dataclass(frozen=True)
class TensorInfo:
    """One tensor of the file; dims[0] is the contiguous length of a row."""

    name: str
    type: str
    dims: tuple[int, ...]
    file_bytes: int
    resident_bytes: int


def _read_info(pointer: int) -> ModelInfo:
    c = _library.ModelInfo(struct_size=ctypes.sizeof(_library.ModelInfo))
    check(C.sn_model_get_info(pointer, ctypes.byref(c)))
    return ModelInfo(
        architecture=c.architecture.decode(), name=c.name.decode("utf-8", "replace"),
        backend=c.backend.decode(), chat_template=c.chat_template.decode("utf-8", "replace"),
        layers=c.n_layers, width=c.n_embd, ffn=c.n_ffn, heads=c.n_heads, head_size=c.head_size,
        vocab=c.vocab, activations=ACTIVATIONS[c.activations], threads=c.n_threads,
        max_chunk=c.max_chunk, parameters=int(c.parameters), file_bytes=int(c.file_bytes),
        resident_bytes=int(c.resident_bytes), state_bytes=int(c.state_bytes),
        bytes_per_token=int(c.bytes_per_token))


def _read_tensor(pointer: int, index: int) -> TensorInfo:
    c = _library.TensorInfo(struct_size=ctypes.sizeof(_library.TensorInfo))
    check(C.sn_model_get_tensor(pointer, index, ctypes.byref(c)))
    return TensorInfo(c.name.decode("utf-8", "replace"), c.type.decode(),
                      tuple(int(n) for n in c.dims[:c.n_dims]), int(c.file_bytes),
                      int(c.resident_bytes))


class Model:
    """The weights and the tokenizer. Immutable: any number of threads may use it.

    Made by load_model(). A context manager; close() also closes what was made from it.
    """

    def __init__(self, owner: ModelOwner) -> None:
        self._owner: Optional[ModelOwner] = owner
        self._made: "weakref.WeakSet[Handle]" = weakref.WeakSet()
        self._made_lock = threading.Lock()
        self._info = _read_info(owner.pointer)
        tokenizer = C.sn_model_tokenizer(owner.pointer)
        bos, eos, eot = (call(tokenizer) if tokenizer else -1 for call in
                         (C.sn_tokenizer_bos, C.sn_tokenizer_eos, C.sn_tokenizer_eot))
        self._marks = tuple(id if id >= 0 else None for id in (bos, eos, eot))

    def _use(self) -> ModelOwner:
        owner = self._owner  # whoever holds it keeps the weights
        if owner is None:
            raise invalid("the model is closed")
        return owner

    def _keep(self, made: H) -> H:
        with self._made_lock:
            self._made.add(made)
        return made

    # ---- what it is ------------------------------------------------------------------------

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def vocab(self) -> int:
        """Tokens in the vocabulary, hence floats in a row of scores."""
        return self._info.vocab

    @property
    def bos(self) -> Optional[int]:
        """Id of the begin-of-text token; None if there is none."""
        return self._marks[0]

    @property
    def eos(self) -> Optional[int]:
        """Id of the end-of-text token; None if there is none."""
        return self._marks[1]

    @property
    def eot(self) -> Optional[int]:
        """Id of the end-of-turn token; None if there is none."""
        return self._marks[2]

    def tensors(self) -> list[TensorInfo]:
        """All tensors of the file."""
        owner = self._use()
        return [_read_tensor(owner.pointer, i)
                for i in range(C.sn_model_tensor_count(owner.pointer))]

    # ---- text ------------------------------------------------------------------------------

    def _tokenizer(self, owner: ModelOwner) -> int:
        tokenizer = C.sn_model_tokenizer(owner.pointer)
        if not tokenizer:
            raise invalid("the model has no tokenizer that is supported")
        return int(tokenizer)

    def tokenize(self, text: Union[str, bytes], *, special: bool = False, ends: bool = False,
                 begin: bool = False) -> list[int]:
        """Ids of a text.

        special  control tokens written out in the text become their ids; not for text that came
                 from outside
        ends     adds what the file says belongs at both ends of a text
        begin    adds only what belongs at its beginning
        """
        owner = self._use()
        tokenizer = self._tokenizer(owner)
        data = text.encode() if isinstance(text, str) else bytes(text)
        flags = special * ENCODE_SPECIAL | ends * ENCODE_ENDS | begin * ENCODE_BEGIN
        room, n = min(len(data) + 2, INT32_MAX), ctypes.c_int32()
        while True:
            ids = np.empty(room, dtype=np.int32)
            check(C.sn_tokenizer_encode_with(tokenizer, data, len(data), flags,
                                             ids.ctypes.data, room, ctypes.byref(n)))
            if n.value <= room:
                return ids[:n.value].tolist()  # type: ignore[no-any-return]
            room = n.value

    def detokenize(self, ids: Tokens) -> str:
        """The text of ids; bytes that are no character become U+FFFD."""
        owner = self._use()
        self._tokenizer(owner)
        found = ids_of(ids, self.vocab).tolist()
        with TextStream(owner, ()) as stream:
            return "".join([stream.push(id)[0] for id in found]) + stream.finish()

    def token_bytes(self, id: SupportsIndex) -> bytes:
        """The bytes of one token: possibly part of a character, possibly none."""
        owner = self._use()
        return bytes_of(C.sn_tokenizer_token, self._tokenizer(owner), int32(id, "a token id"))

    # ---- states ----------------------------------------------------------------------------

    def _new_state(self, pointer: int) -> State:
        return self._keep(State(self, self._use(), pointer))

    def init_state(self) -> State:
        """A state at the start of a sequence."""
        return self._new_state(make(C.sn_state_new, self._use().pointer))

    def load_state(self, saved: Union[bytes, bytearray, memoryview],
                   sampler: Optional[Sampler] = None) -> State:
        """A state that goes on from what State.save() gave."""
        state = self.init_state()
        try:
            return state.restore(saved, sampler)
        except BaseException:
            state.close()
            raise

    def _mine(self, state: State) -> State:
        if not isinstance(state, State) or state.model is not self:
            raise invalid("the state is not one of this model")
        return state

    def reset(self, state: State) -> State:
        """State.reset()"""
        return self._mine(state).reset()

    def step(self, token: SupportsIndex, state: State, out: Optional[Logits] = None) -> Logits:
        """State.step()"""
        return self._mine(state).step(token, out)

    def prefill(self, tokens: Tokens, state: State, out: Optional[Logits] = None) -> Logits:
        """State.prefill()"""
        return self._mine(state).prefill(tokens, out)

    def prefill_all(self, tokens: Tokens, state: State,
                    out: Optional[Logits] = None) -> Logits:
        """State.prefill_all()"""
        return self._mine(state).prefill_all(tokens, out)

    def batch(self, capacity: int) -> Batch:
        """Room to advance up to `capacity` states together."""
        room = int32(capacity, "the capacity")
        owner = self._use()
        return self._keep(Batch(self, owner, make(C.sn_batch_new, owner.pointer, room), room))

    # ---- generating ------------------------------------------------------------------------

    def sampler(self, **options: object) -> Sampler:
        """A sampler. Its options, all by name:

        temperature [0.8; 0: greedy], top_k [40; 0: all], top_p [0.95; 1: all], min_p [0],
        repetition_penalty [1], presence_penalty [0], frequency_penalty [0],
        penalty_last_n [64; -1: all], seed [random], logit_bias [{id: bias}], ignore_eos [False]
        """
        try:
            made = make_sampler(self, self._use(), **options)  # type: ignore[arg-type]
        except TypeError as error:  # a misspelt option
            raise invalid(f"sampler: {error}") from None
        return self._keep(made)

    def generate(self, prompt: Union[str, bytes, Tokens], *, max_tokens: Optional[int] = 128,
                 stop: Union[str, Sequence[str]] = (), state: Optional[State] = None,
                 sampler: Optional[Sampler] = None, bos: Optional[bool] = None,
                 **options: object) -> Generation:
        """Goes on with a text: an iterator of pieces of text.

        prompt      text or ids, at least one token
        max_tokens  None: to the end of the text
        stop        text, or several, to end before
        state       where to go on [a new state]; it must not be used elsewhere meanwhile
        sampler     who chooses [a new one, of these `options`, as in sampler()]
        bos         True: the begin-of-text token comes first, False: it does not, None: as the
                    file says for a text at the start of a sequence
        """
        if sampler is not None and options:
            raise invalid(f"generate: '{next(iter(options))}' is an option of a sampler, "
                          "but one is given")
        owner = self._use()
        self._tokenizer(owner)
        if state is not None:
            self._mine(state)
        if sampler is not None:
            with sampler._lent_to(self):
                pass
        if max_tokens is not None and int32(max_tokens, "max_tokens") < 0:
            raise invalid(f"max_tokens must not be negative, as {max_tokens} is")
        ids = prompt_of(self, prompt, state is None or state.position == 0, bos)
        stops = [stop] if isinstance(stop, str) else list(stop)
        text = TextStream(owner, stops)
        own: list[Handle] = [text]
        if sampler is None:
            sampler = self.sampler(**options)
            own.append(sampler)
        if state is None:
            state = self.init_state()
            own.append(state)
        return Generation(_Run(self, ids, max_tokens, state, sampler, text, own))

    # ---- end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes all states, samplers and batches made from it, then frees the weights."""
        with self._made_lock:
            made = list(self._made)
            self._made.clear()
        self._owner = None
        for one in made:
            one.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Batch(Handle):
    """Advances different states of one model together, reading the weights once."""

    _what = "batch"

    def __init__(self, model: Model, owner: ModelOwner, pointer: int, capacity: int) -> None:
        super().__init__(owner, pointer, C.sn_batch_free)
        self._model = model
        self.capacity = capacity

    def step(self, states: Sequence[State], tokens: Tokens,
             out: Optional[Logits] = None) -> Logits:
        """One token for each state; their scores, [len(states), vocab].

        Each row has the bits that State.step() gives.
        """
        ids = ids_of(tokens, self._model.vocab)
        if len(states) != len(ids) or not 0 < len(ids) <= self.capacity:
            raise invalid(f"batch: as many tokens as states are needed, 1 to {self.capacity}, "
                          f"not {len(ids)} and {len(states)}")
        if len({id(self._model._mine(state)) for state in states}) != len(states):
            raise invalid("batch: a state is there twice")
        logits = output(out, (len(ids), self._model.vocab))
        ordered = sorted(states, key=id)  # one order, so that nobody waits in a ring
        with ExitStack() as held:
            for one in [self, *ordered]:
                held.enter_context(one._lock)
            pointers = (ctypes.c_void_p * len(ids))(*(state._use() for state in states))
            check(C.sn_batch_step(self._use(), pointers, ids.ctypes.data, len(ids),
                                  logits.ctypes.data))
        return logits


# ---- loading ---------------------------------------------------------------------------------

def _same_name(a: str, b: str) -> bool:
    """However the words are joined: delta_net is deltanet."""
    plain = [name.lower().replace("-", "").replace("_", "") for name in (a, b)]
    return plain[0] == plain[1]


class _Callbacks:
    """Keeps what C calls, and what went wrong in it."""

    def __init__(self, progress: Optional[Callable[[float, float], object]],
                 log: Optional[Callable[[str], object]]) -> None:
        self.error: Optional[BaseException] = None

        def on_progress(_: object, done: float, total: float) -> int:
            try:
                return 1 if self.error or (progress and progress(done, total)) else 0
            except BaseException as error:
                self.error = error
                return 1

        def on_log(_: object, line: bytes) -> None:
            try:
                (log or _log.warning)(line.decode("utf-8", "replace"))
            except BaseException as error:
                self.error = error

        self.progress = _library.ProgressFn(on_progress)
        self.log = _library.LogFn(on_log)


def load_model(arch_or_path: Path, dir: Optional[Path] = None, *, threads: int = 0,
               activations: str = "int8", backend: Optional[str] = None, max_chunk: int = 0,
               progress: Optional[Callable[[float, float], object]] = None,
               log: Optional[Callable[[str], object]] = None) -> Model:
    """Loads a model: load_model(path), or load_model(arch, path) to fail unless it is of that
    architecture ("rwkv7", "mamba2", "deltanet", ..., in any spelling).

    path, dir    a GGUF file, a Hugging Face folder, a safetensors file, a .pth or .pt, a blob
    threads      0: chosen from cores and the size of the model
    activations  "int8" or "f32": what quantised matrices are multiplied with
    backend      "scalar", "avx2", ...: None takes the fastest, or what SN_ISA names
    max_chunk    tokens of a prompt computed together; 0: 48
    progress     called with bytes done and all bytes; a true result stops the loading
    log          called with lines of advice; None: logging's "sunnynet_runtime"
    """
    arch = None if dir is None else os.fspath(arch_or_path)
    file = os.fspath(arch_or_path if dir is None else dir)
    if activations not in ACTIVATIONS:
        raise invalid(f"activations must be 'int8' or 'f32', not {activations!r}")
    if "\0" in file:
        raise invalid("the path holds a NUL")
    options = _library.ModelOptions()
    C.sn_model_options_init(ctypes.byref(options))
    options.n_threads = int32(threads, "threads")
    options.max_chunk = int32(max_chunk, "max_chunk")
    options.activations = ACTIVATIONS.index(activations)
    options.backend = None if backend is None else backend.encode()
    callbacks = _Callbacks(progress, log)
    options.progress, options.log = callbacks.progress, callbacks.log
    try:
        owner = ModelOwner(make(C.sn_model_load, _path_bytes(file), ctypes.byref(options)))
    except SunnyNetError:
        if callbacks.error:
            raise callbacks.error from None
        raise
    if callbacks.error:
        raise callbacks.error
    model = Model(owner)
    if arch is not None and not _same_name(arch, model.info.architecture):
        raise SunnyNetError("UNSUPPORTED", f"{file}: the architecture is "
                            f"{model.info.architecture}, not {arch}")
    return model


def _path_bytes(path: str) -> bytes:
    """As the C library takes paths: the system's bytes, UTF-8 on Windows."""
    return path.encode() if os.name == "nt" else os.fsencode(path)


def backends() -> list[str]:
    """Names of the back ends that this machine can run, the fastest last."""
    return [C.sn_backend_name(i).decode() for i in range(C.sn_backend_count())
            if C.sn_backend_usable(i)]

"""The C library: where it is, and its functions as sunnynet.h declares them."""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int32, \
    c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

from ._errors import error_of
from ._version import VERSION

ENCODE_SPECIAL, ENCODE_ENDS, ENCODE_BEGIN = 1, 2, 4

ProgressFn = CFUNCTYPE(c_int32, c_void_p, c_double, c_double)
LogFn = CFUNCTYPE(None, c_void_p, c_char_p)


class ModelOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("backend", c_char_p), ("n_threads", c_int32),
                ("activations", c_int32), ("header_only", c_int32), ("max_chunk", c_int32),
                ("progress", ProgressFn), ("progress_user", c_void_p), ("log", LogFn),
                ("log_user", c_void_p), ("map", c_int32)]


class ModelInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("architecture", c_char_p), ("name", c_char_p),
                ("backend", c_char_p), ("chat_template", c_char_p), ("n_layers", c_int32),
                ("n_embd", c_int32), ("n_ffn", c_int32), ("n_heads", c_int32),
                ("head_size", c_int32), ("vocab", c_int32), ("activations", c_int32),
                ("n_threads", c_int32), ("max_chunk", c_int32), ("parameters", c_double),
                ("file_bytes", c_double), ("resident_bytes", c_double),
                ("state_bytes", c_double), ("bytes_per_token", c_double)]


class TensorInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("name", c_char_p), ("type", c_char_p),
                ("n_dims", c_int32), ("dims", c_double * 4), ("file_bytes", c_double),
                ("resident_bytes", c_double)]


class LogitBias(Structure):
    _fields_ = [("id", c_int32), ("bias", c_float)]


class SamplerOptions(Structure):
    _fields_ = [("struct_size", c_uint32), ("temperature", c_float), ("top_k", c_int32),
                ("top_p", c_float), ("min_p", c_float), ("repetition_penalty", c_float),
                ("presence_penalty", c_float), ("frequency_penalty", c_float),
                ("penalty_last_n", c_int32), ("seed", c_uint64),
                ("bias", POINTER(LogitBias)), ("n_bias", c_int32)]


_BYTES = POINTER(POINTER(c_char))  # const char **, of bytes that have a length beside them
_HANDLE = POINTER(c_void_p)
_INT = POINTER(c_int32)
_SIZE = POINTER(c_size_t)

# name: (result, arguments); handles and arrays of numpy are addresses.
_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "sn_version": (c_char_p, []),
    "sn_status_text": (c_char_p, [c_int32]),
    "sn_last_error": (c_char_p, []),
    "sn_backend_count": (c_int32, []),
    "sn_backend_name": (c_char_p, [c_int32]),
    "sn_backend_usable": (c_int32, [c_int32]),
    "sn_model_options_init": (None, [POINTER(ModelOptions)]),
    "sn_model_load": (c_int32, [c_char_p, POINTER(ModelOptions), _HANDLE]),
    "sn_model_free": (None, [c_void_p]),
    "sn_model_get_info": (c_int32, [c_void_p, POINTER(ModelInfo)]),
    "sn_model_tensor_count": (c_int32, [c_void_p]),
    "sn_model_get_tensor": (c_int32, [c_void_p, c_int32, POINTER(TensorInfo)]),
    "sn_model_tokenizer": (c_void_p, [c_void_p]),
    "sn_state_new": (c_int32, [c_void_p, _HANDLE]),
    "sn_state_free": (None, [c_void_p]),
    "sn_state_reset": (c_int32, [c_void_p]),
    "sn_state_clone": (c_int32, [c_void_p, _HANDLE]),
    "sn_state_position": (c_double, [c_void_p]),
    "sn_state_step": (c_int32, [c_void_p, c_int32, c_void_p]),
    "sn_state_prefill": (c_int32, [c_void_p, c_void_p, c_int32, c_void_p]),
    "sn_state_prefill_all": (c_int32, [c_void_p, c_void_p, c_int32, c_void_p]),
    "sn_state_weight_bytes_read": (c_double, [c_void_p]),
    "sn_state_save": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t, _SIZE]),
    "sn_state_restore": (c_int32, [c_void_p, c_void_p, c_void_p, c_size_t]),
    "sn_state_compare": (c_int32, [c_void_p, c_void_p, POINTER(c_double)]),
    "sn_batch_new": (c_int32, [c_void_p, c_int32, _HANDLE]),
    "sn_batch_free": (None, [c_void_p]),
    "sn_batch_step": (c_int32, [c_void_p, _HANDLE, c_void_p, c_int32, c_void_p]),
    "sn_tokenizer_bos": (c_int32, [c_void_p]),
    "sn_tokenizer_eos": (c_int32, [c_void_p]),
    "sn_tokenizer_eot": (c_int32, [c_void_p]),
    "sn_tokenizer_encode_with": (c_int32, [c_void_p, c_char_p, c_size_t, c_int32, c_void_p,
                                           c_int32, _INT]),
    "sn_tokenizer_token": (c_int32, [c_void_p, c_int32, _BYTES, _SIZE]),
    "sn_text_new": (c_int32, [c_void_p, POINTER(c_char_p), c_int32, _HANDLE]),
    "sn_text_free": (None, [c_void_p]),
    "sn_text_push": (c_int32, [c_void_p, c_int32, _BYTES, _SIZE, _INT]),
    "sn_text_finish": (c_int32, [c_void_p, _BYTES, _SIZE]),
    "sn_sampler_options_init": (None, [POINTER(SamplerOptions)]),
    "sn_sampler_new": (c_int32, [c_int32, c_void_p, POINTER(SamplerOptions), _HANDLE]),
    "sn_sampler_free": (None, [c_void_p]),
    "sn_sampler_clone": (c_int32, [c_void_p, _HANDLE]),
    "sn_sampler_reset": (c_int32, [c_void_p]),
    "sn_sampler_accept": (c_int32, [c_void_p, c_int32]),
    "sn_sampler_sample": (c_int32, [c_void_p, c_void_p, _INT]),
}

_NAMES = {  # in the package, elsewhere on the system
    "win32": ("sunnynet.dll", "sunnynet.dll"),
    "darwin": ("libsunnynet.dylib", f"libsunnynet.{VERSION.split('.')[0]}.dylib"),
}
_OTHER = ("libsunnynet.so", f"libsunnynet.so.{VERSION.split('.')[0]}")


def library_path() -> str:
    """The file that SUNNYNET_LIBRARY names, the one of the package, or the system's."""
    chosen = os.environ.get("SUNNYNET_LIBRARY")
    if chosen:
        return chosen
    ours, theirs = _NAMES.get(sys.platform, _OTHER)
    beside = Path(__file__).resolve().parent / ours
    return str(beside) if beside.exists() else theirs


def _load() -> ctypes.CDLL:
    path = library_path()
    try:
        library = ctypes.CDLL(path)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise ImportError(f"{path}: the SunnyNet library cannot be used: {error}") from error
    found = library.sn_version().decode()
    if found.split(".")[:2] != VERSION.split(".")[:2]:
        raise ImportError(f"{path}: is version {found}; the package needs {VERSION}")
    return library


C = _load()


def check(status: int) -> None:
    """Raises what the calling thread's last failure was, unless status is SN_OK."""
    if status != 0:
        text = C.sn_last_error().decode("utf-8", "replace")
        raise error_of(status, text or C.sn_status_text(status).decode())


def make(function: object, *arguments: object) -> int:
    """Calls a function whose last argument receives a handle, and returns the handle."""
    handle = c_void_p()
    check(function(*arguments, ctypes.byref(handle)))  # type: ignore[operator]
    assert handle.value is not None
    return handle.value

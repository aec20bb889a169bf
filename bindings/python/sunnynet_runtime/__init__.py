"""Recurrent language models whose state does not grow with context.

    from sunnynet_runtime import load_model

    m = load_model("model.gguf")
    for piece in m.generate("Once upon a time"):
        print(piece, end="", flush=True)

A Model is immutable and can be shared by threads; each of its States is one sequence, advanced
by step() and prefill(), copied by clone(), kept by save(). The same file, tokens and options
give the same bits of every score on every back end and with any number of threads.
"""

from ._errors import SunnyNetError
from ._version import VERSION as __version__
from .generate import Generation
from .model import Batch, Model, ModelInfo, TensorInfo, backends, load_model
from .sampler import Sampler
from .state import State

__all__ = ["Batch", "Generation", "Model", "ModelInfo", "Sampler", "State", "SunnyNetError",
           "TensorInfo", "__version__", "backends", "load_model"]

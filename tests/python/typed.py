"""What a program may write, for the type checker; it is not run."""

from pathlib import Path
from typing import Optional

import numpy as np
import numpy.typing as npt

from sunnynet_runtime import Batch, Generation, Model, ModelInfo, Sampler, State, SunnyNetError, \
    TensorInfo, __version__, backends, load_model

version: str = __version__
names: list[str] = backends()
m: Model = load_model("rwkv7", Path("model.gguf"), threads=2, activations="f32", backend=None,
                      max_chunk=16, progress=lambda done, total: done > total, log=print)
info: ModelInfo = m.info
tensors: list[TensorInfo] = m.tensors()
eos: Optional[int] = m.eos
ids: list[int] = m.tokenize("text", special=True, ends=False, begin=True)
text: str = m.detokenize(np.array(ids))
st: State = m.reset(m.init_state())
logits: npt.NDArray[np.float32] = m.step(ids[0], st)
logits = st.prefill(ids, out=logits)
with st.clone() as other, m.batch(2) as batch:
    room: Batch = batch
    rows: npt.NDArray[np.float32] = batch.step([st, other], (1, 2))
sampler: Sampler = m.sampler(seed=1, top_k=0, logit_bias={1: -1.0})
saved: bytes = st.save(sampler)
st = m.load_state(saved, sampler)
generation: Generation = m.generate(b"bytes", max_tokens=None, stop=["a", "b"], temperature=0.5)
for piece in generation:
    text += piece
try:
    m.close()
except SunnyNetError as error:
    code: str = error.code
    status: int = error.status

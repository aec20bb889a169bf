"""Reads GGUF files with the gguf package: the tensors as it sees them, decoded by it.

One line of JSON per file named on the command line: {"tensors": [{"name", "shape" (fastest
first), "type", "sha256" of the values as little-endian float32}, ...]}.
"""
import hashlib
import json
import sys

from gguf import GGUFReader
from gguf.quants import dequantize


def describe(tensor):
    values = dequantize(tensor.data, tensor.tensor_type).astype("<f4")
    return {
        "name": tensor.name,
        "shape": [int(n) for n in tensor.shape],
        "type": int(tensor.tensor_type),
        "sha256": hashlib.sha256(values.tobytes()).hexdigest(),
    }


for path in sys.argv[1:]:
    print(json.dumps({"tensors": [describe(tensor) for tensor in GGUFReader(path).tensors]}))

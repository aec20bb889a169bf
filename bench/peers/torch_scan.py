"""torch_scan.py PACKAGE N T: the origin's block scan under PyTorch on one thread, B = 1. Prints
JSON: seconds of CPU time of each kernel, the median of several samples. The numbers are in
the ranges of bench/recur.c: the decays decide how long the origin's blocks may be."""
import json
import statistics
import sys
import time

sys.path.insert(0, sys.argv[1])
import torch  # noqa: E402
from sunnynet.ops import gated_scan, logspace_scan  # noqa: E402

ROUNDS = 11
FEWEST = 3
SAMPLE = 0.01  # seconds of one sample, at least
BUDGET = 1.1   # seconds of all samples of a kernel, about

N, T = int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
torch.set_num_interop_threads(1)
torch.manual_seed(1)


def numbers(*shape, low=-1.0, high=1.0):
    return torch.rand(1, *shape) * (high - low) + low


def seconds(run, repeat):
    start = time.process_time()
    for _ in range(repeat):
        run()
    return (time.process_time() - start) / repeat


def median(run):
    """Of seconds; the first call does not count."""
    seconds(run, 1)
    once = seconds(run, 1)
    rounds = max(FEWEST, min(ROUNDS, int(BUDGET / once)))
    samples = [seconds(run, int(SAMPLE / once) + 1) for _ in range(rounds)]
    return statistics.median(samples)


def both(name, scan, a, b, s0):
    with torch.inference_mode():
        forward = median(lambda: scan(a, b, s0))
    inputs = [x.clone().requires_grad_() for x in (a, b, s0)]
    y, _ = scan(*inputs)
    dy = numbers(T, N)
    reverse = median(lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True))
    return {f"{name} forward": forward, f"{name} reverse": reverse}


values = numbers(T, N, low=0.8), numbers(T, N), numbers(N)
print(json.dumps({
    **both("fma", gated_scan, *values),
    **both("gated", lambda a, b, s0: logspace_scan(b, a, s0), *values),
}))

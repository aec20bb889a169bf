"""torch_step.py PACKAGE CONFIG THREADS STEPS: the origin's own model under PyTorch, one token after
the other; CONFIG is JSON. Prints tokens a second, the best of two after one that does not count."""
import json
import sys
import time

sys.path.insert(0, sys.argv[1])
import torch  # noqa: E402
from sunnynet.model import SunnyConfig, SunnyNet  # noqa: E402

torch.set_num_threads(int(sys.argv[3]))
torch.manual_seed(1)
model = SunnyNet(SunnyConfig(**json.loads(sys.argv[2]))).eval()
steps = int(sys.argv[4])
best = 0.0
with torch.inference_mode():
    for run in range(3):
        state = model.init_state(1)
        start = time.monotonic()
        for i in range(steps):
            _, state = model.forward_step(torch.tensor([37 * i + 1]), state)
        if run > 0:
            best = max(best, steps / (time.monotonic() - start))
print(best)

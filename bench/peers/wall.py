"""python3 wall.py PROGRAM ARGUMENT...: runs it, its output unseen; prints JSON with the wall time
from before its start to its end in ms and the most memory that was resident in MiB."""
import json
import os
import sys
import time

null = os.open(os.devnull, os.O_RDWR)
start = time.monotonic()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[
    (os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1),
    (os.POSIX_SPAWN_DUP2, null, 2)])
_, status, usage = os.wait4(child, 0)
milliseconds = (time.monotonic() - start) * 1000
if status != 0:
    sys.exit(f"wall.py: {sys.argv[1]}: status {status}")
print(json.dumps({"ms": milliseconds, "mib": usage.ru_maxrss / 1024}))

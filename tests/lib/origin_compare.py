"""Every function of our compatibility libraries against the seed's own libraries.

python origin_compare.py OURS THEIRS BLOBS SIZES: two folders of sunnynet_*.so, a folder of blobs
named after the libraries (rwkv7, rwkv7.int4, ...), the sizes of the blob `model`. Both libraries of
a name are loaded side by side. Prints one line a comparison: what, largest difference relative to
the largest value (at least 1), bound. Ends with 1 if a bound is passed.

The bounds: 0 where the operations are the same and exact; else what float32 sums in another order,
with fused products and another exp() can differ by, some hundred ulp over whole models; INT4 models
round activations to 8 bits, where such a difference can become a whole step; sn_load_h rounds
weights to 16 bits in the seed and not in ours.
"""
import ctypes
import sys
from pathlib import Path

import numpy as np

OURS, THEIRS, BLOBS = (Path(name) for name in sys.argv[1:4])
SIZES = [int(n) for n in sys.argv[4].split(",")]
EXACT, ROUNDING, SUMS, MODEL, INT4, HALF = 0.0, 1e-6, 1e-5, 5e-5, 2e-2, 5e-3
rng = np.random.default_rng(7)
failed = False


def report(what, ours, theirs, bound):
    global failed
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    difference = float(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))
    good = difference <= bound and np.isfinite(ours).all() and ours.any()
    failed |= not good
    print(f"{what:42} {difference:.1e} {bound:.0e}{'' if good else '  TOO MUCH'}")


def both(name):
    return [ctypes.CDLL(str(folder / f"sunnynet_{name}.so")) for folder in (OURS, THEIRS)]


def pointer(x):
    return None if x is None else ctypes.c_void_p(x.ctypes.data)


def call(library, name, *args):
    """Arrays go as pointers, numbers as int."""
    function = getattr(library, name)
    function.restype = None
    function(*[arg if isinstance(arg, int) else pointer(arg) for arg in args])


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def unit(*shape):
    return rng.random(shape, dtype=np.float32)


def compare(libraries, name, given, made, bound, what=None):
    """given(outputs) are the arguments; `made` the outputs, which each side gets a copy of."""
    results = []
    for library in libraries:
        outputs = [x.copy() for x in made]
        call(library, name, *given(*outputs))
        results.append(outputs)
    for i, (ours, theirs) in enumerate(zip(*results)):
        report(f"{what or name} [{i}]", ours, theirs, bound)


# ---- arrays -------------------------------------------------------------------------------------

def compare_runtime():
    libraries = both("runtime")
    for B, T, N, gated in [(2, 33, 70, 0), (3, 17, 37, 1), (1, 64, 512, 0), (4, 3, 640, 1)]:
        a, b, s0, dout = unit(B, T, N), normal(B, T, N), normal(B, N), normal(B, T, N)
        out, like = np.empty_like(a), f"{B}x{T}x{N} gated {gated}"
        compare(libraries, "sn_recur_scan", lambda out, send:
                (a, b, s0, out, send, B, T, N, gated), [out, np.empty_like(s0)], ROUNDING,
                f"scan {like}")
        call(libraries[1], "sn_recur_scan", a, b, s0, out, s0.copy(), B, T, N, gated)
        compare(libraries, "sn_recur_bwd", lambda da, db, ds0:
                (a, b, s0, out, dout, da, db, ds0, B, T, N, gated),
                [np.empty_like(a), np.empty_like(a), np.empty_like(s0)], SUMS, f"scan back {like}")
        compare(libraries, "sn_recur_step", lambda s:
                (a[:, 0].copy(), b[:, 0].copy(), s, B, N, gated), [s0], ROUNDING, f"step {like}")
    compare_rank1(libraries)
    compare_int8(libraries)
    for library in libraries:
        library.sn_set_threads(2)
        assert library.sn_threads() == 2


def compare_rank1(libraries):
    H, R, C = 3, 19, 37
    terms = {"w": unit(H, C), "u": normal(H, C), "v": normal(H, R), "k": normal(H, C),
             "b": normal(H, C), "r": normal(H, C)}
    for given in ["wuvkbr", "uvkbr", "vkr", "wr", "wuvkb", "kbr", "wub", "wuvbr", "vkbr"]:
        w, u, v, k, b, r = (terms[name] if name in given else None for name in "wuvkbr")
        outputs = [normal(H, R, C)] + ([np.empty((H, R), np.float32)] if r is not None else [])
        # What the seed reads of its scratch without u is whatever the caller left there.
        scratch = np.zeros((H, R), np.float32)
        compare(libraries, "sn_mat_scan", lambda S, y=None:
                (S, w, u, v, k, b, r, y, scratch, H, R, C), outputs, SUMS, f"mat_scan {given}")


def compare_int8(libraries):
    B, N = 3, 70
    for block in (0, 8, 33, 64):
        blocks = -(-N // block) if block else 1
        q, scale = np.empty((B, N), np.int8), np.empty((B, blocks), np.float32)
        x = normal(B, N)
        compare(libraries, "sn_quant_i8", lambda q, scale: (x, q, scale, B, N, block), [q, scale],
                EXACT, f"quant_i8 {block}")
        call(libraries[1], "sn_quant_i8", x, q, scale, B, N, block)
        compare(libraries, "sn_dequant_i8", lambda x: (q, scale, x, B, N, block),
                [np.empty_like(x)], EXACT, f"dequant_i8 {block}")


def compare_quant():
    libraries = both("quant")
    for rows, N, block in [(5, 256, 64), (70, 1024, 32), (33, 768, 128), (3, 80, 16), (9, 64, 0)]:
        group = block or 64
        x, W = normal(N), normal(rows, N)
        q, scale = np.empty((rows, N // 2), np.uint8), np.empty((rows, N // group), np.float32)
        like = f"{rows}x{N} by {block}"
        compare(libraries, "sn_quant_i4", lambda q, scale: (W, q, scale, rows, N, block),
                [q, scale], EXACT, f"quant_i4 {like}")
        call(libraries[1], "sn_quant_i4", W, q, scale, rows, N, block)
        compare(libraries, "sn_dequant_i4", lambda x: (q, scale, x, rows, N, block),
                [np.empty_like(W)], EXACT, f"dequant_i4 {like}")
        y = np.empty(rows, np.float32)
        compare(libraries, "sn_gemv_i4", lambda y: (y, x, q, scale, N, rows, block), [y], SUMS,
                f"gemv_i4 {like}")
        compare(libraries, "sn_gemv_f32", lambda y: (y, x, W, N, rows), [y], SUMS,
                f"gemv_f32 {like}")


def compare_kernels():
    libraries = both("kernels")
    B, T, D = 3, 21, 296
    q, delta, s0 = normal(B, T, 2 * D), unit(D), normal(B, D)
    p, nu, dout = unit(B, T, D), normal(B, T, D), normal(B, T, D)
    empty, row = np.empty_like(p), np.empty_like(s0)
    compare(libraries, "scan_f32", lambda out, send: (p, nu, s0, out, send, B, T, D), [empty, row],
            ROUNDING)
    out = empty.copy()
    call(libraries[1], "scan_f32", p, nu, s0, out, row, B, T, D)
    compare(libraries, "scan_bwd_f32", lambda dp, dnu, ds0:
            (p, nu, s0, out, dout, dp, dnu, ds0, B, T, D), [empty, empty, row], SUMS)
    compare(libraries, "core_fwd_f32", lambda states, u, p:
            (q, delta, s0, states, u, p, B, T, D), [empty, empty, empty], SUMS)
    states, u, gate = empty.copy(), empty.copy(), empty.copy()
    call(libraries[1], "core_fwd_f32", q, delta, s0, states, u, gate, B, T, D)
    compare(libraries, "core_bwd_f32", lambda dq, ddelta, ds0:
            (q, delta, s0, states, u, gate, dout, nu, dq, ddelta, ds0, B, T, D),
            [np.empty_like(q), normal(D), row], SUMS)
    compare(libraries, "step_core_f32", lambda s_new, u:
            (q[:, 0].copy(), delta, s0, s_new, u, B, D), [row, row], SUMS)
    for taps in (1, 2, 4):
        x, history, w = normal(B, D), normal(B, taps - 1, D), normal(taps, D)
        compare(libraries, "dw_step_f32", lambda acc: (x, history, w, acc, B, D, taps), [row],
                ROUNDING, f"dw_step {taps}")
    for library in libraries:
        library.sn_set_threads(2)


# ---- models -------------------------------------------------------------------------------------

class Model:
    """One handle of either side."""

    def __init__(self, library, prefix, load, *args):
        self.library, self.prefix = library, prefix
        for name in ("load", load):
            function = getattr(library, prefix + name)
            function.restype = ctypes.c_void_p
        self.handle = getattr(library, prefix + load)(*args)
        assert self.handle, f"{prefix}{load} failed"
        self.handle = ctypes.c_void_p(self.handle)
        self.vocab = getattr(library, prefix + "vocab")(self.handle)
        assert getattr(library, prefix + "ready")(self.handle) == 1

    def run(self, name, *args):
        function = getattr(self.library, self.prefix + name)
        function.restype = None
        function(self.handle, *[arg if isinstance(arg, int) else pointer(arg) for arg in args])

    def logits(self, tokens):
        """After a prefill, a step, a reset and the same step by step."""
        out = [np.empty(self.vocab, np.float32) for _ in range(3)]
        ids = np.asarray(tokens, np.int32)
        self.run("prefill", ids, len(tokens) - 1, out[0])
        self.run("step", int(tokens[-1]), out[1])
        self.run("reset")
        for token in tokens:
            self.run("step", int(token), out[2])
        return out

    def looks(self, name, count, width, *more):
        out = np.zeros(count * width, np.float32)
        self.run("reset")
        self.run("step", 3, np.empty(self.vocab, np.float32))
        self.run(name, 5, *more, out)
        return out

    def free(self):
        self.run("free")


def compare_model(name, prefix, blob, bound, load="load", sizes=()):
    sides = [Model(library, prefix, load, str(BLOBS / blob).encode(), *sizes)
             for library in both(name)]
    what = f"{blob}{'' if load == 'load' else ' ' + load}"
    tokens = rng.integers(0, sides[0].vocab, 20).tolist()
    assert sides[0].vocab == sides[1].vocab
    logits = [side.logits(tokens) for side in sides]
    for which, ours, theirs in zip(("prefill", "step", "steps"), *logits):
        report(f"{what}: {which}", ours, theirs, bound)
    return sides


def compare_dbg(sides, what, bound, count=1, layers=(0, 1, 2, -1)):
    D = 64
    for layer in layers:
        seen = [side.looks("dbg", count, D, layer).reshape(count, D) for side in sides]
        for i in range(count):
            report(f"{what}: dbg {layer} [{i}]", seen[0][i], seen[1][i], bound)


def compare_probe(sides, what, widths, bound):
    for layer in (0, 2):
        for stage, width in enumerate(widths):
            seen = [side.looks("probe", 1, width, layer, stage) for side in sides]
            report(f"{what}: probe {layer}, {stage}", *seen, bound)


def compare_threads(sides):
    for side in sides:
        if side.prefix != "sn_rk_":
            getattr(side.library, side.prefix + "set_threads")(2)
            assert getattr(side.library, side.prefix + "get_threads")() == 2


def compare_models():
    for name, prefix in [("rwkv7", "sn_rk_"), ("deltanet", "sn_dn_"), ("gla", "sn_gla_"),
                         ("hgrn2", "sn_hg_"), ("mamba2", "sn_m2_")]:
        for blob, bound in [(name, MODEL), (f"{name}.int4", INT4)]:
            if not (BLOBS / blob).exists():
                continue
            sides = compare_model(name, prefix, blob, bound)
            if blob == "rwkv7":
                compare_dbg(sides, name, bound, 9, (0, 1, 2))
            elif blob == name:
                compare_dbg(sides, name, bound)
            if blob == "gla":
                compare_probe(sides, name, [64, 32, 32, 64, 32, 64, 64, 64, 64, 64], bound)
            if blob == "hgrn2":
                compare_probe(sides, name, [64] * 10, bound)
            compare_threads(sides)
            for side in sides:
                side.free()
    for load, bound in [("load", MODEL), ("load_h", HALF)]:
        sides = compare_model("model", "sn_", "model", bound, load, SIZES)
        compare_threads(sides)
        assert all(side.library.sn_recommended_threads() >= 1 for side in sides)
        for side in sides:
            side.free()
    ours = both("model")[0]
    ours.sn_load.restype = ctypes.c_void_p
    wrong = [SIZES[0] + 1, *SIZES[1:]]
    assert ours.sn_load(str(BLOBS / "model").encode(), *wrong) is None
    assert ours.sn_load(str(BLOBS / "gla").encode(), *SIZES) is None


def check_refusals():
    """What the seed does not check, and ours must survive."""
    library = both("rwkv7")[0]
    model = Model(library, "sn_rk_", "load", str(BLOBS / "rwkv7").encode())
    logits = np.zeros(model.vocab, np.float32)
    model.run("step", model.vocab, logits)
    assert np.isnan(logits).all()
    model.run("dbg", 1, 99, np.zeros(9 * 64, np.float32))
    model.run("dbg", -1, 0, np.zeros(9 * 64, np.float32))
    model.free()
    for blob in ("gla", "absent"):
        assert library.sn_rk_load(str(BLOBS / blob).encode()) in (0, None)
    quant = both("quant")[0]
    y, x = np.zeros(4, np.float32), normal(100)
    call(quant, "sn_gemv_i4", y, x, np.zeros(200, np.uint8), x, 100, 4, 64)
    assert np.isnan(y).all()


compare_runtime()
compare_quant()
compare_kernels()
compare_models()
check_refusals()
sys.exit(1 if failed else 0)

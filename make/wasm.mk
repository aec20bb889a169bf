# ---- WebAssembly modules and the JavaScript package --------------------------------------------

# Five ES modules from one source; bindings/js/variants.mjs takes the best that an engine runs. The
# compiler is the emcc on PATH if it is recent enough, else one in a folder of ours.
WASM := build/wasm
EMCC := $(WASM)/emcc
NPM  := build/npm-package

EM_VARIANTS := scalar simd relaxed simd-threads relaxed-threads

ISAS_WASM_scalar          := scalar
ISAS_WASM_simd            := scalar wasm128
ISAS_WASM_relaxed         := scalar wasm128 wasm-relaxed
ISAS_WASM_simd-threads    := $(ISAS_WASM_simd)
ISAS_WASM_relaxed-threads := $(ISAS_WASM_relaxed)

EM_CFLAGS := -O3 -std=c11 $(SN_WARN) -fno-fast-math -ffp-contract=off -fno-math-errno \
             -Icore -Isimd -MMD -MP
# The glue is given its module by us in pages and Node alike, so it needs no code for Node: that
# would import Node's modules, which bundlers for pages stumble over.
EM_LDFLAGS := -O3 --no-entry -sMODULARIZE -sEXPORT_ES6 -sENVIRONMENT=web,worker -sFILESYSTEM=0 \
              -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sSTACK_SIZE=256KB \
              -sEXPORTED_RUNTIME_METHODS=wasmMemory -sEXPORTED_FUNCTIONS=@bindings/js/exports.txt
# The glue of threads is given its workers, too (threads.post.js), so it need not know its own
# address. Strict 2: who wants more threads than there are workers is refused; others would be
# started by the event loop, which a call that computes never lets run.
EM_THREADS := -pthread -Wno-pthreads-mem-growth -sDEFAULT_PTHREAD_STACK_SIZE=256KB \
              -sPTHREAD_POOL_SIZE_STRICT=2 -sUSE_ES6_IMPORT_META=0 \
              --post-js bindings/js/threads.post.js

# Objects lie in two folders, obj and obj-threads; $(1) is what stands behind "obj".
em_kind = $(if $(filter %-threads,$(1)),-threads)
em_obj = $(patsubst %.c,$(WASM)/obj$(1)/%.o,$(2))
em_backend = $(WASM)/obj$(1)/simd/backend_$(subst -,_,$(2)).o
em_core = $(call em_obj,$(1),$(CORE_SRC) bindings/js/glue.c)
EM_MODULES := $(EM_VARIANTS:%=$(WASM)/sunnynet-%.mjs)
EM_OBJ := $(EM_VARIANTS:%=$(WASM)/obj/dispatch_%.o)
JS_FILES := $(wildcard bindings/js/*.mjs) bindings/js/sunnynet.d.ts bindings/js/package.json \
            bindings/js/README.md LICENSE

.PHONY: wasm js check-js

wasm: $(EM_MODULES) ## ES modules with the C library in WebAssembly, into build/wasm

$(EMCC): FORCE
	@mkdir -p $(@D)
	$(Q)folder=$$(tools/setup-emscripten.sh) && \
	    printf '#!/bin/sh\nexec "%s/emcc" "$$@"\n' "$$folder" > $@.new && chmod +x $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

EM_FLAGS := $(EM_CFLAGS) $(EM_LDFLAGS) $(EM_THREADS) $(ISA_wasm128) $(ISA_wasm-relaxed)
$(WASM)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(EM_FLAGS)' | cmp -s - $@ || echo '$(EM_FLAGS)' > $@

em_compile = $(EMCC) $(EM_CFLAGS)

# The objects of one folder.
define EM_KIND_RULES
EM_OBJ += $(call em_core,$(1)) $(foreach isa,$(ISAS_WASM_relaxed),$(call em_backend,$(1),$(isa)))

$(call em_obj,$(1),$(SMALL_SRC)): EM_CFLAGS += -Os

$(WASM)/obj$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(call say,EMCC)
	$$(Q)$$(em_compile) $(2) -c -o $$@ $$<

$(WASM)/obj$(1)/simd/backend_wasm128.o: EM_CFLAGS += $(ISA_wasm128)
$(WASM)/obj$(1)/simd/backend_wasm_relaxed.o: EM_CFLAGS += $(ISA_wasm-relaxed)
endef
$(eval $(call EM_KIND_RULES,,))
$(eval $(call EM_KIND_RULES,-threads,-pthread))

$(WASM)/obj/dispatch_%.o: simd/dispatch.c
	@mkdir -p $(@D)
	$(call say,EMCC)
	$(Q)$(em_compile) $(if $(call em_kind,$*),-pthread) $(call have,$(ISAS_WASM_$*)) -c -o $@ $<

$(EM_OBJ): Makefile make/wasm.mk $(EMCC) $(WASM)/flags

define EM_MODULE_RULE
$(WASM)/sunnynet-$(1).mjs: $(call em_core,$(2)) $(WASM)/obj/dispatch_$(1).o \
        $(foreach isa,$(ISAS_WASM_$(1)),$(call em_backend,$(2),$(isa))) bindings/js/exports.txt \
        $(if $(2),bindings/js/threads.post.js)
	$$(call say,EMCC)
	$$(Q)$$(EMCC) $$(EM_LDFLAGS) $(if $(2),$$(EM_THREADS)) -o $$@ $$(filter %.o,$$^)
	$$(Q)chmod -x $$(@:.mjs=.wasm)
endef
$(foreach variant,$(EM_VARIANTS),$(eval \
    $(call EM_MODULE_RULE,$(variant),$(call em_kind,$(variant)))))

js: $(NPM)/package.json ## the npm package "sunnynet" as a folder, build/npm-package

$(NPM)/package.json: $(JS_FILES) $(EM_MODULES)
	$(call say,NPM)
	$(Q)rm -rf $(NPM) && mkdir -p $(NPM)
	$(Q)cp $(JS_FILES) $(EM_MODULES) $(EM_MODULES:.mjs=.wasm) $(NPM)
	@touch $@

check-js: js js-tools ## the JavaScript package in Node and the TypeScript compiler
	$(Q)$(NODE_TEST) $(sort $(wildcard tests/js-*.test.mjs))

-include $(EM_OBJ:.o=.d)

# ---- speed of the matrix products ---------------------------------------------------------------

.PHONY: bench-kernels

$(BUILD)/bench/kernels: bench/kernels.c $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(compile) $(LDFLAGS) -o $@ $(filter-out %.h,$^) $(PTHREAD)

# The same of a back end's operations without memory: build/native/bench/peak-avx2
$(BUILD)/bench/peak-%: bench/peak.c $(wildcard simd/*.h simd/*.inl simd/backend_*.c) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(compile) $(ISA_$*) '-DSN_BACKEND="backend_$(subst -,_,$*).c"' -o $@ $<

bench-own-kernels: $(BUILD)/bench/kernels $(addprefix $(BUILD)/bench/peak-,$(ISAS))

bench-kernels: $(BUILD)/bench/kernels ## measures the matrix products of this CPU's back ends; KERNEL_ARGS
	$(Q)$< $(KERNEL_ARGS)

# For WebAssembly: make BUILD=build/wasi build/wasi/bench/kernels.wasm
$(BUILD)/bench/kernels.wasm: bench/kernels.c $(CORE_OBJ) $(foreach isa,$(ISAS),$(call backend,$(isa))) \
                             $(BUILD)/simd/dispatch-sunnynet-relaxed.o
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(compile) $(WASI_LINK) -s -o $@ $^

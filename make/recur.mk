# ---- speed of the recurrence kernels ----------------------------------------------------------

.PHONY: bench-recur bench-peers

$(BUILD)/bench/recur: bench/recur.c $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(compile) $(LDFLAGS) -o $@ $^ $(PTHREAD) -ldl

bench-recur: $(BUILD)/bench/recur ## measures the recurrence kernels against the machine's memory
	$(Q)SN_BENCH_RECUR=$< node bench/recur.mjs

# The seed's package, its kernels compiled by the flags that its own loader uses.
PEER := build/peers/sunnynet_cx-0.3.0
PEER_CFLAGS := -O3 -mavx2 -mfma -march=x86-64-v3 -funroll-loops -fopenmp -fPIC -shared -std=c11

$(PEER).tar.gz:
	@mkdir -p $(@D)
	$(Q)python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
	    --dest $(@D) sunnynet-cx==0.3.0

$(PEER)/unpacked: $(PEER).tar.gz
	$(Q)tar -xzf $< -C $(<D)
	@touch $@

PEER_LIBRARIES := $(PEER)/sunnynet_runtime.so $(PEER)/sunnynet_quant.so
$(PEER)/sunnynet_runtime.so: PEER_SRC := recur.c
$(PEER)/sunnynet_quant.so: PEER_SRC := quant.c
$(PEER_LIBRARIES): $(PEER)/unpacked
	$(Q)gcc $(PEER_CFLAGS) -o $@ $(PEER)/sunnynet/runtime/$(PEER_SRC)

bench-peers: $(BUILD)/bench/recur $(PEER_LIBRARIES) ## the same in turns with the seed's; downloads it
	$(Q)SN_BENCH_RECUR=$< node bench/recur.mjs $(PEER)

# ---- the seed's libraries by their names -------------------------------------------------------

# build/native/compat/sunnynet_abi.so and the others, for programs (the seed's Python package) that
# look for these files and symbols. Each holds the whole core; docs/abi.md says what they are for.
COMPAT_SYMBOLS_abi      := sn_abi_*
COMPAT_SYMBOLS_rwkv7    := sn_rk_*
COMPAT_SYMBOLS_deltanet := sn_dn_*
COMPAT_SYMBOLS_mamba2   := sn_m2_*
COMPAT_SYMBOLS_gla      := sn_gla_*
COMPAT_SYMBOLS_hgrn2    := sn_hg_*
COMPAT_SYMBOLS_model    := sn_load sn_load_h sn_free sn_reset sn_step sn_prefill sn_vocab sn_ready \
                           sn_set_threads sn_get_threads sn_recommended_threads
COMPAT_SYMBOLS_runtime  := sn_set_threads sn_threads sn_recur_scan sn_recur_bwd sn_recur_step \
                           sn_mat_scan sn_quant_i8 sn_dequant_i8
COMPAT_SYMBOLS_quant    := sn_quant_i4 sn_dequant_i4 sn_gemv_i4 sn_gemv_f32
COMPAT_SYMBOLS_kernels  := sn_set_threads scan_f32 scan_bwd_f32 core_fwd_f32 core_bwd_f32 \
                           dw_step_f32 step_core_f32

COMPAT := $(BUILD)/compat
COMPAT_NAMES := abi rwkv7 deltanet mamba2 gla hgrn2 model runtime quant kernels
COMPAT_LIBRARIES := $(COMPAT_NAMES:%=$(COMPAT)/sunnynet_%.so)
COMPAT_OBJ := $(call obj,$(sort $(wildcard compat/*.c)))

.PHONY: compat

compat: $(COMPAT_LIBRARIES) ## the seed's libraries under their names, into build/native/compat

$(COMPAT_OBJ): Makefile $(BUILD)/flags

# The core and inside*.c as one object, in which only public names and those of inside.h are global.
$(COMPAT)/core.o: $(LIB_OBJ) $(call obj,$(sort $(wildcard compat/inside*.c)))
	$(call say,LD)
	$(Q)$(CC) -r -nostdlib -o $@.tmp $^
	$(Q)$(OBJCOPY) --localize-hidden $@.tmp $@
	$(Q)rm -f $@.tmp

# sunnynet_abi is the core with nothing added.
$(COMPAT)/sunnynet_abi.so: $(COMPAT)/core.o
$(foreach name,$(filter-out abi,$(COMPAT_NAMES)),$(eval \
    $(COMPAT)/sunnynet_$(name).so: $(COMPAT)/$(name).o $(COMPAT)/core.o))

$(COMPAT_LIBRARIES): $(COMPAT)/sunnynet_%.so:
	$(call say,LD)
	$(Q)echo '{ global: $(COMPAT_SYMBOLS_$*:%=%;) local: *; };' > $(COMPAT)/$*.map
	$(Q)$(CC) -shared -Wl,-z,defs -Wl,--version-script=$(COMPAT)/$*.map $(LDFLAGS) -o $@ $^ \
	    $(PTHREAD)

-include $(COMPAT_OBJ:.o=.d)

# ---- the seed's package, to be run on our libraries and compared with --------------------------

# Alone: its torch is not needed for what the tests use and is never installed here. pip builds its
# libraries from source; its tests are only in the archive.
ORIGIN := build/origin
ORIGIN_TOOLS := numpy==2.2.6 pytest==8.4.2 iniconfig==2.3.1 packaging==25.0 pluggy==1.6.0 \
                pygments==2.19.2
ORIGIN_ALONE := sunnynet-cx==0.3.0
ORIGIN_STAMP := $(ORIGIN)/$(subst $() ,+,$(ORIGIN_TOOLS) $(ORIGIN_ALONE))

.PHONY: origin

origin: $(ORIGIN_STAMP)

$(ORIGIN_STAMP):
	$(Q)rm -rf $(ORIGIN)
	$(Q)python3 -m venv $(ORIGIN)
	$(Q)$(ORIGIN)/bin/pip install --quiet --disable-pip-version-check --no-deps $(ORIGIN_TOOLS)
	$(Q)$(ORIGIN)/bin/pip download --quiet --disable-pip-version-check --no-deps \
	    --no-binary :all: --dest $(ORIGIN)/archive $(ORIGIN_ALONE)
	$(Q)tar -xzf $(ORIGIN)/archive/*.tar.gz -C $(ORIGIN)/archive --strip-components=1
	$(Q)$(ORIGIN)/bin/pip install --quiet --disable-pip-version-check --no-deps \
	    $(ORIGIN)/archive/*.tar.gz
	@touch $@

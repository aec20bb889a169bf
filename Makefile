# SunnyNet. `make help` lists the targets. Everything is built under build/<target>/.

VERSION := 0.1.0
SOVERSION := 0
BUILD ?= build/native

ifeq ($(origin CC),default)
CC := gcc
endif
# `make V=1` shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1) $@")
CFLAGS ?= -O3 -g
LDFLAGS ?=

# What correctness needs stands after the user's CFLAGS and survives -Ofast -march=native:
# no contraction to FMA, no reassociation, no instruction set beyond the baseline but in the
# back ends' own objects.
SN_WARN := -Wall -Wextra -Wshadow -Wundef -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
SN_CFLAGS := -std=c11 $(SN_WARN) -fvisibility=hidden -fPIC -fno-fast-math -ffp-contract=off \
             -fno-math-errno -fno-lto -Icore -Isimd -MMD -MP

ARCH := $(shell $(CC) -dumpmachine | cut -d- -f1)

# Each back end's own instruction set, in one list. No -mfma anywhere.
BASE_x86_64       := -march=x86-64 -mtune=generic
ISA_scalar        :=
ISA_avx2          := -mavx2 -mf16c
ISA_avx2-vnni     := $(ISA_avx2) -mavxvnni
ISA_avx512        := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mf16c -mprefer-vector-width=512
ISA_avx512-vnni   := $(ISA_avx512) -mavx512vnni

ISAS_x86_64 := scalar avx2 avx2-vnni avx512 avx512-vnni
ISAS := $(or $(ISAS_$(ARCH)),scalar)
BASE := $(BASE_$(ARCH))

CORE_SRC := $(sort $(wildcard core/*.c core/*/*.c))
SIMD_SRC := simd/cpu.c simd/fpenv.c
CLI_SRC  := $(sort $(wildcard wasi/*.c))
TEST_SRC := $(sort $(wildcard tests/c/*.c))

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
CORE_OBJ := $(call obj,$(CORE_SRC) $(SIMD_SRC))
BACKEND_OBJ := $(foreach isa,$(ISAS),$(BUILD)/simd/backend_$(subst -,_,$(isa)).o)
DISPATCH_OBJ := $(BUILD)/simd/dispatch.o
CLI_OBJ := $(call obj,$(CLI_SRC))
TESTS := $(patsubst tests/c/%.c,$(BUILD)/tests/%,$(TEST_SRC))
LIBS := -pthread -lm

.PHONY: all run test lib help clean bench check-layers check-nofma compile-tests
.DELETE_ON_ERROR:

all: $(BUILD)/sunnynet $(BUILD)/libsunnynet.so $(BUILD)/libsunnynet.a

# ---- objects ---------------------------------------------------------------------------------

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CFLAGS) $(SN_CFLAGS) $(BASE) -c -o $@ $<

# Only the back ends get their instruction set; the scalar one is optimised for size of code,
# its loops over 16 lanes gain nothing from -O3.
define BACKEND_RULE
$(BUILD)/simd/backend_$(subst -,_,$(1)).o: simd/backend_$(subst -,_,$(1)).c
	@mkdir -p $$(@D)
	$$(call say,CC)
	$$(Q)$$(CC) $$(CFLAGS) $$(SN_CFLAGS) $$(BASE) $$(ISA_$(1)) -c -o $$@ $$<
endef
$(foreach isa,$(ISAS),$(eval $(call BACKEND_RULE,$(isa))))

$(BUILD)/libsunnynet.a: $(CORE_OBJ) $(BACKEND_OBJ) $(DISPATCH_OBJ)
	$(call say,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/libsunnynet.so: $(CORE_OBJ) $(BACKEND_OBJ) $(DISPATCH_OBJ)
	$(call say,LD)
	$(Q)$(CC) -shared -Wl,-soname,libsunnynet.so.$(SOVERSION) -Wl,-z,defs $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/sunnynet: $(CLI_OBJ) $(BUILD)/libsunnynet.a
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/tests/%: $(BUILD)/tests/c/%.o $(BUILD)/libsunnynet.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

-include $(patsubst %.o,%.d,$(CORE_OBJ) $(BACKEND_OBJ) $(DISPATCH_OBJ) $(CLI_OBJ)) $(wildcard $(BUILD)/tests/c/*.d)

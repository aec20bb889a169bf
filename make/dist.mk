# ---- release archives ------------------------------------------------------------------------

# Cross-built by zig, which brings every system's C library: sunnynet-VERSION-SYSTEM.tar.gz or .zip
# in build/dist, the same bytes each time. Its caches stay in build/zig.
ZIG_PACKAGE := ziglang==0.17.1
ZIG_STAMP := build/zig/$(ZIG_PACKAGE)
ZIG := build/zig/zig
export ZIG_GLOBAL_CACHE_DIR := $(CURDIR)/build/zig/cache
export ZIG_LOCAL_CACHE_DIR := $(CURDIR)/build/zig/cache

DIST := build/dist
DIST_SYSTEMS := linux-x86_64 linux-aarch64 macos-arm64 macos-x86_64 windows-x86_64

# The oldest system each runs on: glibc 2.17 (2012), macOS 11, Windows 10.
ZIG_TARGET_linux-x86_64   := x86_64-linux-gnu.2.17
ZIG_TARGET_linux-aarch64  := aarch64-linux-gnu.2.17
ZIG_TARGET_macos-arm64    := aarch64-macos.11.0
ZIG_TARGET_macos-x86_64   := x86_64-macos.11.0
ZIG_TARGET_windows-x86_64 := x86_64-windows-gnu

WHEEL_PLATFORM_linux-x86_64   := manylinux_2_17_x86_64.manylinux2014_x86_64
WHEEL_PLATFORM_linux-aarch64  := manylinux_2_17_aarch64.manylinux2014_aarch64
WHEEL_PLATFORM_macos-arm64    := macosx_11_0_arm64
WHEEL_PLATFORM_macos-x86_64   := macosx_11_0_x86_64
WHEEL_PLATFORM_windows-x86_64 := win_amd64

cpu_of = $(subst arm64,aarch64,$(lastword $(subst -, ,$(1))))
os_of = $(firstword $(subst -, ,$(1)))

# zig names processors in its own way; flags of single instruction sets are clang's.
ZIG_CPU_x86_64 := -mcpu=x86_64
ZIG_CPU_aarch64 := -mcpu=generic
ZIG_ISA_neon-dotprod := -mcpu=generic+v8_2a+dotprod
ZIG_ISA_neon-i8mm := -mcpu=generic+v8_2a+dotprod+i8mm
zig_isa = $(or $(ZIG_ISA_$(1)),$(ISA_$(1)))

DIST_CFLAGS := -O3 -std=c11 $(SN_WARN) -fvisibility=hidden -fno-fast-math -ffp-contract=off \
               -fno-math-errno -fno-lto -g0 -Icore -Isimd -MMD -MP
DIST_CFLAGS_linux := -fPIC
DIST_CFLAGS_windows := -DSN_BUILD_SHARED

# What the library is called, what programs link with, and how it is linked.
SHARED_linux    := lib/libsunnynet.so.$(VERSION)
SHARED_macos    := lib/libsunnynet.$(VERSION).dylib
SHARED_windows  := bin/sunnynet.dll
SONAME_linux    := libsunnynet.so.$(SOVERSION)
SONAME_macos    := @rpath/libsunnynet.$(SOVERSION).dylib
DIST_LINK_linux := -Wl,-soname,$(SONAME_linux) -Wl,-z,defs -pthread
DIST_LINK_macos := -Wl,-install_name,$(SONAME_macos)
# /Brepro: a hash in the place of the time.
DIST_LINK_windows := -Wl,/Brepro -Wl,--out-implib=$(DIST)/windows-x86_64/sunnynet.lib
DIST_LIBS_linux   := -pthread -lm
DIST_LIBS_windows := -Wl,/Brepro
PACKED_linux    := tar.gz
PACKED_macos    := tar.gz
PACKED_windows  := zip
WHEEL_NAME_linux   := libsunnynet.so
WHEEL_NAME_macos   := libsunnynet.dylib
WHEEL_NAME_windows := sunnynet.dll

.PHONY: dist check-dist zig $(DIST_SYSTEMS:%=dist-%) $(DIST_SYSTEMS:%=wheel-%)

dist: $(DIST)/SHA256SUMS ## release archives and wheels for Linux, macOS and Windows, into build/dist

check-dist: ## checks the archives of all systems; make test looks at two
	$(Q)SN_DIST=all $(NODE_TEST) tests/dist.test.mjs

zig: $(ZIG_STAMP)

$(ZIG_STAMP):
	$(Q)python3 -m venv build/zig
	$(Q)build/zig/bin/pip install --quiet --disable-pip-version-check $(ZIG_PACKAGE)
	$(Q)ln -sf $$(build/zig/bin/python -c 'import ziglang; print(ziglang.__path__[0])')/zig $(ZIG)
	@touch $@

# $(1): the system. Objects, the shared library, the command, the folder, the archive, the wheel.
dist_name = sunnynet-$(VERSION)-$(1)
dist_folder = $(DIST)/$(call dist_name,$(1))
dist_obj = $(patsubst %.c,$(DIST)/$(1)/%.o,$(2))
dist_backend = $(DIST)/$(1)/simd/backend_$(subst -,_,$(2)).o
dist_isas = $(ISAS_$(call cpu_of,$(1)))
dist_lib_obj = $(call dist_obj,$(1),$(CORE_SRC) simd/dispatch.c) \
               $(foreach isa,$(call dist_isas,$(1)),$(call dist_backend,$(1),$(isa)))
dist_cc = $(ZIG) cc -target $(ZIG_TARGET_$(1))
# Without -O zig would link, and first compile, what reports undefined behaviour.
dist_link = $(call dist_cc,$(1)) -O3 -s
dist_compile = $(call dist_cc,$(1)) $(DIST_CFLAGS) $(DIST_CFLAGS_$(call os_of,$(1)))
dist_exe = $(DIST)/$(1)/sunnynet$(if $(filter windows,$(call os_of,$(1))),.exe)
dist_shared = $(DIST)/$(1)/$(notdir $(SHARED_$(call os_of,$(1))))

define DIST_BACKEND_RULE
$(call dist_backend,$(1),$(2)): simd/backend_$(subst -,_,$(2)).c Makefile make/dist.mk $(ZIG_STAMP)
	@mkdir -p $$(@D)
	$$(call say,ZIG)
	$$(Q)$$(call dist_compile,$(1)) $(ZIG_CPU_$(call cpu_of,$(1))) $(call zig_isa,$(2)) -c -o $$@ $$<
endef

define DIST_RULES
# Linking is what makes zig compile the system's C library, some 400 files of Windows' one by one:
# this makes it do so while others compile ours.
$(DIST)/$(1)/runtime: make/dist.mk $(ZIG_STAMP)
	@mkdir -p $$(@D)
	$$(call say,ZIG)
	$$(Q)echo 'int main(void) { return 0; }' | $$(call dist_link,$(1)) -x c - -o $$@

$(DIST)/$(1)/%.o: %.c Makefile make/dist.mk $(ZIG_STAMP)
	@mkdir -p $$(@D)
	$$(call say,ZIG)
	$$(Q)$$(call dist_compile,$(1)) $(ZIG_CPU_$(call cpu_of,$(1))) $$(DIST_DEFINES) -c -o $$@ $$<

$(DIST)/$(1)/simd/dispatch.o: DIST_DEFINES := $(call have,$(call dist_isas,$(1)))
$(foreach isa,$(call dist_isas,$(1)),$(eval $(call DIST_BACKEND_RULE,$(1),$(isa))))

$(call dist_shared,$(1)): $(DIST)/$(1)/runtime $(call dist_lib_obj,$(1))
	$$(call say,ZIG)
	$$(Q)$$(call dist_link,$(1)) -shared -o $$@ $$(filter %.o,$$^) $(DIST_LINK_$(call os_of,$(1)))

$(call dist_exe,$(1)): $(DIST)/$(1)/runtime $(call dist_obj,$(1),$(CLI_SRC)) \
        $(if $(filter windows%,$(1)),$(call dist_shared,$(1)),$(call dist_lib_obj,$(1)))
	$$(call say,ZIG)
	$$(Q)$$(call dist_link,$(1)) -o $$@ $$(filter %.o,$$^) $(DIST_LIBS_$(call os_of,$(1))) \
	    $(if $(filter windows%,$(1)),$(DIST)/$(1)/sunnynet.lib)

dist-$(1): $(call dist_folder,$(1)).$(PACKED_$(call os_of,$(1)))
wheel-$(1): $(DIST)/$(1)/wheel

$(call dist_folder,$(1)).$(PACKED_$(call os_of,$(1))): $(call dist_exe,$(1)) \
        $(call dist_shared,$(1)) packaging/archive.py packaging/stage.sh make/dist.mk LICENSE \
        packaging/README.txt $(wildcard packaging/*.in) $(PUBLIC_HEADERS) $(BUNDLED_MODEL) \
        $(PACKAGING)/sunnynet.1
	$$(call say,DIST)
	$$(Q)sh packaging/stage.sh $(call dist_folder,$(1)) $(DIST)/$(1) $(call os_of,$(1)) $(VERSION) \
	    $(SOVERSION) $(PACKAGING)/sunnynet.1
	$$(Q)python3 packaging/archive.py $$@ $(call dist_folder,$(1))

$(DIST)/$(1)/wheel: $(PYTHON_FILES) $(call dist_shared,$(1)) $(PYTHON_STAMP)
	$$(call say,WHEEL)
	$$(call wheel,$(call dist_shared,$(1)),$(WHEEL_NAME_$(call os_of,$(1))),$(WHEEL_PLATFORM_$(1)),$(DIST))
	@touch $$@
endef
$(foreach system,$(DIST_SYSTEMS),$(eval $(call DIST_RULES,$(system))))

$(DIST)/SHA256SUMS: $(DIST_SYSTEMS:%=dist-%) $(DIST_SYSTEMS:%=wheel-%)
	$(Q)cd $(DIST) && sha256sum sunnynet-$(VERSION)-*.tar.gz sunnynet-$(VERSION)-*.zip \
	    sunnynet_runtime-$(VERSION)-*.whl > SHA256SUMS

-include $(wildcard $(DIST)/*/*/*.d $(DIST)/*/*/*/*.d)

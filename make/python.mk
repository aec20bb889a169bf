# ---- the Python package ----------------------------------------------------------------------

# A wheel with the shared library inside, built by pinned tools without a network of its own.
PYTHON := build/python
PYTHON_TOOLS := setuptools==80.9.0
PYTHON_STAMP := $(PYTHON)/tools/$(subst $() ,+,$(PYTHON_TOOLS))
PYTHON_FILES := $(wildcard bindings/python/*.* bindings/python/sunnynet_runtime/*.py) \
                bindings/python/sunnynet_runtime/py.typed LICENSE
PYTHON_WHEELS := $(PYTHON)/wheels

.PHONY: python

python: $(PYTHON_WHEELS)/stamp ## the Python package as a wheel, into build/python/wheels

$(PYTHON_STAMP):
	$(Q)python3 -m venv $(PYTHON)/tools
	$(Q)$(PYTHON)/tools/bin/pip install --quiet --disable-pip-version-check $(PYTHON_TOOLS)
	@touch $@

# $(call wheel,LIBRARY,NAME IN THE PACKAGE,PLATFORM,FOLDER): LIBRARY has no symbols to spare.
# SOURCE_DATE_EPOCH: the same files give the same bytes.
define wheel
	$(Q)rm -rf $(PYTHON)/package-$(3) && mkdir -p $(PYTHON)/package-$(3)/sunnynet_runtime $(4)
	$(Q)cp bindings/python/*.* LICENSE $(PYTHON)/package-$(3)
	$(Q)cp bindings/python/sunnynet_runtime/*.* $(PYTHON)/package-$(3)/sunnynet_runtime
	$(Q)cp $(1) $(PYTHON)/package-$(3)/sunnynet_runtime/$(2)
	$(Q)SOURCE_DATE_EPOCH=315532800 SUNNYNET_WHEEL_PLATFORM=$(filter-out host,$(3)) \
	    $(PYTHON)/tools/bin/pip wheel --quiet --disable-pip-version-check --no-deps \
	    --no-build-isolation --wheel-dir $(4) $(PYTHON)/package-$(3)
endef

$(PYTHON_WHEELS)/stamp: $(PYTHON_FILES) $(BUILD)/libsunnynet.so $(PYTHON_STAMP)
	$(call say,WHEEL)
	$(Q)rm -rf $(PYTHON_WHEELS)
	$(call wheel,$(BUILD)/libsunnynet.so,libsunnynet.so,host,$(PYTHON_WHEELS))
	@touch $@

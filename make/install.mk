# ---- installing ------------------------------------------------------------------------------

# make install PREFIX=/usr DESTDIR=stage LIBDIR=/usr/lib/x86_64-linux-gnu. Nothing that is
# installed knows DESTDIR; the CMake files know no folder at all, so that they can be moved.
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DATADIR    ?= $(PREFIX)/share
MANDIR     ?= $(DATADIR)/man
DOCDIR     ?= $(DATADIR)/doc/sunnynet
INSTALL    ?= install

PUBLIC_HEADERS := $(wildcard core/sunnynet.h core/sn_abi.h)
# The README and what it links to, at the same places relative to each other.
PAGES := README.md $(wildcard docs/*.md docs/measured/*.json bindings/*/README.md)
PAGE_FOLDERS := docs/measured docs bindings/js bindings/python bindings
BUNDLED_MODEL := models/rwkv7-fairy.gguf
SO := libsunnynet.so
PACKAGING := $(BUILD)/packaging

.PHONY: install uninstall man

# Files made from templates; those that folders are written into each time, for they may differ.
fill = sed $(foreach name,$(1),-e 's|@$(name)@|$($(name))|g')

$(PACKAGING)/sunnynet.pc: packaging/sunnynet.pc.in FORCE
	@mkdir -p $(@D)
	$(Q)$(call fill,PREFIX LIBDIR INCLUDEDIR VERSION) $< > $@

$(PACKAGING)/sunnynetConfig.cmake: packaging/sunnynetConfig.cmake.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@INCLUDE@|$(call relative,$(INCLUDEDIR))|g' \
	    -e 's|@LIBRARIES@|$(call relative,$(LIBDIR))|g' \
	    -e 's|@SHARED@|$(SO).$(VERSION)|g' -e 's|@SONAME@|$(SO).$(SOVERSION)|g' \
	    -e 's|@IMPLIB@||g' -e 's|@STATIC@|libsunnynet.a|g' $< > $@

# The way from the folder of the CMake files to another one.
relative = $(shell realpath -m --relative-to='$(LIBDIR)/cmake/sunnynet' '$(1)')

$(PACKAGING)/sunnynetConfigVersion.cmake: packaging/sunnynetConfigVersion.cmake.in Makefile
	@mkdir -p $(@D)
	$(Q)$(call fill,VERSION) $< > $@

man: $(PACKAGING)/sunnynet.1 ## the manual page, made from the command's own help

$(PACKAGING)/sunnynet.1: packaging/man.sh $(BUILD)/sunnynet
	@mkdir -p $(@D)
	$(call say,MAN)
	$(Q)sh packaging/man.sh $(BUILD)/sunnynet $(VERSION) > $@.new && mv $@.new $@

PACKAGE_FILES := $(addprefix $(PACKAGING)/,sunnynet.pc sunnynetConfig.cmake \
                   sunnynetConfigVersion.cmake sunnynet.1)

install: $(BUILD)/sunnynet $(LIBRARIES) $(PACKAGE_FILES) ## PREFIX=/usr/local DESTDIR=: command, libraries, headers, CMake, pkg-config
	$(call say,INSTALL)
	$(Q)$(INSTALL) -d '$(DESTDIR)$(BINDIR)' '$(DESTDIR)$(LIBDIR)/pkgconfig' \
	    '$(DESTDIR)$(LIBDIR)/cmake/sunnynet' '$(DESTDIR)$(INCLUDEDIR)' \
	    '$(DESTDIR)$(DATADIR)/sunnynet' '$(DESTDIR)$(MANDIR)/man1' '$(DESTDIR)$(DOCDIR)' \
	    $(PAGE_FOLDERS:%='$(DESTDIR)$(DOCDIR)/%')
	$(Q)$(INSTALL) -m 755 $(BUILD)/sunnynet '$(DESTDIR)$(BINDIR)'
	$(Q)$(INSTALL) -m 755 $(BUILD)/$(SO) '$(DESTDIR)$(LIBDIR)/$(SO).$(VERSION)'
	$(Q)ln -sf $(SO).$(VERSION) '$(DESTDIR)$(LIBDIR)/$(SO).$(SOVERSION)'
	$(Q)ln -sf $(SO).$(SOVERSION) '$(DESTDIR)$(LIBDIR)/$(SO)'
	$(Q)$(INSTALL) -m 644 $(BUILD)/libsunnynet.a '$(DESTDIR)$(LIBDIR)'
	$(Q)$(INSTALL) -m 644 $(PUBLIC_HEADERS) '$(DESTDIR)$(INCLUDEDIR)'
	$(Q)$(INSTALL) -m 644 $(PACKAGING)/sunnynet.pc '$(DESTDIR)$(LIBDIR)/pkgconfig'
	$(Q)$(INSTALL) -m 644 $(PACKAGING)/*.cmake '$(DESTDIR)$(LIBDIR)/cmake/sunnynet'
	$(Q)$(INSTALL) -m 644 $(BUNDLED_MODEL) '$(DESTDIR)$(DATADIR)/sunnynet'
	$(Q)$(INSTALL) -m 644 $(PACKAGING)/sunnynet.1 '$(DESTDIR)$(MANDIR)/man1'
	$(Q)$(INSTALL) -m 644 LICENSE '$(DESTDIR)$(DOCDIR)'
	$(Q)for page in $(PAGES); do \
	    $(INSTALL) -m 644 $$page '$(DESTDIR)$(DOCDIR)'/$$page || exit 1; done

# The same list; folders that are ours alone go if they are empty then.
uninstall: ## takes away what install put there, given the same variables
	$(Q)rm -f '$(DESTDIR)$(BINDIR)/sunnynet' '$(DESTDIR)$(LIBDIR)/$(SO).$(VERSION)' \
	    '$(DESTDIR)$(LIBDIR)/$(SO).$(SOVERSION)' '$(DESTDIR)$(LIBDIR)/$(SO)' \
	    '$(DESTDIR)$(LIBDIR)/libsunnynet.a' '$(DESTDIR)$(LIBDIR)/pkgconfig/sunnynet.pc' \
	    $(foreach header,$(notdir $(PUBLIC_HEADERS)),'$(DESTDIR)$(INCLUDEDIR)/$(header)') \
	    '$(DESTDIR)$(LIBDIR)/cmake/sunnynet/sunnynetConfig.cmake' \
	    '$(DESTDIR)$(LIBDIR)/cmake/sunnynet/sunnynetConfigVersion.cmake' \
	    '$(DESTDIR)$(DATADIR)/sunnynet/$(notdir $(BUNDLED_MODEL))' \
	    '$(DESTDIR)$(MANDIR)/man1/sunnynet.1' '$(DESTDIR)$(DOCDIR)/LICENSE' \
	    $(PAGES:%='$(DESTDIR)$(DOCDIR)/%')
	$(Q)for folder in '$(LIBDIR)/cmake/sunnynet' '$(DATADIR)/sunnynet' \
	    $(PAGE_FOLDERS:%='$(DOCDIR)/%') '$(DOCDIR)'; do \
	    [ ! -d "$(DESTDIR)$$folder" ] || rmdir "$(DESTDIR)$$folder" 2>/dev/null || true; done

# Shortcuts; cargo does the work. `make install` puts the release build where a distribution expects it.

prefix ?= /usr/local
bindir ?= $(prefix)/bin
libdir ?= $(prefix)/lib
includedir ?= $(prefix)/include
datadir ?= $(prefix)/share
mandir ?= $(datadir)/man
docdir ?= $(datadir)/doc/nrt-trace
bashdir ?= $(datadir)/bash-completion/completions
zshdir ?= $(datadir)/zsh/site-functions
fishdir ?= $(datadir)/fish/vendor_completions.d
unitdir ?= $(prefix)/lib/systemd/system
sysusersdir ?= $(prefix)/lib/sysusers.d

CARGO ?= cargo
# Takes the debug information out of what is installed, most of its bytes, and leaves names for a backtrace. To keep it: STRIP=:
STRIP ?= strip
# Where the programs are; for those that were built already: make install CARGO=: out=FOLDER
out ?= target/release

programs := nrt-traced nrt-tracectl
libraries := libnrt_trace.so libnrt_trace_prefixed.so
# A library is installed as libNAME.so.N.MINOR.PATCH: N is the C API version, as in its soname, the rest the release's. The loader
# finds it by the link libNAME.so.N, a compiler by the link libNAME.so.
api := $(strip $(shell cat client-lib/capi/c-api-version))
release := $(shell sed -n 's/^version = "[0-9]*\.\(.*\)"/\1/p' Cargo.toml)
$(if $(and $(api),$(release)),,$(error no version in client-lib/capi/c-api-version or Cargo.toml))
headers := nrt_trace.h nrt_trace_prefixed.h nrt_trace_host.h nrt/nrt_status.h nrt/nrt_sys_trace.h nrt/nrt_trace.hpp
units := $(notdir $(wildcard systemd/*.service systemd/*.socket))
sysusers := $(notdir $(wildcard systemd/sysusers.d/*.conf))
samples := $(notdir $(wildcard systemd/*.toml))
# Made by the program itself, from the definitions of its arguments.
generated := $(out)/generated

.PHONY: build test check install uninstall

build:
	$(CARGO) build --release -p nrt-traced -p nrt-tracectl -p nrt-trace-capi -p nrt-trace-capi-prefixed

test:
	$(CARGO) test --workspace

check:
	.ci/run

# A library's files of other releases go once the links lead to this one's: ldconfig lets them lead to the highest number, which
# after a step back to an earlier release would be the wrong one.
install: build
	rm -rf $(generated)
	$(out)/nrt-tracectl generate $(generated)
	install -d $(addprefix $(DESTDIR),$(bindir) $(libdir)/pkgconfig $(includedir)/nrt $(unitdir) $(mandir)/man1 $(mandir)/man8)
	install -d $(addprefix $(DESTDIR),$(bashdir) $(zshdir) $(fishdir) $(if $(sysusers),$(sysusersdir)) $(if $(samples),$(docdir)))
	install -m 755 $(addprefix $(out)/,$(programs)) $(DESTDIR)$(bindir)
	for library in $(libraries); do \
		real=$$library.$(api).$(release) && install -m 755 $(out)/$$library $(DESTDIR)$(libdir)/$$real && \
		ln -sf $$real $(DESTDIR)$(libdir)/$$library.$(api) && \
		ln -sf $$library.$(api) $(DESTDIR)$(libdir)/$$library && \
		for other in $(DESTDIR)$(libdir)/$$library.$(api).*; do \
			[ $$other = $(DESTDIR)$(libdir)/$$real ] || rm -f $$other; done || exit; done
	install -m 644 $(out)/libnrt_trace.a $(DESTDIR)$(libdir)
	$(STRIP) --strip-debug $(addprefix $(DESTDIR)$(bindir)/,$(programs)) $(addprefix $(DESTDIR)$(libdir)/,$(addsuffix .$(api).$(release),$(libraries)) libnrt_trace.a)
	for header in $(headers); do \
		install -m 644 client-lib/capi/include/$$header $(DESTDIR)$(includedir)/$$header || exit; done
	sed -e '/^#/d' -e 's|^libdir=.*|libdir=$(libdir)|' -e 's|^includedir=.*|includedir=$(includedir)|' \
		client-lib/capi/nrt_trace.pc > $(DESTDIR)$(libdir)/pkgconfig/nrt_trace.pc
	chmod 644 $(DESTDIR)$(libdir)/pkgconfig/nrt_trace.pc
	for unit in $(units); do \
		sed -e 's|/usr/bin|$(bindir)|' systemd/$$unit > $(DESTDIR)$(unitdir)/$$unit && \
		chmod 644 $(DESTDIR)$(unitdir)/$$unit || exit; done
	for file in $(sysusers); do \
		install -m 644 systemd/sysusers.d/$$file $(DESTDIR)$(sysusersdir)/$$file || exit; done
	for file in $(samples); do \
		install -m 644 systemd/$$file $(DESTDIR)$(docdir)/$$file || exit; done
	install -m 644 $(generated)/man1/* $(DESTDIR)$(mandir)/man1
	install -m 644 $(generated)/man8/* $(DESTDIR)$(mandir)/man8
	install -m 644 $(generated)/bash/* $(DESTDIR)$(bashdir)
	install -m 644 $(generated)/zsh/* $(DESTDIR)$(zshdir)
	install -m 644 $(generated)/fish/* $(DESTDIR)$(fishdir)

uninstall:
	rm -f $(addprefix $(DESTDIR)$(bindir)/,$(programs))
	rm -f $(addprefix $(DESTDIR)$(libdir)/,$(libraries) $(addsuffix .$(api),$(libraries)) libnrt_trace.a pkgconfig/nrt_trace.pc)
	rm -f $(foreach library,$(libraries),$(DESTDIR)$(libdir)/$(library).$(api).*)
	rm -f $(addprefix $(DESTDIR)$(includedir)/,$(headers))
	rm -f $(addprefix $(DESTDIR)$(unitdir)/,$(units)) $(addprefix $(DESTDIR)$(sysusersdir)/,$(sysusers))
	rm -f $(addprefix $(DESTDIR)$(docdir)/,$(samples))
	rm -f $(DESTDIR)$(mandir)/man1/nrt-tracectl.1 $(DESTDIR)$(mandir)/man1/nrt-tracectl-*.1 $(DESTDIR)$(mandir)/man8/nrt-traced*.8
	rm -f $(addprefix $(DESTDIR)$(bashdir)/,$(programs)) $(addprefix $(DESTDIR)$(zshdir)/_,$(programs))
	rm -f $(addprefix $(DESTDIR)$(fishdir)/,$(addsuffix .fish,$(programs)))
	for folder in $(includedir)/nrt $(docdir); do \
		rmdir --ignore-fail-on-non-empty $(DESTDIR)$$folder 2>/dev/null || true; done

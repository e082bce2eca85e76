# Shortcuts; cargo does the work. `make install` puts the release build where a distribution expects it.

prefix ?= /usr/local
bindir ?= $(prefix)/bin
libdir ?= $(prefix)/lib
includedir ?= $(prefix)/include
unitdir ?= $(prefix)/lib/systemd/system

.PHONY: build test check install uninstall

build:
	cargo build --release -p nrt-traced -p nrt-tracectl -p nrt-trace-capi -p nrt-trace-capi-prefixed

test:
	cargo test --workspace

check:
	.ci/run

install: build
	install -D -m 755 target/release/nrt-traced $(DESTDIR)$(bindir)/nrt-traced
	install -D -m 755 target/release/nrt-tracectl $(DESTDIR)$(bindir)/nrt-tracectl
	install -D -m 755 target/release/libnrt_trace.so $(DESTDIR)$(libdir)/libnrt_trace.so
	install -D -m 755 target/release/libnrt_trace_prefixed.so $(DESTDIR)$(libdir)/libnrt_trace_prefixed.so
	install -D -m 644 target/release/libnrt_trace.a $(DESTDIR)$(libdir)/libnrt_trace.a
	install -D -m 644 client-lib/capi/include/nrt_trace.h $(DESTDIR)$(includedir)/nrt_trace.h
	install -D -m 644 client-lib/capi/include/nrt_trace_prefixed.h $(DESTDIR)$(includedir)/nrt_trace_prefixed.h
	install -D -m 644 client-lib/capi/include/nrt/nrt_status.h $(DESTDIR)$(includedir)/nrt/nrt_status.h
	install -D -m 644 client-lib/capi/include/nrt/nrt_sys_trace.h $(DESTDIR)$(includedir)/nrt/nrt_sys_trace.h
	install -D -m 644 client-lib/capi/include/nrt/nrt_trace.hpp $(DESTDIR)$(includedir)/nrt/nrt_trace.hpp
	install -D -m 644 client-lib/capi/include/nrt_trace_host.h $(DESTDIR)$(includedir)/nrt_trace_host.h
	install -d $(DESTDIR)$(libdir)/pkgconfig $(DESTDIR)$(unitdir)
	sed -e '/^#/d' -e 's|^libdir=.*|libdir=$(libdir)|' -e 's|^includedir=.*|includedir=$(includedir)|' \
		client-lib/capi/nrt_trace.pc > $(DESTDIR)$(libdir)/pkgconfig/nrt_trace.pc
	sed -e 's|/usr/bin|$(bindir)|' systemd/nrt-traced.service > $(DESTDIR)$(unitdir)/nrt-traced.service

uninstall:
	rm -f $(DESTDIR)$(bindir)/nrt-traced $(DESTDIR)$(bindir)/nrt-tracectl
	rm -f $(DESTDIR)$(libdir)/libnrt_trace.so $(DESTDIR)$(libdir)/libnrt_trace_prefixed.so $(DESTDIR)$(libdir)/libnrt_trace.a
	rm -f $(DESTDIR)$(includedir)/nrt_trace.h $(DESTDIR)$(includedir)/nrt_trace_prefixed.h $(DESTDIR)$(includedir)/nrt_trace_host.h $(DESTDIR)$(libdir)/pkgconfig/nrt_trace.pc
	rm -rf $(DESTDIR)$(includedir)/nrt
	rm -f $(DESTDIR)$(unitdir)/nrt-traced.service

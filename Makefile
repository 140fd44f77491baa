# weft. `make help` says what there is.

.PHONY: help demo demo-rootless demo-vm test check check-full check-mutants soak-rootless lint coverage bench bench-quick \
	bench-native modules provider rootless rdma-core-series kernel-series weftspec deb dist-portable rpm release deps clean \
	install install-module-source install-provider install-boot install-man install-rootless install-weftspec

help:
	@echo 'make demo         both of these, one after the other'
	@echo 'make demo-rootless   RDMA programs on this host under weft-run, by turns with TCP: two minutes'
	@echo 'make demo-vm      two virtual machines, the driver on both, the usual RDMA programs between them'
	@echo 'make test         engine, stacks, provider, softirq, sockets: a minute, no root; T=name: one test'
	@echo 'make check        all tests that a change must pass'
	@echo 'make check-full   those, and the ones on an SMP debug kernel of Debian sid'
	@echo 'make check-mutants   one-line faults in the engine and the queue logic: each must fail its test'
	@echo 'make soak-rootless   an hour (SOAK_SECONDS) of weft-run servers under all that peers do'
	@echo 'make lint         clang-tidy, gcc -fanalyzer and coccinelle: each finding is fixed or explained'
	@echo 'make coverage     build/coverage/index.html: lines and branches that the native tests reach;'
	@echo '                  SUITES="tools datagram": and these suites of weft-run; all: each of them'
	@echo 'make bench        weft, siw, rxe and TCP side by side: figures, ratios, goals met or missed'
	@echo 'make bench-quick  the main rows of it, in some minutes'
	@echo 'make bench-native weft-run and TCP by turns on this host: within 10 minutes'
	@echo 'make modules      kernel/weft.ko; KDIR=/lib/modules/$$(uname -r)/build [ARCH=um]'
	@echo '                  (without KDIR: for the current kernel of Debian 12)'
	@echo 'make provider     build/lib, build/etc: the rdma-core provider'
	@echo 'make rootless     build/bin/weft-run and its library: RDMA devices without module or root'
	@echo 'make install-rootless PREFIX=$$HOME/.local   puts these and the provider there'
	@echo 'make install [PREFIX=/usr/local] [DESTDIR=]   all: the module for dkms, the provider for libibverbs,'
	@echo '                  the service, weft-run, weftspec, man pages; or one: install-module-source,'
	@echo '                  install-provider, install-boot, install-man, install-rootless, install-weftspec'
	@echo 'make deb          build/deb: packages for Debian 12 and 13, each built in its release'
	@echo 'make dist-portable [ARCH=aarch64]   build/portable: weft-run for any distribution, in one file'
	@echo 'make rpm          build/rpm: the same for RHEL and Fedora'
	@echo 'make release      build/release: all files of a version, from a clean commit'
	@echo 'make rdma-core-series   build/rdma-core-series: patches that add it to rdma-core'
	@echo 'make kernel-series   build/kernel-series: patches that add the driver to Linux'
	@echo 'make weftspec     build/bin: the conformance tester'
	@echo 'make deps         install the Debian packages that these need'
	@echo 'make clean        remove what was built here; the cache of kernels stays'

demo: deps
	@$(MAKE) --no-print-directory demo-rootless
	@echo
	@$(MAKE) --no-print-directory demo-vm

# Without deps, for those who have no root: the demo says what is missing.
demo-rootless:
	@tests/demo-rootless.sh

demo-vm: deps
	@tests/demo-vm.sh

# Without deps: it says what is missing.
test:
	@scripts/test.sh $(if $(T),'$(T)')

check: deps
	@scripts/check.sh

check-full: deps
	@scripts/check.sh --full

check-mutants: deps
	tests/mutants/run.sh

soak-rootless: deps
	@scripts/check.sh soak_rootless

lint: deps
	@scripts/lint.sh

coverage: deps
	@scripts/coverage.sh $(SUITES)

# Asked for only when it is needed: it may have to fetch the headers.
KDIR ?= $(shell echo $$(scripts/fetch-stock-kernel.sh)/usr/src/linux-headers-*-amd64)

bench: deps
	@tests/bench/run.sh

bench-quick: deps
	@tests/bench/run.sh 2 quick

bench-native:
	@tests/bench/native.sh

modules:
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)/kernel" modules

provider:
	scripts/build-provider.sh

# rootless programs load the provider, too.
rootless: provider
	$(MAKE) -C providers/rootless

install: install-module-source install-provider install-boot install-man install-rootless install-weftspec

# What is given to programs that look in one place goes there whatever PREFIX is: dkms, libibverbs.
PREFIX ?= /usr/local
UNITDIR ?= $(PREFIX)/lib/systemd/system
VERSION ?= $(shell cat VERSION)
VERBS_LIBDIR ?= $(shell pkg-config --variable=libdir libibverbs)
export PREFIX DESTDIR
MAN := $(DESTDIR)$(PREFIX)/share/man
MODULE_SOURCE = $(DESTDIR)/usr/src/weft-$(VERSION)

# Then: dkms add weft/VERSION && dkms install weft/VERSION
install-module-source:
	cd kernel && find . \( -name '*.[ch]' -o -name '*.sh' -o -name Kbuild \) ! -name have.h ! -name '*.mod.c' \
		-exec install -D -m 644 {} $(MODULE_SOURCE)/{} \;
	sed 's/#MODULE_VERSION#/$(VERSION)/' scripts/system/dkms.conf >$(MODULE_SOURCE)/dkms.conf

install-provider: provider
	install -d $(DESTDIR)$(VERBS_LIBDIR)/libibverbs $(DESTDIR)/etc/libibverbs.d
	install -m 644 build/lib/libweft-rdmav*.so $(DESTDIR)$(VERBS_LIBDIR)/libibverbs
	install -m 644 build/etc/weft.driver $(DESTDIR)/etc/libibverbs.d

install-boot:
	install -d $(DESTDIR)$(PREFIX)/lib/weft $(DESTDIR)$(UNITDIR) $(DESTDIR)$(PREFIX)/lib/modprobe.d
	install scripts/system/weft-link $(DESTDIR)$(PREFIX)/lib/weft
	sed 's,@libdir@,$(PREFIX)/lib/weft,' scripts/system/weft@.service >$(DESTDIR)$(UNITDIR)/weft@.service
	chmod 644 $(DESTDIR)$(UNITDIR)/weft@.service
	install -m 644 scripts/system/modprobe.conf $(DESTDIR)$(PREFIX)/lib/modprobe.d/weft.conf

install-man:
	install -d $(MAN)/man4 $(MAN)/man7
	install -m 644 docs/weft.4 $(MAN)/man4
	install -m 644 docs/weft.7 $(MAN)/man7

install-rootless: rootless
	$(MAKE) -C providers/rootless install

install-weftspec: weftspec
	$(MAKE) -C tests/weftspec install

rdma-core-series:
	rdma-core-patch/series.sh

kernel-series:
	scripts/kernel-series.sh

deb:
	scripts/build-deb.sh

# ARCH may be the environment's: of the kernel's modules.
dist-portable:
	ARCH='$(if $(filter command line,$(origin ARCH)),$(ARCH))' scripts/build-portable.sh

rpm: dist-portable
	scripts/build-rpm.sh

release:
	scripts/release.sh

weftspec:
	$(MAKE) -C tests/weftspec

deps:
	@scripts/install-packages.sh

clean:
	rm -rf build
	find kernel \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' -o -name '.*.cmd' \
		-o -name '*.symvers' -o -name modules.order -o -path kernel/compat/have.h \) -delete

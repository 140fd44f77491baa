# shellcheck shell=bash
# What a test inside the lab has: two machines, a and b, joined by eth0. The test runs on a;
# on_b runs a command on b. In QEMU b is another machine, in user-mode Linux a namespace.
# Sourced by machine.sh and one-test.sh. Names in capitals come from /run/weft/env.
#
# An emulated machine takes a tenth of a second and more to start a program. Code that runs often
# uses bash's builtins only.
#
# The third kind of lab has no machine at all: lib/rootless.sh.

HERE=${HERE:-/run} SHARE=${SHARE:-/run/weft}
IP_A=10.7.0.1 IP_B=10.7.0.2
IP6_A=fd07::1 IP6_B=fd07::2

# The reason on one line: it is all that the tally shows of a failure.
fail() {
	echo "FAIL: ${*//$'\n'/ | }"
	exit 1
}

# What it tests is not to be had here.
skip() {
	echo "SKIP ${*//$'\n'/ | }"
	exit 77
}

lib=${BASH_SOURCE[0]%/*}/lib
# shellcheck source-path=SCRIPTDIR source=lib/waiting.sh
. "$lib/waiting.sh"
# shellcheck source-path=SCRIPTDIR source=lib/mailbox.sh
. "$lib/mailbox.sh"
# shellcheck source-path=SCRIPTDIR source=lib/devices.sh
. "$lib/devices.sh"
# shellcheck source-path=SCRIPTDIR source=lib/programs.sh
. "$lib/programs.sh"
# shellcheck source-path=SCRIPTDIR source=lib/faults.sh
. "$lib/faults.sh"
# shellcheck source-path=SCRIPTDIR source=lib/clean-up.sh
. "$lib/clean-up.sh"
# shellcheck source-path=SCRIPTDIR source=lib/weft-run.sh
. "$lib/weft-run.sh"
# shellcheck source-path=SCRIPTDIR source=lib/rootless.sh
[ "$WEFT_LINK" != lo ] || . "$lib/rootless.sh"

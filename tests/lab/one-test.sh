#!/bin/bash
# One test of a suite, in a process of its own: one-test.sh SUITE FUNCTION [ARG...]
lab=$(cd "$(dirname "$0")" && pwd)
suite=$1
shift
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$lab/lib.sh"
# shellcheck disable=SC1090 # a suite
. "$lab/suites/$suite.sh"
# The run's time limit: the environment overrides the suite's own line.
[ -z "${LIMIT-}" ] || TEST_TIMEOUT=$LIMIT
"$@"

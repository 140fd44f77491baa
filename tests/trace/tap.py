# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs functions as tests; TAP."""
import traceback


def run(tests):
    """The exit status. A test's name is that of its function."""
    bad = 0
    print("1..%d" % len(tests))
    for number, test in enumerate(tests, 1):
        try:
            test()
            result = "ok"
        except Exception:
            result = "not ok"
            bad += 1
            print("".join("# %s\n" % line for line in traceback.format_exc().splitlines()), end="")
        print("%s %d - %s" % (result, number, test.__name__.replace("_", "-")), flush=True)
    return 1 if bad else 0

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests of turns.py, with programs that print what was written down before. TAP."""
import os
import subprocess
import sys
import tempfile
import time
import traceback

import turns

TURNS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "turns.py")
WRITE_BW = """\
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      5000             0.00               100.50 \t\t   0.001608
---------------------------------------------------------------------------------------
"""
SEND_LAT = """\
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]
 8       2000          3.91           171.00       4.25     \t       5.00       \t1.00
"""
RATE = "op=send size=8 round_trips=2560 typical_us=14.05 avg_us=97.81 p99_us=3287.06\n"
UCX = """\
[thread 0]              4767     47.130  1488.655  1504.122       41.98      41.55         672         665
Final:                  8000      0.120   105.512   938.909      592.35     100.00        9478        1065
"""


class Place:
    """A folder with a plan, and with programs that print the next line of a list at each run."""
    def __init__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.plan = self.path("plan")

    def path(self, name):
        return os.path.join(self.dir.name, name)

    def program(self, name, lines):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write("".join(f"{line}\n" for line in lines))
        return f"echo {name} >>{self.path('ran')}; sed -n 1p {self.path(name)}; " \
               f"sed -i 1d {self.path(name)}"

    def run(self, plan, *options):
        """Status, and what turns.py printed."""
        with open(self.plan, "w", encoding="utf-8") as f:
            f.write("\n".join(plan))
        p = subprocess.run([sys.executable, TURNS, *options, self.plan, self.path("figures")],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return p.returncode, p.stdout

    def ran(self):
        with open(self.path("ran"), encoding="utf-8") as f:
            return f.read().split()


def cells(said, name):
    """The cells of a row of the table."""
    line = next(line for line in said.splitlines() if line.startswith(f"| {name} "))
    return [cell.strip() for cell in line.split("|")[1:-1]]


def equal(a, b):
    assert a == b, f"{a!r} is not {b!r}"


def figures(values):
    return [f"MB/s={v}" for v in values]


def reads_what_programs_print(_):
    for reader, said, figure in (("perftest_bw", WRITE_BW, 100.5 * 1.048576),
                                 ("perftest_rate", WRITE_BW, 1608),
                                 ("perftest_lat", SEND_LAT, 4.25), ("typical_us", RATE, 14.05),
                                 ("size", RATE, 8), ("ucx_bw", UCX, 104.8576),
                                 ("mpi_lat", "a warning\n10.25 us\n", 10.25)):
        got = turns.read(reader, said)
        assert abs(got - figure) < 1e-6, (reader, got, figure)


def zeros_of_a_clock_that_was_not_gauged_are_no_figure(_):
    for said in (WRITE_BW.replace("100.50", "0.00"), WRITE_BW.replace("100.50", "inf"), ""):
        try:
            turns.read("perftest_bw", said)
        except turns.Failed:
            continue
        raise AssertionError(said)


def median_and_quartiles_are_those_of_the_ratios(p):
    # The machine gets slower all the time: the ratios are 0.9 to 1.7, in no order.
    ratios = [1.3, 0.9, 1.7, 1.1, 1.5, 1.0, 1.6, 1.2, 1.4]
    speeds = [1000 / n for n in range(1, 10)]
    status, said = p.run([
        "tcp | - | - | - | MB/s | " + p.program("tcp", figures(speeds)),
        "weft | - | tcp | >= 1.35 | MB/s | " +
        p.program("weft", figures(r * s for r, s in zip(ratios, speeds)))])
    equal(status, 0)
    equal(cells(said, "weft"), ["weft", ">= 1.35", "275 MB/s", "200 MB/s", "1.3", "1.1 to 1.5", "9",
                                "missed"])


def runs_alternate_and_each_is_next_to_its_base(p):
    rows = ["base | - | - | - | MB/s | " + p.program("base", figures([1] * 4))]
    rows += [f"{x} | - | base | - | MB/s | " + p.program(x, figures([2] * 2)) for x in "abc"]
    status, _ = p.run(rows, "--pairs", "2")
    equal(status, 0)
    equal(p.ran(), "a base b c base b base a base c".split())


def one_failed_run_is_repeated(p):
    status, said = p.run([
        "tcp | - | - | - | MB/s | " + p.program("tcp", figures([1] * 3)),
        "weft | - | tcp | >= 1 | MB/s | " + p.program("weft", ["sorry", *figures([2] * 3)])],
        "--pairs", "3")
    equal(status, 0)
    equal(cells(said, "weft")[4:], ["2", "2 to 2", "3", "met"])
    assert "# weft: no figure: sorry" in said, said


def a_program_that_fails_is_given_up_and_the_others_go_on(p):
    status, said = p.run([
        "tcp | - | - | - | MB/s | " + p.program("tcp", figures([1] * 9)),
        "bad | - | tcp | >= 1 | MB/s | echo ran >>%s; echo no device; exit 3" % p.path("bad"),
        "good | - | tcp | >= 1 | MB/s | " + p.program("good", figures([1] * 9))])
    equal(status, 1)
    equal(cells(said, "good")[6:], ["9", "met"])
    equal(cells(said, "bad")[6:], ["0", "failed"])
    assert "# bad: status 3: no device" in said and "# bad: given up" in said, said
    with open(p.path("bad"), encoding="utf-8") as f:
        equal(len(f.readlines()), turns.TRIES ** 2)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def a_program_that_hangs_is_ended_with_its_server(p):
    status, said = p.run([
        "hangs | - | - | >= 1 | MB/s | sleep 600 & echo $! >>%s; sleep 600" % p.path("servers"),
        "good | 1 | - | >= 1 | MB/s | " + p.program("good", figures([1] * 9))], "--limit", "2")
    equal(status, 1)
    equal(cells(said, "hangs")[6:], ["0", "failed"])
    equal(cells(said, "good")[6:], ["1", "met"])
    assert "# hangs: no end after 2 s" in said, said
    with open(p.path("servers"), encoding="utf-8") as f:
        servers = f.read().split()
    equal(len(servers), turns.TRIES ** 2)
    late = time.monotonic() + 20
    while any(map(is_alive, servers)):
        assert time.monotonic() < late, servers
        time.sleep(0.02)


def too_few_pairs_are_not_judged(p):
    status, said = p.run(["weft | - | - | >= 1 | MB/s | " + p.program("weft", figures([2, 2]))],
                         "--pairs", "2", "--least", "3")
    equal(status, 0)
    equal(cells(said, "weft")[2:], ["", "", "", "", "2", "too few pairs"])
    assert "0 goals met, 0 missed, 1 not judged." in said, said


def when_the_time_is_over_fewer_pairs_are_reported(p):
    plan = ["weft | - | - | >= 1 | MB/s | sleep 0.4; echo MB/s=2"]
    status, said = p.run(plan, "--seconds", "1", "--least", "1")
    equal(status, 0)
    pairs = int(cells(said, "weft")[6])
    assert 1 <= pairs <= 2, said
    assert "# the time is over" in said, said
    assert f"1 of 1 rows have fewer than 9 pairs, {pairs} at the least" in said, said


def a_run_ends_with_the_time_and_is_no_failure(p):
    began = time.monotonic()
    status, said = p.run(["weft | - | - | >= 1 | MB/s | sleep 600"], "--seconds", "0.5", "--limit", "300")
    equal(status, 0)
    assert time.monotonic() - began < 200, said
    equal(cells(said, "weft")[6:], ["0", "too few pairs"])


def rows_for_whose_pairs_there_is_no_time_are_left_out(p):
    plan = [f"{x} | - | - | >= 1 | MB/s | echo {x} >>{p.path('ran')}; sleep 1; echo MB/s=2" for x in "abc"]
    status, said = p.run(plan, "--seconds", "8", "--least", "3")
    equal(status, 0)
    assert "c" not in p.ran() and p.ran().count("a") >= p.ran().count("b"), p.ran()
    equal(cells(said, "c")[2:], ["", "", "", "", "0", "too few pairs"])
    assert "# left out, for the others to have 3 pairs: " in said, said


def missed_goals_are_listed_with_their_counts(p):
    plan = ["bare | - | - | - | ms | echo ms=2", "start | - | bare | +<= 20 | ms | echo ms=25",
            "rate | - | - | >= 5 | M/s | echo M/s=4", "fine | - | - | >= 5 | M/s | echo M/s=6"]
    p.run(plan, "--pairs", "3")
    _, said = p.run(plan, "--pairs", "3", "--missed")
    equal(said, "start\techo ms=25\nrate\techo M/s=4\n")
    with open(p.path("counts"), "w", encoding="utf-8") as f:
        f.write("rate\tclient sendmsg 1.02\n")
    _, said = p.run(plan, "--pairs", "3", "--table", "--counts", p.path("counts"))
    assert "1 goals met, 2 missed, 0 not judged." in said, said
    assert said.endswith("- **start**: 23, goal <= 20 more.\n"
                         "- **rate**: 4, goal >= 5; counted for each message: client sendmsg 1.02.\n"), said


def points_are_sizes_and_medians(p):
    plan = ["tcp | - | - | - | MB/s | echo MB/s=2", "put of 64 octets | - | tcp | - | MB/s | echo MB/s=3"]
    p.run(plan, "--pairs", "3")
    equal(p.run(plan, "--points", r"put of (\d+)")[1], "64 3 2\n")


def a_plan_that_makes_no_sense_is_refused(p):
    for plan, why in ((["a | - | b | - | MB/s | true"], "which is no row"), (["a | b"], "no row"),
                      (["a | - | - | fast | MB/s | true"], "is no goal")):
        status, said = p.run(plan)
        equal(status, 1)
        assert why in said, said


TESTS = [reads_what_programs_print, zeros_of_a_clock_that_was_not_gauged_are_no_figure,
         median_and_quartiles_are_those_of_the_ratios, runs_alternate_and_each_is_next_to_its_base,
         one_failed_run_is_repeated, a_program_that_fails_is_given_up_and_the_others_go_on,
         a_program_that_hangs_is_ended_with_its_server, too_few_pairs_are_not_judged,
         when_the_time_is_over_fewer_pairs_are_reported, a_run_ends_with_the_time_and_is_no_failure,
         rows_for_whose_pairs_there_is_no_time_are_left_out, missed_goals_are_listed_with_their_counts,
         points_are_sizes_and_medians, a_plan_that_makes_no_sense_is_refused]


def main():
    print(f"1..{len(TESTS)}")
    for n, test in enumerate(TESTS, 1):
        name = test.__name__.replace("_", "-")
        try:
            test(Place())
            print(f"ok {n} - {name}")
        except Exception:
            print("".join(f"# {line}\n" for line in traceback.format_exc().splitlines()), end="")
            print(f"not ok {n} - {name}")


if __name__ == "__main__":
    main()

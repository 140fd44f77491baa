# shellcheck shell=bash
# Programs of many ranks: Open MPI, MPICH and OpenSHMEM over UCX, and gloo. They connect their QPs by hand, and
# must use weft only: no shared memory, no TCP.

tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	cat <<-'END'
		open-mpi-over-ucx-of-two-ranks open_mpi 2
		open-mpi-over-ucx-of-eight-ranks open_mpi 8
		open-mpi-over-ucx-runs-hpcc hpc_challenge 4
		mpich-over-ucx-of-two-ranks mpich 2
		mpich-over-ucx-of-eight-ranks mpich 8
		openshmem-over-ucx-of-two-processes openshmem 2
		openshmem-over-ucx-of-four-processes openshmem 4
		gloo-over-ibverbs-as-over-tcp gloo 4
	END
}

# UCX says at which device each endpoint is; and it may be at no other.
by_ucx_alone() {
	pair weft:weft
	export UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=$DEV_A:1 UCX_LOG_LEVEL=info
	export HOME=/tmp OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

# went_by_weft LOG: and what UCX says of errors is one of them.
went_by_weft() {
	! grep -m 1 ' UCX  *\(ERROR\|WARN\)' "$1" || fail "$(grep -m 1 ' UCX  *\(ERROR\|WARN\)' "$1")"
	grep -q "ep_cfg.*rc_verbs/$DEV_A:1" "$1" || fail "no endpoint at $DEV_A; $(words "$1")"
}

# by_mpirun MPIRUN RANKS COMMAND...: of Open MPI, whose parts for networks are UCX's alone.
by_mpirun() {
	by_ucx_alone
	run "$1" --oversubscribe -np "$2" --mca pml ucx --mca osc ucx --mca spml ucx --mca atomic ucx --mca btl self \
		"${@:3}"
	went_by_weft "$TEST_DIR/$1.log"
}

# says_of N WORDS LOG: it looked at much, and found nothing wrong.
says_of() { grep -qE "^$1 $2, [1-9][0-9]{2,} checks$" "$3" || fail "$(words "$3")"; }

open_mpi() {
	by_mpirun mpirun.openmpi "$1" "$WEFT_BUILD/bin/mpi-verify"
	says_of "$1" ranks "$TEST_DIR/mpirun.openmpi.log"
}

openshmem() {
	by_mpirun oshrun "$1" "$WEFT_BUILD/bin/shmem-verify"
	says_of "$1" processes "$TEST_DIR/oshrun.log"
}

# Its ranks would find each other in shared memory.
mpich() {
	by_ucx_alone
	export MPIR_CVAR_NOLOCAL=1
	run mpiexec.hydra -n "$1" "$WEFT_BUILD/bin/mpich-verify"
	went_by_weft "$TEST_DIR/mpiexec.hydra.log"
	says_of "$1" ranks "$TEST_DIR/mpiexec.hydra.log"
}

# The HPC Challenge, which proves its own results; its example's input, with smaller matrices.
hpc_challenge() {
	local dir=$HERE/san/hpcc out
	mkdir -p "$dir"
	chmod 1777 "$dir"
	cd "$dir" || fail "no folder"
	zcat -f /usr/share/doc/hpcc/examples/_hpccinf.txt* | sed 's/^1000  */400 /' >hpccinf.txt
	by_mpirun mpirun.openmpi "$1" hpcc
	out=$TEST_DIR/hpccoutf.txt
	mv hpccoutf.txt "$out" && rm -r "$dir"
	grep -qx 'Success=1' "$out" || fail "no success; $(tail -n 3 "$out")"
	[ "$(grep -c 'Found 0 errors .*(passed)' "$out")" = 4 ] || fail "errors of random access"
	! grep -m 1 'FAILED' "$out" || fail "$(grep -m 1 FAILED "$out")"
}

# Ranks meet by files, and leave there what every collective gave them.
gloo() {
	local way rank
	pair weft:weft
	for way in tcp:$IP_A ibverbs:$DEV_A; do
		mkdir -p "$TEST_DIR/${way%%:*}" && chmod 1777 "$TEST_DIR/${way%%:*}"
		run gloo-verify "${way%%:*}" "${way#*:}" "$1" "$TEST_DIR/${way%%:*}"
	done
	for ((rank = 0; rank < $1; rank++)); do
		grep -qx end "$TEST_DIR/ibverbs/rank-$rank" || fail "rank $rank has not come to its end"
		cmp "$TEST_DIR/tcp/rank-$rank" "$TEST_DIR/ibverbs/rank-$rank" || fail "rank $rank has other results"
	done
}

# shellcheck shell=bash
# What unmodified programs of others do when something goes wrong: docs/reactions.md has a row for each test here. A
# program may end badly, or wait for ever: that is what its test expects.

# shellcheck disable=SC2034 # read by suite.sh
TEST_TIMEOUT=150

# NAME meets PROGRAM RULE CLIENT SERVER [OPTION...], NAME peer_dies|port_flaps PROGRAM CLIENT SERVER: see comes_to.
tests() {
	[ "${KERNEL-}" = rootless ] || return 0
	cat <<-'END'
		the-table-has-a-row-for-each-test rows
		ucx_perftest-ends-without-its-region meets ucx reg_mr:size:1M-:->:ENOMEM 255=Out:of:memory - -s 4194304
		ucx-goes-on-without-an-rc-qp meets ucx create_qp:type:rc:->:ENOMEM goes-on -
		ucx-aborts-if-a-post-fails meets ucx post_send:type:rc:nth:20:->:ENOMEM 134=ibv_post_send waits
		ucx-aborts-if-a-request-fails meets ucx post_send:type:rc:nth:20:->:loc_prot_err 134=completion:with:error waits
		ucx-aborts-if-a-qp-fails meets ucx post_send:type:rc:nth:190:->:qp_fatal 134=completion:with:error waits
		ucx-aborts-if-its-peer-dies peer_dies ucx 134=completion:with:error
		ucx-goes-on-after-a-port-flaps port_flaps ucx
		open-mpi-goes-on-without-a-region meets mpi reg_mr:size:256K-1500K:->:ENOMEM 0=2:ranks - mpi-ring
		open-mpi-waits-without-a-pool meets mpi reg_mr:size:4M-:->:ENOMEM waits -
		open-mpi-goes-on-without-an-rc-qp meets mpi create_qp:type:rc:->:ENOMEM goes-on -
		open-mpi-aborts-if-a-post-fails meets mpi post_send:type:rc:nth:20:->:ENOMEM 134=ibv_post_send -
		open-mpi-aborts-if-a-request-fails meets mpi post_send:type:rc:nth:20:->:loc_prot_err 134=completion:with:error - mpi-ring
		open-mpi-aborts-if-a-qp-fails meets mpi post_send:type:rc:nth:190:->:qp_fatal 134=completion:with:error -
		open-mpi-ends-if-a-rank-dies rank_dies post_send:nth:100:->:delay:1s mpi 137=exited:on:signal:9
		open-mpi-goes-on-after-a-port-flaps port_flaps mpi
		mpich-goes-on-without-a-region meets mpich reg_mr:size:256K-1500K:->:ENOMEM 0=2:ranks - all
		mpich-waits-without-a-pool meets mpich reg_mr:size:4M-:->:ENOMEM waits -
		mpich-goes-on-without-an-rc-qp meets mpich create_qp:type:rc:->:ENOMEM goes-on -
		mpich-aborts-if-a-post-fails meets mpich post_send:type:rc:nth:20:->:ENOMEM 6|15=ibv_post_send -
		mpich-aborts-if-a-request-fails meets mpich post_send:type:rc:size:1K-:nth:20:->:loc_prot_err 6|15=completion:with:error - all
		mpich-aborts-if-a-qp-fails meets mpich post_send:type:rc:nth:190:->:qp_fatal 6|15=completion:with:error -
		mpich-ends-if-a-rank-dies rank_dies post_send:nth:100:->:delay:1s mpich 9|15=Killed|Terminated
		mpich-goes-on-after-a-port-flaps port_flaps mpich
		libfabric-ends-without-its-region meets msg reg_mr:->:ENOMEM 12=fi_mr_reg -
		libfabric-finds-no-device-without-a-qp meets msg create_qp:->:ENOMEM 61=fi_getinfo -
		libfabric-posts-again-if-a-post-fails meets msg post_send:nth:20:->:ENOMEM goes-on -
		libfabric-ends-if-a-request-fails meets msg post_send:nth:20:->:loc_prot_err 5=local:protection:error 125=Flushed
		libfabric-ends-if-a-qp-fails meets msg post_send:nth:190:->:qp_fatal 125=Flushed 125=Flushed
		libfabric-ends-if-it-is-refused meets msg connect:->:rejected 3=Unknown:error:-8 waits
		libfabric-ends-if-its-peer-dies peer_dies msg 125=Flushed
		libfabric-goes-on-after-a-port-flaps port_flaps msg
		rxm-posts-again-if-a-post-fails meets rxm post_send:nth:20:->:ENOMEM goes-on -
		rxm-ends-if-a-request-fails-and-its-peer-waits meets rxm post_send:nth:20:->:loc_prot_err 5=local:protection:error waits
		rxm-ends-if-a-qp-fails-and-its-peer-waits meets rxm post_send:nth:190:->:qp_fatal 125=Flushed waits
		rxm-waits-if-it-is-refused meets rxm connect:->:rejected waits waits
		rxm-waits-or-ends-if-its-peer-dies peer_dies rxm waits|[0-9]+=Flushed:Error
		rxm-goes-on-after-a-port-flaps port_flaps rxm
		gloo-hides-that-there-is-no-memory-for-a-region meets gloo reg_mr:nth:3:->:ENOMEM 1=device.cc.139.*16.vs.0 -
		gloo-hides-that-there-is-no-memory-for-a-qp meets gloo create_qp:->:ENOMEM 1=device.cc.139.*16.vs.0 -
		gloo-waits-if-a-post-fails meets gloo post_send:nth:20:->:ENOMEM waits -
		gloo-ends-if-a-request-fails meets gloo post_send:nth:20:->:loc_prot_err 1=(local:protection|Flushed):[Ee]rror -
		gloo-ends-if-a-qp-fails meets gloo post_send:nth:190:->:qp_fatal 1=Flushed:Error -
		gloo-ends-if-a-rank-dies rank_dies post_send:nth:100:->:delay:3s gloo 1=retry:counter:exceeded
		gloo-goes-on-after-a-port-flaps port_flaps gloo
		perftest-ends-without-its-region meets perftest reg_mr:->:ENOMEM 1=allocate:MR 1
		perftest-ends-without-a-qp meets perftest create_qp:->:ENOMEM 1=Unable:to:create:QP 1
		perftest-ends-if-a-post-fails meets perftest post_send:nth:20:->:ENOMEM 1=post:send 1
		perftest-ends-if-a-request-fails meets perftest post_send:nth:20:->:loc_prot_err 1=Failed:status:[45] 1
		perftest-ends-if-a-qp-fails meets perftest post_send:nth:190:->:qp_fatal 1=Failed:status:5 1
		perftest-ends-if-it-is-refused meets perftest connect:->:rejected 1=Unexpected:CM:event waits -R
		perftest-ends-if-its-peer-dies peer_dies perftest 1=Failed:status:12
		perftest-goes-on-after-a-port-flaps port_flaps perftest
		rping-ends-without-its-region meets rping reg_mr:->:ENOMEM 12=reg_mr:failed waits
		rping-ends-without-a-qp meets rping create_qp:->:ENOMEM 255=rdma_create_qp waits
		rping-ends-if-a-post-fails meets rping post_send:nth:20:->:ENOMEM 12=post:send:error:12 0
		rping-ends-well-or-not-if-a-request-fails meets rping post_send:nth:20:->:loc_prot_err 255|0=completion:failed:status:4 0
		rping-succeeds-if-a-qp-fails meets rping post_send:nth:190:->:qp_fatal 0=DISCONNECT:EVENT 0
		rping-ends-if-it-is-refused meets rping connect:->:rejected 255=RDMA_CM_EVENT_REJECTED waits
		rping-succeeds-if-its-peer-dies peer_dies rping 0=DISCONNECT:EVENT
		rping-goes-on-after-a-port-flaps port_flaps rping
	END
}

# Each test's name is in a table once, in this order.
# shellcheck disable=SC2016 # a page's backquotes
rows() {
	diff <(tests | sed '1d; s/ .*//') <(sed '/^## Valkey/,$d' "$WEFT_TOP/docs/reactions.md" | sed -n 's/^|.*| `\([^`]*\)` |$/\1/p') ||
		fail "docs/reactions.md has other rows"
}

# --- programs: two ends that go on for long ---

declare -A pid

# begin NAME PLACE COMMAND...: in the background, on that side. weft-run execs, so pid[NAME] is the program's.
begin() {
	PLACE=$2 "${@:3}" >"$TEST_DIR/$1.log" 2>&1 </dev/null &
	pid[$1]=$!
}

# begin_both PROGRAM [OPTION...]: the server of what has one, and the client once the server listens.
begin_both() {
	local opts=("${@:2}")
	case $1 in
	ucx)
		by_ucx_alone
		begin server b ucx_perftest
		wait_listen_b 13337
		begin client a ucx_perftest -t tag_bw -s 65536 -n 100000000 -w 0 "${opts[@]}" "$IP_B"
		;;
	mpi)
		by_ucx_alone
		export HOME=/tmp OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
		[ $# -gt 1 ] || opts=(mpi-verify -p)
		begin client a mpirun.openmpi --oversubscribe -np 2 --mca pml ucx --mca osc ucx --mca btl self \
			"$WEFT_BUILD/bin/${opts[0]}" "${opts[@]:1}"
		;;
	mpich)
		by_ucx_alone
		# Its ranks would find each other in shared memory.
		export HOME=/tmp MPIR_CVAR_NOLOCAL=1
		[ $# -gt 1 ] || opts=(-p)
		begin client a mpiexec.hydra -n 2 "$WEFT_BUILD/bin/mpich-verify" "${opts[@]}"
		;;
	gloo)
		mkdir -m 777 "$TEST_DIR/files"
		begin client a gloo-verify ibverbs "$DEV_A" 2 "$TEST_DIR/files"
		;;
	msg | rxm)
		# As in the suite tools: libfabric takes no device on lo for itself.
		export WEFT_NETDEVS=eth0
		opts=(-p verbs -e msg)
		[ "$1" = msg ] || opts=(-p 'verbs;ofi_rxm' -e rdm)
		begin server b fi_pingpong "${opts[@]}" -I 10000000 -S 4096 -B 7592
		wait_listen_b 7592
		begin client a fi_pingpong "${opts[@]}" -I 10000000 -S 4096 -P 7592 "$IP_B"
		;;
	perftest)
		begin server b ib_write_bw "${opts[@]}" -d "$DEV_B" -n 10000000
		wait_listen_b 18515
		begin client a ib_write_bw "${opts[@]}" -d "$DEV_A" -n 10000000 "$IP_B"
		;;
	rping)
		begin server b rping -s -a "$IP_B"
		wait_listen_b 7174
		begin client a rping -c -a "$IP_B"
		;;
	esac
}

by_ucx_alone() { export UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=$DEV_A:1; }

# --- faults ---

# under_rules RULE...: for a's programs; colons stand for blanks. The log shows by one more rule that posts go on.
under_rules() {
	pair weft:weft
	mkdir -m 777 "$TEST_DIR/log"
	log=$TEST_DIR/log/of-faults
	printf '%s\n' "${@//:/ }" 'post_send every 20 -> delay 1ms' >"$TEST_DIR/faults"
	option a faults "$TEST_DIR/faults"
	option a fault_log "$log"
}

# happened [TIMES]
has_happened() { [ "$(grep -cs ' # line 1,' "$log")" -ge "$1" ]; }
happened() { wait_for 60 has_happened "${1-1}" || fail "no fault: $(words "$TEST_DIR/client.log")"; }

posts() { grep -c ^post_send "$log"; }
posted_since() { [ "$(posts)" -gt "$1" ]; }
is_quiet() {
	local before
	before=$(posts)
	pause 1
	! posted_since "$before"
}

has_settled() { is_over "${pid[$1]}" || is_quiet; }

# comes_to client|server END: STATUS or STATUS=WORDS, both regular expressions; waits; waits|STATUS=WORDS for one of
# these; goes-on; - for any.
comes_to() {
	local rc=0 log_of=$TEST_DIR/$1.log want=${2#*=}
	case $2 in
	-) return ;;
	goes-on)
		wait_for 60 posted_since "$(posts)" || fail "$1 does not go on: $(words "$log_of")"
		;;
	waits)
		wait_for 60 is_quiet || fail "$1 goes on"
		;;
	"waits|"*)
		wait_for 60 has_settled "$1" || fail "$1 goes on"
		! is_over "${pid[$1]}" || comes_to "$1" "${2#waits|}"
		return
		;;
	*)
		wait_for 60 is_over "${pid[$1]}" || fail "$1 does not end: $(words "$log_of")"
		wait "${pid[$1]}" || rc=$?
		[[ $rc =~ ^(${2%%=*})$ ]] || rping_outran_itself $rc "$log_of" || fail "$1 ended with $rc: $(words "$log_of")"
		[ "$want" = "$2" ] || grep -qE "${want//:/ }" "$log_of" || fail "$1 did not say ${want//:/ }: $(words "$log_of")"
		return
		;;
	esac
	! is_over "${pid[$1]}" || fail "$1 ended: $(words "$log_of")"
}

# meets PROGRAM RULE CLIENT SERVER [OPTION...]
meets() {
	under_rules "$2"
	begin_both "$1" "${@:5}"
	happened
	comes_to client "$3"
	comes_to server "$4"
}

# peer_dies PROGRAM CLIENT
peer_dies() {
	under_rules
	begin_both "$1"
	happened
	kill -9 "${pid[server]}"
	comes_to client "$2"
}

# rank_dies RULE PROGRAM JOB: the second, while the rule delays a post of each.
rank_dies() {
	local ranks parent
	under_rules "$1"
	begin_both "$2"
	happened 2
	parent=${pid[client]}
	read -ra ranks <"/proc/$parent/task/$parent/children"
	# hydra has a proxy between.
	[ ${#ranks[@]} != 1 ] || read -ra ranks <"/proc/${ranks[0]}/task/${ranks[0]}/children"
	kill -9 "${ranks[1]}"
	comes_to client "$3"
}

# port_flaps PROGRAM: for a second.
port_flaps() {
	[ "$OWN_NET" = yes ] || skip "lo is the host's own"
	under_rules
	begin_both "$1"
	happened
	trap 'ip link set lo up' EXIT
	ip link set lo down
	pause 1
	ip link set lo up
	comes_to client goes-on
}

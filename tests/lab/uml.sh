# shellcheck shell=bash
# One user-mode Linux; its machine b is a network namespace. Sourced by run.sh; uses its $run,
# $lab and $tree.
# shellcheck disable=SC2154

uml_boot() {
	local cpus=() memory=1G pid pin=()
	[[ $lab != 7.* ]] || memory=3G
	# One CPU of the host is enough for one of its own: the kernel and its programs take turns, and
	# where another CPU takes long to wake each turn costs that.
	if [[ $lab == 7.* ]] && [ -z "${ONE_CPU-}" ]; then
		cpus=(ncpus=2)
	else
		pin=(taskset -c "$(last_cpu)")
	fi
	cp /proc/cpuinfo "$run/cpuinfo"
	# ro: the root is the host's own files.
	setsid "${pin[@]}" "$tree/linux" mem=${MEMORY:-$memory} "${cpus[@]}" seccomp=on rootfstype=hostfs ro \
		init="$WEFT_TOP/tests/lab/machine.sh" con=null con0=fd:0,fd:1 quiet panic=-1 log_buf_len=4M kasan_multi_shot \
		WEFT_LINK=netns WEFT_ROLE=a WEFT_TOP="$WEFT_TOP" WEFT_RUN="$run" \
		</dev/null >"$run/console.$boots" 2>&1 &
	pid=$!
	follow $pid
}

# Of those that this shell may use.
last_cpu() { taskset -cp $$ | grep -o '[0-9]*$'; }

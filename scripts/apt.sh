# shellcheck shell=bash
# apt with sources, lists and downloads of its own, in the cache: the machine's apt stays as it is.
# Mirror, proxy and keys are the machine's; what is installed does not count. Sourced after lib.sh by scripts that
# fetch; they set
#   apt_state    the folder in the cache
#   apt_retries  how often a download is tried again
#   apt_options  more options of apt, if any: an architecture
# and have a function print_sources, which prints the lines of sources.list.
# What apt says goes to $apt_state/log, which is shown when no other way is left.
# shellcheck disable=SC2154,SC2034 # set and read by who sources this

apt_options=()
apt_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# apt_private COMMAND [ARG...]: one of apt's commands.
apt_private() {
	local tool=$1
	shift
	"$tool" -qq -o Dir::Etc::SourceList="$apt_state/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$apt_state/lists" -o Dir::Cache="$apt_state/cache" \
		-o Dir::State::Status=/dev/null -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries="$apt_retries" \
		"${apt_options[@]}" "$@"
}

# The Debian mirrors of the machine, one line per repository: "URI CODENAME".
machine_mirrors() {
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' \
		'Created-By: Packages' | awk '$3 == "Debian" && !seen[$0]++ {print $1, $2}'
}

# The one of them that has the base release.
base_mirror() {
	local base
	base=$(machine_mirrors | awk '$2 !~ /-/ {print $1; exit}')
	[ -n "$base" ] || die "apt knows no Debian mirror yet; run 'make deps' (or apt-get update) first"
	echo "$base"
}

# read_lists WHAT: reads the lists now; fails if that fails.
read_lists() {
	print_sources >"$apt_state/sources.list"
	say "apt: reading the lists of $1"
	apt_private apt-get update >>"$apt_state/log" 2>&1 || return 1
	touch "$apt_state/updated"
}

# refresh_lists WHAT: reads lists that are older than a week; if that fails, the old ones serve.
refresh_lists() {
	mkdir -p "$apt_state/lists/partial" "$apt_state/cache/archives/partial"
	: >"$apt_state/log"
	[ -z "$(find "$apt_state/updated" -mtime -7 2>/dev/null)" ] || return 0
	read_lists "$1" && return
	[ -e "$apt_state/updated" ] || {
		cat "$apt_state/log" >&2
		die "cannot read the lists of $1"
	}
	say "going on with the old lists of $1"
}

# shellcheck shell=bash
# weftspec judges siw, on b, against its profile; then with ids, these cases alone, destructive
# ones included, which bring the machine down. For run.sh -x, with DRIVERS=siw:
#   judge-siw.sh FILE [ID...]    FILE in /run/weft is what weftspec prints
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$WEFT_TOP/tests/lab/lib.sh"
TEST_DIR=$SHARE
out=$SHARE/$1
shift
more=(--profile "$WEFT_TOP/tests/weftspec/profiles/siw-7.2")
[ $# = 0 ] || more=(--allow-destructive "$@")

pair siw:siw 65000
start_b reflector weft-reflector --listen "$IP_B:7471"
start_b starter starter 7472
wait_listen_b 7471
wait_listen_b 7472
rc=0
weftspec --color never --seed 1 --jobs 2 --timeout 20 --peer "$IP_B:7471" --listen 0 \
	--exec "echo exec weft-reflector --connect $IP_A:{port} {args} | exec busybox nc $IP_B 7472" \
	"${more[@]}" >"$out" 2>&1 || rc=$?
grep -E '^(cases|rows|surprise|crash)' "$out"
exit $rc

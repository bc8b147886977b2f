#!/usr/bin/env bash
# Plants small faults and looks whether the tests find them: scripts/mutants.sh [DIR]...
#
# gremlins makes the faults: another comparison, another sign, "or" for "and". One that no test finds has survived.
# scripts/mutants.txt names the known survivors, each with the reason; any other survivor fails. The tests of the larger packages take
# minutes, so there only one fault of MUTANTS_EVERY is tried, drawn by lot (with 1, all are). A fault whose tests run out of time
# counts as found: so nothing else should keep the machine busy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

export ORDER_SEEDS=${ORDER_SEEDS:-3000}
if [ $# = 0 ]; then
	set -- internal/lossclock internal/outcome internal/calls internal/reliance internal/order internal/seqname internal/leases internal/znode internal/seqnode internal/lockcache internal/zkconn .
fi

need_go
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${GREMLINS:-}" ]; then
	GOBIN=$work/bin go install github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
	GREMLINS=$work/bin/gremlins
fi

# gremlins finds this go first. It asks for the coverage before all else, and plants only what is covered. Go counts no coverage
# of constants and of the conditions of a switch, so the answer is that all is covered. Of a fault that does not compile, or that
# the lot spares, the answer is 2: not viable.
mkdir "$work/path"
cat >"$work/path/go" <<'SHIM'
#!/usr/bin/env bash
# shellcheck disable=SC2086 # MUTANTS_TESTS is a list
case " $* " in
*' -coverprofile '*)
	"$MUTANTS_GO" test -count=1 $MUTANTS_TESTS || exit
	for file in "$MUTANTS_IN"/*.go; do
		printf '%s/%s:1.1,99999.1 1 1\n' "$("$MUTANTS_GO" list -m)" "${file#./}"
	done | sed '1i mode: set' >"${*: -2:1}"
	;;
*' -failfast '*)
	[ $((RANDOM % MUTANTS_EVERY)) = 0 ] && "$MUTANTS_GO" build "./$MUTANTS_IN" || exit 2
	exec "$MUTANTS_GO" test -vet=off "${@:2:$#-2}" $MUTANTS_TESTS
	;;
*) exec "$MUTANTS_GO" "$@" ;;
esac
SHIM
chmod +x "$work/path/go"
MUTANTS_GO=$(command -v go)
export MUTANTS_GO MUTANTS_IN MUTANTS_TESTS MUTANTS_EVERY

# survivors prints those that gremlins has told of, with the source's line, which changes less often than its number, and
# the column within it.
survivors() {
	local kind at line column text
	sed -n 's/^ *LIVED \([A-Z_]*\) at \(.*\)$/\1 \2/p' "$work/told" | sort -u | while read -r kind at; do
		IFS=: read -r at line column <<<"$at"
		text=$(sed -n "${line}p" "$MUTANTS_IN/$at")
		indent=${text%%[![:space:]]*}
		printf '%s %s %d: %s\n' "${MUTANTS_IN#./}/$at" "$kind" $((column - ${#indent})) "${text#"$indent"}"
	done
}

unknown=0 every=${MUTANTS_EVERY:-50}
for MUTANTS_IN; do
	locks='./internal/behaviour/... ./internal/hazards'
	MUTANTS_EVERY=$every only=()
	case $MUTANTS_IN in
	internal/lossclock | internal/seqname) MUTANTS_EVERY=1 MUTANTS_TESTS=./$MUTANTS_IN ;;
	# not what looks for faults of its own, which takes most of the time
	internal/order) MUTANTS_EVERY=1 MUTANTS_TESTS="-skip TestModelRefutesFaults ./$MUTANTS_IN" ;;
	internal/reliance) MUTANTS_TESTS="./$MUTANTS_IN ./internal/zkconn $locks" ;;
	internal/leases) MUTANTS_EVERY=1 MUTANTS_TESTS="./$MUTANTS_IN ./internal/behaviour/semaphore" ;;
	.) MUTANTS_TESTS=". $locks" only=(--exclude-files /) ;;
	*) MUTANTS_TESTS="./$MUTANTS_IN $locks" ;;
	esac
	step "faults in $MUTANTS_IN: 1 of $MUTANTS_EVERY, tried on $MUTANTS_TESTS"
	PATH=$work/path:$PATH nice -n 19 "$GREMLINS" unleash "./$MUTANTS_IN" --integration --workers "${MUTANTS_WORKERS:-1}" \
		--timeout-coefficient 20 --invert-negatives=false --invert-logical --invert-loopctrl --invert-assignments \
		--remove-self-assignments "${only[@]}" | tee "$work/told"
	survivors >"$work/survivors"
	grep -vxFf scripts/mutants.txt "$work/survivors" >"$work/unknown" || continue
	printf 'Survivors that scripts/mutants.txt does not name:\n%s\n' "$(cat "$work/unknown")"
	unknown=$((unknown + $(wc -l <"$work/unknown")))
done
[ "$unknown" = 0 ] || die "$unknown faults have survived: test for them, or say in scripts/mutants.txt why no test can find them."

#!/usr/bin/env bash
# Checks the models in model/: scripts/model.sh [--quick]
#
# A model must hold as it is, through all of its states, and must be refuted with each defect that is planted in it: a model that
# finds nothing proves nothing. One line per check; it fails if any comes out otherwise. --quick leaves out the large ones: it is
# what scripts/test.sh runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

quick=
if [ "${1:-}" = --quick ]; then quick=yes; fi
models=$PWD/model
spin_ensure

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 checks=0

# build MODEL FLAG_OF_GCC... -- [DEFINE]... leaves the checker of a model in $work/pan.
build() {
	local model=$1 flags=()
	shift
	while [ "$1" != -- ]; do
		flags+=("$1")
		shift
	done
	shift
	(
		cd "$work"
		spin -a "$@" "$models/$model.pml"
		gcc -O2 "${flags[@]}" -DCOLLAPSE -DMEMLIM=8000 -w -o pan pan.c
	) >"$work/build" 2>&1 || die "$model $*: $(cat "$work/build")"
}

# judge EXPECTED WHAT [FLAG OF THE CHECKER]... runs it. A check that is not through all states, for lack of memory, depth
# or time, has neither held nor been refuted.
judge() {
	local expected=$1 what=$2 got states began seconds
	shift 2
	began=${EPOCHREALTIME/./}
	(cd "$work" && timeout 300 ./pan -m2000000 "$@") >"$work/out" 2>&1 || true
	seconds=$(((${EPOCHREALTIME/./} - began) / 100000))
	states=$(awk '/states, stored/ { print $1; exit }' "$work/out")
	if grep -Eq '^pan:1: (assertion violated|non-progress)' "$work/out"; then
		got=refuted
	elif grep -q 'errors: 0' "$work/out" && ! grep -Eq 'Search not completed|max search depth too small' "$work/out"; then
		got=holds
	else
		got=undecided
	fi
	checks=$((checks + 1))
	printf '%-52s %-8s %-9s %10s %4d.%d\n' "$what" "$expected" "$got" "${states:-?}" $((seconds / 10)) $((seconds % 10))
	if [ "$got" != "$expected" ]; then
		failed=$((failed + 1))
		grep -m 3 '^pan:' "$work/out" || true
	fi
}

# check EXPECTED MODEL [DEFINE]...
check() {
	local expected=$1
	shift
	build "$1" -DSAFETY -- "${@:2}"
	judge "$expected" "$*"
}

# ends MODEL [DEFINE]... shows that a model has no cycle, so that it always comes to its end.
ends() {
	build "$1" -DNP -- "${@:2}"
	judge holds "$*, no cycle" -l
}

printf '%-52s %-8s %-9s %10s %6s\n' model expected got states seconds

check holds session
check refuted session -DSLACK=0
check refuted session -DREADS
check refuted session -DLAST_CONTACT
check refuted session -DFROM_DISCONNECT
check refuted session -DPERIOD=4
check refuted session -DOVERTAKEN
check holds session -DCALM
check refuted session -DCALM -DHELD_EVERY=8
check refuted session -DPINGS -DNO_HELDUP
check refuted session -DPINGS -DPERIOD=4
check refuted session -DPINGS -DIDLE_STALL
if [ -z "$quick" ]; then check holds session -DPINGS; fi

check holds kept
check refuted kept -DNO_BOUND
check refuted kept -DIDLE_KEPT
check refuted kept -DUSED_AFTER_LOSS

# Owner 1 and the stranger, whatever goes wrong; then all three.
check holds queue -DROUNDS0=0 -DFAULTS=2
check holds queue -DCANCELS=0 -DFAULTS=0
ends queue -DCANCELS=0 -DFAULTS=0
check refuted queue -DUNCONFIRMED
check refuted queue -DLATE_EVENTS -DTRUSTS_EVENTS
check refuted queue -DEPOCH_KEPT -DROUNDS0=0 -DFAULTS=2
check refuted queue -DFORMER_DIRECTORY -DCANCELS=0
check refuted queue -DOVERLOOKS_BETWEEN
check refuted queue -DANY_TOKEN
check refuted queue -DANY_SESSION
check refuted queue -DUNTOLD -DROUNDS0=0
check refuted queue -DLOST_HANDS_OVER
check refuted queue -DNO_MARGIN
check refuted queue -DGAVE_UP_HANDS_OVER
check refuted queue -DNO_WITHDRAW
check refuted queue -DDELETES_ONCE
check refuted queue -DKEEPS_ORPHAN
check refuted queue -DOVERTAKEN
if [ -z "$quick" ]; then
	check holds queue -DROUNDS0=0 -DFAULTS=3
	check holds queue -DROUNDS2=0 -DCANCELS=0 -DFAULTS=2
	check holds queue -DROUNDS0=2 -DCANCELS=0 -DFAULTS=0
	check holds queue -DCANCELS=0
	check holds queue -DCANCELS=0 -DLATE_EVENTS
	check holds queue
	ends queue -DROUNDS0=0 -DFAULTS=2
fi

if [ "$failed" -gt 0 ]; then die "$failed of $checks checks came out otherwise."; fi
printf '%d checks, all as expected.\n' "$checks"

#!/usr/bin/env bash
# Checks the models in test/model: scripts/model.sh [--quick | --traces | EXPECTED MODEL [DEFINE]...]
#
# A model must hold as it is, through all of its states, and must be refuted with each defect that is planted in it: a model that
# finds nothing proves nothing. One line per check, as they come to an end; it fails if any comes out otherwise. --quick leaves out
# the large ones: it is what scripts/test.sh runs. EXPECTED is holds, refuted or acyclic, of a single check.
#
# Small traces of the library, which internal/simulator records and breaks, are checked as well: the model of the queue has to come
# to the same verdict as the acceptor, accepted or rejected. scripts/model.sh --traces checks them alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

models=$PWD/test/model
work=$(mktemp -d)
traces=$work/traces
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cores=$(nproc 2>/dev/null || echo 2)

# The large models, the largest first.
large=(
	'holds queue -DCANCELS=0'
	'holds queue'
	'holds session -DPINGS -DHALF=1 -DPERIOD=1 -DWITHIN=2'
	'holds session -DPINGS'
	'holds session -DPINGS -DSTILL'
	'holds queue -DROUNDS2=0 -DCANCELS=0 -DFAULTS=2'
	'holds queue -DROUNDS0=0 -DFAULTS=3'
	'holds session -DT=20 -DHALF=1 -DPERIOD=1 -DWITHIN=2'
	'holds queue -DROUNDS0=2 -DCANCELS=0 -DFAULTS=0'
	'holds queue -DCANCELS=0 -DLATE_EVENTS'
	'acyclic queue -DROUNDS0=0 -DFAULTS=2'
)
small=(
	'holds session'
	'holds session -DHALF=1 -DPERIOD=1 -DWITHIN=2'
	'refuted session -DSLACK=0'
	'refuted session -DREADS'
	'refuted session -DLAST_CONTACT'
	'refuted session -DFROM_DISCONNECT'
	'refuted session -DPERIOD=4'
	'refuted session -DOVERTAKEN'
	'holds session -DCALM'
	'holds session -DCALM -DANSWER=2'
	'refuted session -DCALM -DANSWER=3'
	'refuted session -DCALM -DONE_AT_A_TIME'
	'refuted session -DCALM -DHELD_EVERY=8'
	'refuted session -DPINGS -DBUSY_PINGS'
	'refuted session -DPINGS -DSTALE_PINGS'
	'refuted session -DPINGS -DIDLE_STALL'
	'refuted session -DPINGS -DSTILL -DUNNOTICED'

	'holds kept'
	'refuted kept -DNO_BOUND'
	'refuted kept -DIDLE_KEPT'
	'refuted kept -DUSED_AFTER_LOSS'

	# Owner 1 and the stranger, whatever goes wrong; then all three.
	'holds queue -DROUNDS0=0 -DFAULTS=2'
	'holds queue -DCANCELS=0 -DFAULTS=0'
	'acyclic queue -DCANCELS=0 -DFAULTS=0'
	'refuted queue -DUNCONFIRMED -DROUNDS0=0'
	'refuted queue -DLATE_EVENTS -DTRUSTS_EVENTS'
	'refuted queue -DEPOCH_KEPT -DROUNDS0=0 -DFAULTS=2'
	'refuted queue -DFORMER_DIRECTORY -DCANCELS=0'
	'refuted queue -DOVERLOOKS_BETWEEN'
	'refuted queue -DANY_TOKEN'
	'refuted queue -DFOUND_IN_ANY_SESSION -DROUNDS0=0'
	'refuted queue -DANSWERED_IN_ANY_SESSION -DROUNDS0=0'
	'refuted queue -DUNTOLD -DROUNDS0=0'
	'refuted queue -DLOST_HANDS_OVER'
	'refuted queue -DNO_MARGIN -DROUNDS0=0'
	'refuted queue -DGAVE_UP_HANDS_OVER'
	'refuted queue -DNO_WITHDRAW'
	'refuted queue -DDELETES_ONCE -DROUNDS0=0'
	'refuted queue -DKEEPS_ORPHAN -DROUNDS0=0'
	'refuted queue -DOVERTAKEN'
)

# build EXPECTED MODEL [DEFINE]... leaves the checker of a model in ./pan. What is refuted is so in a moment, and not worth
# an optimizing compiler.
build() {
	local flags=(-O2 -DSAFETY)
	case $1 in
	refuted | accepted | rejected) flags=(-O0 -DSAFETY) ;;
	acyclic) flags=(-O2 -DNP) ;;
	esac
	case $1 in
	accepted | rejected) cp "$traces/$1_$2.pml" "$2.pml" && cp "$models/queue.pml" . ;;
	*) cp "$models/$2.pml" . ;;
	esac && spin -a "${@:3}" "$2.pml" &&
		gcc "${flags[@]}" -DCOLLAPSE -DMEMLIM=8000 -w -o pan pan.c
}

# outcome FILE is what a checker has said there. One that is not through all states, for lack of memory, depth or time, has neither
# held nor been refuted. A trace is accepted if the model can come to its end.
outcome() {
	if grep -q '^pan:1: assertion violated (seen' "$1"; then
		echo accepted
	elif grep -Eq '^pan:1: (assertion violated|non-progress)' "$1"; then
		echo refuted
	elif grep -q 'errors: 0' "$1" && ! grep -Eq 'Search not completed|max search depth too small' "$1"; then
		echo holds
	else
		echo undecided
	fi
}

# check EXPECTED MODEL [DEFINE]... runs one check, in a directory of its own, for at most ten minutes of one processor.
check() {
	local dir want=$1 got=undecided states seconds flags=(-m2000000)
	dir=$(mktemp -d -p "$work")
	cd "$dir"
	case $want in
	acyclic) want=holds flags+=(-l) ;;
	rejected) want=holds ;;
	esac
	if build "$@" >out 2>&1; then
		TIMEFORMAT=%U
		{ time (ulimit -t 600 && ./pan "${flags[@]}" >out 2>&1) || true; } 2>seconds
		got=$(outcome out)
	fi
	states=$(awk '/states, stored/ { print $1; exit }' out)
	seconds=$(tail -n 1 seconds 2>/dev/null || true)
	printf '%-58s %-8s %-9s %10s %7s\n' "${*:2}" "$1" "$got" "${states:-?}" "${seconds:-?}"
	if [ "$got" = "$want" ]; then
		rm -rf "$dir"
	else
		grep -m 5 . out
	fi
	[ "$got" = "$want" ]
}

# check_all CHECK... runs as many at a time as there are processors, and leaves in $failed how many came out otherwise.
check_all() {
	local c running=0
	failed=0
	for c; do
		if [ "$running" -ge "$cores" ]; then
			wait -n || failed=$((failed + 1))
			running=$((running - 1))
		fi
		# shellcheck disable=SC2086 # its words
		check $c &
		running=$((running + 1))
	done
	while [ "$running" -gt 0 ]; do
		wait -n || failed=$((failed + 1))
		running=$((running - 1))
	done
}

# record_traces leaves in $recorded a check of each small trace.
record_traces() {
	local f
	need_go
	mkdir "$traces"
	TRACES_PML=$traces go test -count=1 -run '^TestSmallTraces$' ./internal/simulator >/dev/null
	recorded=()
	for f in "$traces"/*.pml; do
		f=$(basename "$f" .pml)
		recorded+=("${f/_/ }")
	done
}

spin_ensure
printf '%-58s %-8s %-9s %10s %7s\n' model expected got states seconds
case ${1:-} in
'') record_traces && checks=("${large[@]}" "${small[@]}" "${recorded[@]}") ;;
--quick) record_traces && checks=("${small[@]}" "${recorded[@]}") ;;
--traces) record_traces && checks=("${recorded[@]}") ;;
accepted | rejected) record_traces && checks=("$*") ;;
*) checks=("$*") ;;
esac
check_all "${checks[@]}"
if [ "$failed" -gt 0 ]; then die "$failed of ${#checks[@]} checks came out otherwise."; fi
printf '%d checks, all as expected.\n' "${#checks[@]}"

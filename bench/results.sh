#!/usr/bin/env bash
# Makes RESULTS.md anew: bench/results.sh. It takes about 45 minutes, on a machine that does nothing else. FAST=1 is a trial of some
# minutes, whose page is in the directory that it names; so is what an interrupted run has measured.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

parts=$(mktemp -d) # each part has what it measured, and a page
rounds=7 few=3 time=300ms long=1s warm=15s
if [ -n "${FAST:-}" ]; then rounds=1 few=1 time=50ms long=50ms warm=1s; fi
queued=raw,zk.Lock,recipes,recipes-cached,curator,etcd # those that a delay says something about

# part NAME OPTION...: measures some scenarios in some settings.
part() {
	local name=$1
	shift
	printf '\n== %s (%d min)\n' "$name" $((SECONDS / 60)) >&2
	./run.sh --out="$parts" --data="$parts/$name.json" --warm-up=$warm "$@"
}

part one-server --servers=1 --delays=0s --rounds=$rounds --time=$time \
	--scenarios=S1,S2,S3,S4,S5-hand-over,S5-10,S5-100,S6,S7,S8,S9,S10,S11
part one-server-long-queue --servers=1 --delays=0s --rounds=$rounds --time=$time --scenarios=S5-1000 \
	--peers=zk.Lock,recipes,recipes-cached,curator,curator-each
# Nothing happens in it, so its figures hardly differ.
part one-server-idle --servers=1 --delays=0s --rounds=1 --time=$time --scenarios=S12
part one-server-far --servers=1 --delays=1ms,10ms --rounds=$few --time=$long \
	--scenarios=S1,S2,S3-16,S5-hand-over,S5-100 --peers=$queued
part three-servers --servers=3 --delays=0s --rounds=$rounds --time=$time \
	--scenarios=S1,S2,S3-16,S5-hand-over,S5-100,S7,S11
part three-servers-far --servers=3 --delays=1ms,10ms --rounds=$few --time=$long --scenarios=S1,S2,S3-16 --peers=$queued

out=$PWD
if [ -n "${FAST:-}" ]; then out=$parts; fi
go run . report --out="$out" --note="With a delay, each measurement took $long." "$parts"/{one-server,one-server-long-queue}.json \
	"$parts"/{one-server-idle,one-server-far,three-servers,three-servers-far}.json
go run . readme "$out/results/data.json" >"$parts/README-rows.md"
printf '%s, and the rows for the README of the project: %s\n' "$out/RESULTS.md" "$parts/README-rows.md"

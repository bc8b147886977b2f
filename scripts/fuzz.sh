#!/usr/bin/env bash
# Runs each fuzz target of the library and of the modules beside it for FUZZ_TIME (60s). Exits 1 at the first input that one fails on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

need_go
grep -rn --include='*_test.go' -o '^func Fuzz[A-Za-z]*' . | while IFS=: read -r file _ name; do
	target=${name#func } dir=$(dirname "$file")
	printf '%s in %s\n' "$target" "$dir"
	# From its directory, which may be of another module.
	(cd "$dir" && go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZ_TIME:-60s}" .)
done

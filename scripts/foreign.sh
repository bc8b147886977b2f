#!/usr/bin/env bash
# Runs what others have written for ZooKeeper on zktest, and writes the table in
# docs/appendix/zktest-java-python.md: scripts/foreign.sh [--look]
#
# It takes what Debian and the Go module proxy have: the tests of go-zookeeper and of kazoo, which run as they are but for where their
# servers come from, and the recipes of Curator, used by a program of ours. --look leaves the page alone.
# It fails if a test does not pass that scripts/testdata/foreign/why.txt does not name. It takes about 3 minutes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

need_go
curator_ensure
kazoo_ensure
python=/usr/bin/python3
"$python" -c 'import pytest, mock, objgraph' 2>/dev/null || install_packages python3-pytest python3-mock python3-objgraph ||
	die "kazoo's tests need pytest, mock and objgraph (Debian: apt-get install python3-pytest python3-mock python3-objgraph)."

page=docs/appendix/zktest-java-python.md
ours=$PWD/scripts/testdata/foreign
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/zktest" ./cmd/zktest
export ZKTEST=$work/zktest

# row writes a line of the table, of a file with lines "passed TEST" and "failed TEST": row SUITE VERSION FILE. The line for a test in
# why.txt says what is known of one that fails or is skipped.
row() {
	local reasons= test reason
	while read -r _ test _; do
		reason=$(sed -n "s|^$test: ||p" "$ours/why.txt")
		if [ -z "$reason" ]; then
			grep -A20 "$test" "$work"/*.log | tail -n 60 >&2
			die "$1: $test does not pass, and $ours/why.txt does not say why."
		fi
		case $reasons in *"$reason"*) ;; *) reasons+="${reasons:+; }$reason" ;; esac
	done < <(grep '^failed ' "$3")
	printf '| %s | %s | %s | %s | %s |\n' "$1" "$2" "$(grep -c '^passed ' "$3")" "$(grep -c '^failed ' "$3")" "$reasons"
}

gozk() {
	local module=github.com/go-zookeeper/zk
	mkdir "$work/gozk"
	cp -r "$(go list -m -f '{{.Dir}}' $module)/." "$work/gozk" && chmod -R u+w "$work/gozk"
	cp "$ours/server_java_test.go" "$work/gozk/"
	(cd "$work/gozk" && ZK_VERSION=3.8.0 go test -count=1 -v . >"$work/gozk.log" 2>&1) || true
	sed -n -e 's/^ *--- PASS: /passed /p' -e 's/^ *--- \(FAIL\|SKIP\): /failed /p' "$work/gozk.log" >"$work/gozk.results"
	row go-zookeeper "$(go list -m -f '{{.Version}}' $module)" "$work/gozk.results"
}

kazoo() {
	ZOOKEEPER_VERSION=3.8.0 PYTHONPATH=$ours PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -p zktest_plugin -p no:cacheprovider -q \
		-o faulthandler_timeout=60 \
		--junitxml="$work/kazoo.xml" --pyargs kazoo.tests >"$work/kazoo.log" 2>&1 || true
	"$python" "$ours/results.py" "$work/kazoo.xml" >"$work/kazoo.results"
	row kazoo "$("$python" -c 'import kazoo.version; print(kazoo.version.__version__)')" "$work/kazoo.results"
}

curator() {
	local jar jars servers
	jar=$(echo /usr/share/java/curator-recipes-[0-9]*.jar)
	jars=$jar:/usr/share/java/slf4j-simple.jar
	javac -d "$work/classes" -cp "$jars" "$ours/Recipes.java"
	coproc "$ZKTEST" -with-parent -servers 3 -shuffle -tick 200ms -max-session 1m -container-check 50ms
	read -r servers <&"${COPROC[0]}"
	java -Dorg.slf4j.simpleLogger.defaultLogLevel=off -cp "$work/classes:$jars" Recipes "$servers" >"$work/curator.results"
	kill "$COPROC_PID"
	row "Curator's recipes" "$(basename "${jar#*-recipes-}" .jar)" "$work/curator.results"
}

{
	printf '| suite | version | passed | not | why not |\n| --- | --- | ---: | ---: | --- |\n'
	gozk
	kazoo
	curator
} >"$work/table"
cat "$work/table"
[ "${1:-}" != --look ] || exit 0
awk -v table="$work/table" '
	/^\| suite / { while ((getline line < table) > 0) print line; old = 1 }
	/^$/ { old = 0 }
	!old { print }
' "$page" >"$work/page"
cp "$work/page" "$page"

#!/usr/bin/env bash
# Looks for known vulnerabilities in the library and in each module beside it. Exits 1 if there is one, or if one of the
# modules could not be checked in CI (CI is set). GOVULNCHECK names the tool, if it is not to be built first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

# Not by "go run", which exits 1 whatever the tool exits with.
if [ -z "${GOVULNCHECK:-}" ]; then
	need_go
	bin=$(mktemp -d)
	trap 'rm -rf "$bin"' EXIT
	GOBIN=$bin go install golang.org/x/vuln/cmd/govulncheck@v1.1.4
	GOVULNCHECK=$bin/govulncheck
fi

found=() unchecked=()
for module in . $(git ls-files "*/go.mod" | xargs --max-args=1 dirname); do
	outcome=0
	(cd "$module" && timeout 300 "$GOVULNCHECK" ./...) || outcome=$?
	case $outcome in
	0) ;;
	3) found+=("$module") ;;
	*) unchecked+=("$module") ;;
	esac
done
[ ${#found[@]} -eq 0 ] || die "A known vulnerability, see above, in: ${found[*]}"
if [ ${#unchecked[@]} -ne 0 ]; then
	[ -z "${CI:-}" ] || die "Not checked for known vulnerabilities: ${unchecked[*]}"
	printf 'Not checked, as the database of vulnerabilities cannot be reached: %s\n' "${unchecked[*]}"
fi

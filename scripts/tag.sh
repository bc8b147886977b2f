#!/usr/bin/env bash
# Tags a release of the library and of the modules beside it: scripts/tag.sh v1.2.3
#
# In the repository those modules take the library from the directory above them, by a replace directive. "go install"
# refuses a module with one. So each is tagged on a commit that is not on main, without it and with the library's own
# tag required. That needs the library's tag to be where Go finds it: it is pushed first, and the modules are tagged in
# a second run, and those that need one of these in a third. Tags are signed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

library=github.com/zkrecipes/recipes
version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || die "Which version? scripts/tag.sh v1.2.3"
[ -z "$(git status --porcelain)" ] || die "There are changes that are not committed."
[ -n "$(git config user.signingkey)" ] || die "Tags are signed: name your key in git's user.signingkey (of ssh, with gpg.format=ssh)."

if ! git rev-parse --quiet --verify "refs/tags/$version" >/dev/null; then
	git tag --sign --message "$version" "$version"
	printf 'Now: git push origin %s\nThen: scripts/tag.sh %s, once more\n' "$version" "$version"
	exit
fi

work=$(mktemp -d)
trap 'git worktree remove --force "$work"; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work" "$version"
before=$(git tag)
tagged() { grep --quiet --line-regexp --fixed-strings "$1/$version" <<<"$before"; }
tags=() later=()
for module in $(git ls-files "*/go.mod" ":!bench" ":!examples" ":!internal" | xargs --max-args=1 dirname); do
	if tagged "$module"; then continue; fi
	edits=(-dropreplace="$library" -require="$library@$version")
	for needed in $(sed -n "s|^replace $library/\([^ ]*\) => .*|\1|p" "$module/go.mod"); do
		if ! tagged "$needed"; then
			later+=("$module")
			continue 2
		fi
		edits+=(-dropreplace="$library/$needed" -require="$library/$needed@$version")
	done
	(
		cd "$work/$module"
		go mod edit "${edits[@]}"
		go mod tidy
		go build ./...
		git commit --quiet --all --message "Release $module $version"
		git tag --sign --message "$module $version" "$module/$version"
		git reset --quiet --hard HEAD^
	)
	tags+=("$module/$version")
done
printf 'Now: git push origin %s\n' "${tags[*]}"
[ ${#later[@]} -eq 0 ] || printf 'Then: scripts/tag.sh %s, once more, for %s\n' "$version" "${later[*]}"

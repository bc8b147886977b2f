#!/usr/bin/env bash
# Fails unless a tag is signed by a key that GitHub knows as its tagger's, and of this commit: scripts/verify-tag.sh v1.2.3 COMMIT
#
# It asks GitHub: the checkout of a workflow replaces a tag by its commit, without the signature.
set -euo pipefail
repo=repos/${GITHUB_REPOSITORY:-zkrecipes/recipes}

kind=$(gh api "$repo/git/ref/tags/$1" --jq '.object.type + " " + .object.sha')
case $kind in
"tag "*) ;;
*)
	echo "The tag $1 is not signed: it is a name of a commit. scripts/tag.sh makes tags that are." >&2
	exit 1
	;;
esac
signed=$(gh api "$repo/git/tags/${kind#tag }" --jq '(.verification.verified | tostring) + " " + .object.sha')
if [ "$signed" != "true $2" ]; then
	echo "The tag $1 has no valid signature for $2 (GitHub says: $signed)." >&2
	exit 1
fi

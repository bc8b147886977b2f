#!/usr/bin/env bash
# Makes the files of a release in dist/files: scripts/release.sh v1.2.3 (of zktest) or cmd/zklock/v1.2.3 (of zklock)
#
# An archive for each system, a list of the modules in the program (an SBOM, in CycloneDX's form), a package for Debian of
# zklock, and checksums. The same commit gives the same files with the same Go.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/zookeeper.sh

sbom=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

tag=${1:-}
case $tag in
v*) command=zktest ;;
cmd/zklock/v*) command=zklock ;;
*) die "Of which tag? scripts/release.sh v1.2.3 or cmd/zklock/v1.2.3" ;;
esac
version=${tag##*/v}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
need_go

# debian makes Debian's package of zklock: debian ARCHITECTURE BINARY
debian() {
	local root=dist/debian_$1
	install -D "$2" "$root/usr/bin/zklock"
	install -D --mode 644 LICENSE "$root/usr/share/doc/zklock/copyright"
	install -D --mode 644 cmd/zklock/zklock.1 "$root/usr/share/man/man1/zklock.1"
	gzip -9n "$root/usr/share/man/man1/zklock.1"
	install -D --mode 644 cmd/zklock/completion/zklock.bash "$root/usr/share/bash-completion/completions/zklock"
	install -D --mode 644 cmd/zklock/completion/zklock.zsh "$root/usr/share/zsh/vendor-completions/_zklock"
	install -D --mode 644 cmd/zklock/completion/zklock.fish "$root/usr/share/fish/vendor_completions.d/zklock.fish"
	mkdir "$root/DEBIAN"
	cat >"$root/DEBIAN/control" <<END
Package: zklock
Version: ${version/-/\~}
Architecture: $1
Maintainer: the maintainers of zkrecipes <noreply@github.com>
Section: utils
Priority: optional
Homepage: https://github.com/zkrecipes/recipes
Description: run commands under locks in ZooKeeper
 zklock is flock(1) for a cluster: it runs a command while it holds a lock, once
 per period, or while it leads, and it shows and checks the queue of a lock.
END
	dpkg-deb --build --root-owner-group "$root" "dist/files/zklock_${version}_$1.deb"
}

rm -rf dist
mkdir -p dist/files
top=$PWD
for system in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
	name=${command}_${version}_${system/\//_}
	dir=$top/dist/$name
	mkdir "$dir"
	(cd "cmd/$command" && CGO_ENABLED=0 GOOS=${system%/*} GOARCH=${system#*/} go build -trimpath -ldflags="-s -w" -o "$dir/$command" .)
	cp LICENSE "$dir"
	if [ "$command" = zklock ]; then
		cp -R cmd/zklock/zklock.1 cmd/zklock/completion "$dir"
	fi
	tar --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$SOURCE_DATE_EPOCH" -C dist -c "$name" |
		gzip -9n >"dist/files/$name.tar.gz"
	go run "$sbom" bin -json -noserial -output "dist/files/$name.sbom.json" "$dir/$command"
	if [ "$command/${system%/*}" = zklock/linux ]; then debian "${system#*/}" "$dir/zklock"; fi
done
(cd dist/files && sha256sum -- * >checksums.txt)
cat >dist/notes.md <<END
What has changed is in [CHANGELOG.md](https://github.com/zkrecipes/recipes/blob/main/CHANGELOG.md).
To check a file: \`sha256sum --check --ignore-missing checksums.txt\`. And, for this repository and
this tag:

    gh attestation verify FILE --repo zkrecipes/recipes \\
      --signer-workflow zkrecipes/recipes/.github/workflows/release.yml --source-ref refs/tags/$tag
END

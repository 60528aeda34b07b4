#!/bin/sh
# Build dist/trouter_VERSION_ARCH.deb with Debian's debhelper: `make deb`. Its Python is the one of the Debian that this runs on.
# It takes the wheels in dist/ for that Python, or the folder of wheels that WHEELS names; without these the sdists are compiled.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$root/trouter/__init__.py")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xzf "$root/dist/trouter-$version.tar.gz" -C "$work"
source=$work/trouter-$version
mkdir "$source/pipeline"
tar -xzf "$root/dist/trouter_pipeline-$version.tar.gz" -C "$source/pipeline" --strip-components=1
cp -R "$root/packaging/deb/debian" "$source/debian"
maintainer=$(sed -n 's/^Maintainer: //p' "$source/debian/control")
# The format of Debian's changelog wants an address, be it an empty one.
case $maintainer in *'<'*) ;; *) maintainer="$maintainer <>" ;; esac
printf 'trouter (%s) unstable; urgency=medium\n\n  * CHANGELOG.md says what is new.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(date -R -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}")" >"$source/debian/changelog"
cd "$source"
WHEELS=${WHEELS:-$root/dist} dpkg-buildpackage --build=binary --no-sign
cp "$work"/trouter_*.deb "$root/dist/"

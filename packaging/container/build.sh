#!/usr/bin/env bash
# Build the image from the wheels and sdists in dist/ (`make wheel`), for one machine or several:
#     packaging/container/build.sh IMAGE                                           for this machine
#     packaging/container/build.sh IMAGE linux/amd64 linux/arm64                   one list of both, to be pushed
#     BASE=registry.example/python:3.13 packaging/container/build.sh IMAGE         on another base
# It takes buildah. The base is pinned by the digest that its name has now, which the label base.name of the image tells. For a machine
# of another kind than this one, buildah needs qemu-user-static, and the sdists are compiled there.
# BUILDAH_OPTIONS are passed to `buildah build`, for example --isolation=chroot where no containers run.
set -eu -o pipefail
[ $# -gt 0 ] || { sed -n '2,8s/^# //p' "$0" >&2; exit 2; }
command -v buildah >/dev/null || { echo "build.sh: buildah is missing" >&2; exit 1; }
cd "$(dirname "$0")/../.."
image=$1
shift
base=${BASE:-docker.io/library/python:3.13-slim-bookworm}
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' trouter/__init__.py)
[ -n "$version" ] || { echo "build.sh: trouter/__init__.py has no __version__" >&2; exit 1; }
[ -e "dist/trouter-$version.tar.gz" ] && [ -e "dist/trouter_pipeline-$version.tar.gz" ] ||
    { echo "build.sh: dist/ has no sdists of version $version: make wheel" >&2; exit 1; }
case $base in
    *@sha256:* | localhost/*) pinned=$base ;;
    *)
        buildah pull --quiet "$base" >/dev/null
        digest=$(buildah inspect --type image --format '{{.FromImageDigest}}' "$base")
        pinned=${base%:*}@$digest
        ;;
esac
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
platforms=()
for platform in "$@"; do
    platforms+=("--platform=$platform")
done
if [ $# -gt 1 ]; then named=--manifest=$image; else named=--tag=$image; fi
# The times in the image are those of the commit, so that the same checkout makes the same layers.
stamp=$(git log -1 --format=%ct 2>/dev/null || date +%s)
# Only Docker's format of images has the recipe's SHELL and HEALTHCHECK.
# shellcheck disable=SC2086 # several options
buildah build --format=docker --layers=false --timestamp="$stamp" ${BUILDAH_OPTIONS:-} "${platforms[@]}" "$named" \
    --build-arg BASE="$pinned" --build-arg VERSION="$version" --build-arg REVISION="$revision" \
    --file packaging/container/Containerfile .
echo "$image from $pinned, version $version, revision $revision"
echo "push it, and name the digest that its registry has for it in image.digest:"
if [ $# -gt 1 ]; then
    echo "    buildah manifest push --all $image docker://$image"
else
    echo "    buildah push $image docker://$image"
fi

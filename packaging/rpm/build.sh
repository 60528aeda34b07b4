#!/bin/sh
# Build dist/trouter-VERSION-1.ARCH.rpm with rpmbuild: `make rpm`. Its Python is /usr/bin/python3 of the machine that this runs on, or
# PYTHON. It takes the wheels in dist/ for that Python; without these the sdists are compiled.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-/usr/bin/python3}
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$root/trouter/__init__.py")
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/build/wheels" "$work/rpm"
cp -R "$root/packaging" "$work/packaging"
"$python" -m venv "$work/build/pip"
for project in trouter trouter_pipeline; do
    wheel=$(ls "$root"/dist/"$project"-"$version"-"$tag"-*.whl 2>/dev/null || true)
    "$work/build/pip/bin/pip" --quiet --disable-pip-version-check wheel --no-deps --find-links "$work/build/wheels" \
        --wheel-dir "$work/build/wheels" "${wheel:-$root/dist/$project-$version.tar.gz}"
done
rpmbuild -bb --quiet --define "_topdir $work/rpm" --define "trouter_version $version" --define "sources $work" --define "python $python" \
    --define "python_minor $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" "$root/packaging/rpm/trouter.spec"
cp "$work"/rpm/RPMS/*/trouter-*.rpm "$root/dist/"

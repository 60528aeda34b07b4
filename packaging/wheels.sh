#!/bin/sh
# Build wheels of the sdists in dist/ for each Python, install them into a clean environment, and route a message there:
#     packaging/wheels.sh python3.11 python3.12 /opt/python3.13/bin/python3
# The wheels go to dist/. Each Python needs its headers; cibuildwheel makes those that run on every Linux.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$checkout/trouter/__init__.py")
[ $# -gt 0 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1
for python; do
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$python" -m venv "$work/build"
    for project in trouter trouter_pipeline; do
        "$work/build/bin/python" -m pip wheel --no-deps --find-links "$work/wheels" --wheel-dir "$work/wheels" \
            "$checkout/dist/$project-$version.tar.gz"
    done
    "$python" -m venv "$work/clean"
    "$work/clean/bin/python" -m pip install "$work"/wheels/*.whl
    (cd "$work" && clean/bin/trouter --version | grep -w compiled && clean/bin/python "$checkout/packaging/smoke.py" &&
        clean/bin/trouter pipeline spool --help >"$work/help")
    cp "$work"/wheels/*.whl "$checkout/dist/"
    rm -rf "$work"
done

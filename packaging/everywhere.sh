#!/bin/sh
# Build the Debian package on several releases, and try each in a clean one: `make packages`, as root, or
#     packaging/everywhere.sh [SUITE...]
# Each release is made by debootstrap in ROOTS (build/roots), once. The sdists are those in dist/, and dist/SUITE gets the package. Of the
# settings of this machine only those for pip, and its certificates, are copied.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(dirname "$here")
roots=${ROOTS:-$checkout/build/roots}
mirror=$("$checkout/make/system.sh" mirror)
[ $# -gt 0 ] || set -- bookworm trixie sid
mkdir -p "$roots"
# base FOLDER SUITE PACKAGES: make a minimal system, unless it is there.
base() {
    if [ ! -e "$1/etc/debian_version" ]; then
        rm -rf "$1"
        debootstrap --variant=minbase --include="$3" "$2" "$1" "$mirror" >"$1.log" 2>&1 || { tail -5 "$1.log" >&2; exit 1; }
    fi
    for settings in etc/pip.conf root/.config/pip etc/ssl/certs/ca-certificates.crt usr/local/share/ca-certificates etc/resolv.conf etc/hosts; do
        if [ -e "/$settings" ]; then mkdir -p "$1/${settings%/*}" && cp -aLT --remove-destination "/$settings" "$1/$settings"; fi
    done
}
for suite; do
    base "$roots/$suite" "$suite" ca-certificates,python3,python3-venv,python3-dev,gcc,build-essential,debhelper,systemd
    work=$roots/$suite/tmp/checkout
    rm -rf "$work" && mkdir -p "$work/dist" "$work/trouter" "$checkout/dist/$suite"
    cp "$checkout"/dist/*.tar.gz "$work/dist/"
    cp -R "$here" "$work/packaging"
    cp "$checkout/trouter/__init__.py" "$work/trouter/"
    unshare --mount --pid --fork --kill-child sh -eu -c '
        mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"
        exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEB_BUILD_OPTIONS=nocheck sh -eu -c "
            python3 --version
            WHEELS=/nowhere /tmp/checkout/packaging/deb/build.sh
        "' "$roots/$suite" >"$roots/$suite.build.log" 2>&1 || { tail -20 "$roots/$suite.build.log" >&2; exit 1; }
    cp "$work"/dist/*.deb "$checkout/dist/$suite/"
    rm -rf "$work"
    base "$roots/$suite-clean" "$suite" ca-certificates,python3,systemd
    trial=$(mktemp -d "$roots/trial.XXXXXX")
    cp -a "$roots/$suite-clean/." "$trial"
    status=0
    unshare --mount sh -c 'exec "$0" "$@"' "$here/deb/try.sh" "$checkout"/dist/"$suite"/trouter_*.deb "$trial" || status=$?
    rm -rf --one-file-system "$trial"
    [ "$status" = 0 ] || exit "$status"
    echo "$suite: $(ls "$checkout/dist/$suite")"
done

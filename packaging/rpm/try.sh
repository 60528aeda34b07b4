#!/bin/sh
# Install an RPM into a clean root and try it, as root: `packaging/rpm/try.sh dist/trouter-VERSION-1.ARCH.rpm [ROOT]`.
# ROOT is a folder with a minimal system that may be changed, with the Python that the package is for; without it debootstrap makes one of
# the release of this machine, which knows no packages of RPM: so the package's requirements are read, and not resolved.
set -eu
package=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
root=${2:+$(realpath "$2")}
rpm --query --package --requires "$package" | grep 'python(abi)'
if [ -z "$root" ]; then
    root=$(mktemp -d)
    chmod 0755 "$root" # the router's user has to get through it
    trap 'umount "$root/proc" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT
    debootstrap --variant=minbase --include=procps,python3,systemd "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" >/dev/null
else
    trap 'umount "$root/proc" 2>/dev/null || true' EXIT
fi
mount -t proc proc "$root/proc"
# Debian's rpm installs only if told so.
rpm_here() { rpm --root "$root" $(if [ -e /etc/debian_version ]; then echo --force-debian; fi) --nodeps "$@"; }
rpm_here --install "$package"
rpm_here --verify trouter
cp "$here/../smoke.py" "$root/tmp/smoke.py"
unshare --net sh -c 'ip link set lo up && exec chroot "$0" sh -eu' "$root" <<'INSIDE'
trouter --version | grep -w compiled
systemd-analyze --man=no verify /usr/lib/systemd/system/trouter.service /usr/lib/systemd/system/trouter@.service
stat -c '%A %U:%G %n' /etc/trouter /etc/trouter/trouter.conf
trouter check /etc/trouter/trouter.conf
bash -c '. /usr/share/bash-completion/completions/trouter; complete -p trouter'
setpriv --reuid trouter --regid trouter --init-groups trouter run -c /etc/trouter/trouter.conf 2>/tmp/trouter.log &
router=$!
until grep -q Operational /tmp/trouter.log; do kill -0 "$router" || { cat /tmp/trouter.log; exit 1; }; sleep 0.2; done
/usr/lib/trouter/bin/python /tmp/smoke.py 5672
qdstat -g
kill -TERM "$router"
wait "$router"
INSIDE
rpm_here --erase trouter
if [ -e "$root/usr/bin/trouter" ] || [ -e "$root/usr/lib/trouter/bin" ]; then exit 1; fi
echo "The RPM installs, serves, drains and goes."

#!/bin/sh
# Install a .deb in a clean Debian and try it, as root: `packaging/deb/try.sh dist/trouter_VERSION_ARCH.deb [ROOT]`.
# ROOT is a folder with a minimal Debian that may be changed; without it debootstrap makes one, of the release SUITE or that of this
# machine, and it is removed afterwards.
set -eu
package=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
root=${2:-}
if [ -z "$root" ]; then
    root=$(mktemp -d)
    chmod 0755 "$root" # the router's user has to get through it
    trap 'umount "$root/proc" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT
    debootstrap --variant=minbase --include=python3,systemd "${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}" "$root" >/dev/null
else
    trap 'umount "$root/proc" 2>/dev/null || true' EXIT
fi
mount -t proc proc "$root/proc"
cp "$package" "$root/tmp/trouter.deb"
cp "$here/../smoke.py" "$root/tmp/smoke.py"
chroot "$root" sh -eu <<'INSIDE'
if command -v cc; then exit 1; fi
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq --yes --no-install-recommends install /tmp/trouter.deb man-db
trouter --version | grep -w compiled
for page in trouter qdrouterd qdrouterd.conf qdstat qdmanage; do man "$page" | head -4; done
getent passwd trouter
systemd-analyze --man=no verify /lib/systemd/system/trouter.service /lib/systemd/system/trouter@.service
for program in trouter qdstat qdmanage qdrouterd; do
    grep -q _ARGCOMPLETE "/usr/share/bash-completion/completions/$program"
    grep -q _ARGCOMPLETE "/usr/share/fish/vendor_completions.d/$program.fish"
done
head -1 /usr/share/zsh/vendor-completions/_trouter | grep '#compdef trouter'
bash -c '. /usr/share/bash-completion/completions/trouter; complete -p trouter'
stat -c '%A %U:%G %n' /etc/trouter /etc/trouter/trouter.conf
trouter check /etc/trouter/trouter.conf
INSIDE
# Start the router as its unit does, as its user; route one message; query it; stop it with TERM and expect status 0. It runs in
# a network namespace of its own, in which its ports are free.
unshare --net sh -c 'ip link set lo up && exec chroot "$0" sh -eu' "$root" <<'INSIDE'
setpriv --reuid trouter --regid trouter --init-groups trouter run -c /etc/trouter/trouter.conf 2>/tmp/trouter.log &
router=$!
until grep -q Operational /tmp/trouter.log; do kill -0 "$router" || { cat /tmp/trouter.log; exit 1; }; sleep 0.2; done
/usr/lib/trouter/bin/python /tmp/smoke.py 5672
qdstat -g
if trouter manage update log/DEFAULT enable=debug+; then exit 1; fi
kill -TERM "$router"
wait "$router"
# The same under Qpid Dispatch's name, as old unit files start it, and another message.
setpriv --reuid trouter --regid trouter --init-groups qdrouterd -c /etc/trouter/trouter.conf 2>/tmp/qdrouterd.log &
router=$!
until grep -q Operational /tmp/qdrouterd.log; do kill -0 "$router" || { cat /tmp/qdrouterd.log; exit 1; }; sleep 0.2; done
/usr/lib/trouter/bin/python /tmp/smoke.py 5672
kill -TERM "$router"
wait "$router"
DEBIAN_FRONTEND=noninteractive dpkg --purge trouter
if [ -e /usr/bin/trouter ] || [ -e /usr/lib/trouter ]; then exit 1; fi
echo "The package installs, serves, drains and goes."
INSIDE

#!/usr/bin/env bash
# Run a command in a copy of this checkout, on a machine with only Debian's minimal system and make:
#     packaging/fresh-machine.sh [--until TEXT] [--keep FOLDER] COMMAND...
#     packaging/fresh-machine.sh --until Operational make run
# It prints the seconds at which each line came, and how long the whole took; with --until it ends at the first line that
# has TEXT, and with --keep it copies the files that the command left in dist/ to FOLDER. Packages come from the same sources
# as this machine's: only its settings for apt, pip and npm are copied. It needs root, debootstrap and unshare.
# FRESH_BASE names the folder of the minimal system, which is created if it is absent.
set -eu -o pipefail
until="" keep=""
while :; do
    case ${1:-} in
        --until) until=$2; shift 2 ;;
        --keep) keep=$2; shift 2 ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || { sed -n '2,8s/^# //p' "$0" >&2; exit 2; }
for program in debootstrap unshare; do
    command -v "$program" >/dev/null || { echo "fresh-machine: $program is missing" >&2; exit 1; }
done
checkout=$(cd "$(dirname "$0")/.." && pwd)
base=${FRESH_BASE:-$checkout/build/fresh-machine}
if [ ! -e "$base/etc/debian_version" ]; then
    mirror=$("$checkout/make/system.sh" mirror)
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    rm -rf "$base" && mkdir -p "$(dirname "$base")"
    debootstrap --variant=minbase --include=make,ca-certificates "$suite" "$base" "$mirror" >&2
fi
machine=$(mktemp -d)
trap 'rm -rf --one-file-system "$machine"' EXIT
cp -a "$base/." "$machine"
rm -rf "$machine/etc/apt"
for settings in etc/apt etc/pip.conf root/.config/pip root/.pip root/.npmrc etc/npmrc usr/etc/npmrc etc/ssl/certs/ca-certificates.crt \
    usr/share/keyrings usr/local/share/ca-certificates etc/resolv.conf etc/hosts; do
    if [ -e "/$settings" ]; then mkdir -p "$machine/${settings%/*}" && cp -aLT --remove-destination "/$settings" "$machine/$settings"; fi
done
mkdir "$machine/trouter"
git -C "$checkout" ls-files -z | tar -C "$checkout" --null -T - -cf - | tar -C "$machine/trouter" -xf -
kept=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 PYTHONUNBUFFERED=1)
while IFS= read -r -d '' setting; do
    case $setting in PIP_*|npm_config_*|NPM_CONFIG_*|*_proxy=*|*_PROXY=*|SSL_CERT_*|NODE_EXTRA_CA_CERTS=*|FRESH_*) kept+=("$setting") ;; esac
done < /proc/self/environ
# The processes run in a namespace that ends with its first process, so that the command leaves no process behind.
exec 3< <(exec unshare --mount --pid --fork --kill-child env -i "${kept[@]}" sh -c '
    mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && cd "$0/trouter" && exec chroot "$0" sh -c "cd /trouter && exec \"\$@\"" sh "$@"
    ' "$machine" "$@" 2>&1; )
child=$!
begun=$EPOCHREALTIME
since() { awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%6.1f s", b - a }'; }
reached=no
while IFS= read -r line <&3; do
    printf '%s  %s\n' "$(since)" "$line"
    if [ -n "$until" ] && [[ $line == *"$until"* ]]; then reached=yes; break; fi
done
status=0
if [ $reached = yes ]; then kill -KILL "$child"; wait "$child" 2>/dev/null || true; else wait "$child" || status=$?; fi
printf '%s  in all\n' "$(since)"
if [ -n "$keep" ] && [ -d "$machine/trouter/dist" ]; then mkdir -p "$keep" && cp -R "$machine/trouter/dist/." "$keep"; fi
if [ -n "$until" ] && [ $reached = no ]; then exit 1; fi
exit $status

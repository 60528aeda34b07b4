#!/bin/sh
# List the chores: those of every day with what they do, and the names of the others by group; or describe a group: make/help.sh [GROUP]
# A chore is described behind `##` in the line of its target.
described() { sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/make \1|\2/p' "$1" | awk -F '|' '{printf "%-20s %s\n", $1, $2}'; }
if [ -n "${1:-}" ]; then
    [ -e "make/$1.mk" ] || { echo "make: there is no group $1" >&2; exit 2; }
    described "make/$1.mk"
    exit
fi
described Makefile
echo
echo "More, by group ('make help GROUP=tests' describes them):"
for file in make/*.mk; do
    group=${file#make/}
    echo "  ${group%.mk}: $(sed -n 's/^\([a-z0-9-]*\):.*## .*/\1/p' "$file" | tr '\n' ' ')" | fold -s -w 118 | sed '2,$s/^/      /'
done

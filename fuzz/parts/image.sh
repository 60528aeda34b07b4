#!/bin/bash -eu
# Build fuzzers by .clusterfuzzlite/build.sh as its image would, and let each try its seeds: all, or those of the arguments.
#
# In place of the image: a copy of the sources, clang of this machine, an environment that has the packages of the one of
# PYTHON, and a `compile_python_fuzzer` that does what the image's does, by PyInstaller.
here="$(cd "$(dirname "$0")/../.." && pwd)"
work="$here/build/image"
rm -rf "$work"
mkdir -p "$work/src" "$work/out" "$work/work" "$work/tools"
export SRC="$work/src" OUT="$work/out" WORK="$work/work"
git -C "$here" ls-files --cached --others --exclude-standard -z | (cd "$here" && tar --null -T - -cf -) | (mkdir "$SRC/trouter" && tar -xf - -C "$SRC/trouter")

"$PYTHON" -m venv "$work/environment"
packages="import sysconfig; print(sysconfig.get_path('purelib'))"
own="$("$work/environment/bin/python" -c "$packages")"
echo "import site; site.addsitedir('$("$PYTHON" -c "$packages")')" >"$own/zz-others.pth"
export ATHERIS="$("$PYTHON" -c 'import atheris; print(atheris.path())')"

cat >"$work/tools/compile_python_fuzzer" <<'EOF'
#!/bin/bash -eu
harness="$1"
name="$(basename "$harness" .py)"
shift
python3 -m PyInstaller --log-level WARN --distpath "$OUT" --workpath "$SRC/pyinstaller/$name" --specpath "$SRC/pyinstaller" \
  --onefile --name "$name.pkg" "$@" "$harness"
cat >"$OUT/$name" <<END
#!/bin/sh
# LLVMFuzzerTestOneInput: by this word the services know a fuzzer.
here="\$(dirname "\$0")"
LD_PRELOAD="\$here/sanitizer_with_fuzzer.so" ASAN_OPTIONS=detect_leaks=0 exec "\$here/$name.pkg" "\$@"
END
chmod +x "$OUT/$name"
EOF
for tool in pip3:pip python3:python; do
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$work/environment/bin/${tool#*:}" >"$work/tools/${tool%:*}"
done
chmod +x "$work"/tools/*
export PATH="$work/tools:$PATH" CC=clang CXX=clang++ CFLAGS="-O1 -gline-tables-only -fsanitize=address,fuzzer-no-link"
cp "$ATHERIS/asan_with_fuzzer.so" "$OUT/sanitizer_with_fuzzer.so"

"$SRC/trouter/.clusterfuzzlite/build.sh" "$@"
for fuzzer in "$OUT"/*_fuzzer; do
  echo "$(basename "$fuzzer"):"
  mkdir -p "$work/corpus/$(basename "$fuzzer")"
  python3 -m zipfile -e "${fuzzer}_seed_corpus.zip" "$work/corpus/$(basename "$fuzzer")"
  "$fuzzer" -runs=1000 "$work/corpus/$(basename "$fuzzer")" 2>&1 | grep -E 'INITED|DONE|ERROR|Loaded|Exception' || exit 1
done

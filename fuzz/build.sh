#!/bin/bash -eu
# Build the fuzz targets for ClusterFuzzLite and OSS-Fuzz: all, or those that the command line names.
#
# Their image sets SRC, WORK and OUT, the compiler and its flags (CC, CFLAGS), and has pip3 and `compile_python_fuzzer`.
# The hot modules are compiled with these flags, so coverage guides atheris inside them, too, and sanitizers watch them.
cd "$SRC/trouter"
# A sanitizer sees the use of a delivery that has gone only if its memory was given back.
export TROUTER_REUSE=0
pip3 install 'setuptools>=77' 'Cython>=3.1'
# In place: the targets use modules beside the router's, which no package has. python-qpid-proton and PyJWT are second opinions.
pip3 install --no-build-isolation -e '.[tools,oauth]'
pip3 install --no-build-isolation -e './pipeline[records]'
export PYTHONPATH="$PWD:$PWD/plugins:$PWD/pipeline/src"
# Modules compiled for libFuzzer can be imported only where it is loaded: here, in contrast to the fuzzers, the interpreted ones are.
export TROUTER_PURE=1

rm -rf "$WORK/harness"
python3 fuzz/run.py "$@" --harness "$WORK/harness"
cp "$WORK"/harness/*_seed_corpus.zip "$WORK"/harness/*.dict "$OUT"
# PyInstaller does not see what compiled modules import.
for harness in "$WORK"/harness/*_fuzzer.py; do
  compile_python_fuzzer "$harness" --collect-submodules trouter --collect-submodules trouter_plugins \
    --collect-submodules trouter_pipeline.spool --copy-metadata trouter
done

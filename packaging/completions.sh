#!/bin/sh
# Write the completions of bash, zsh and fish for a package: `packaging/completions.sh PYTHON SHARE`, where PYTHON has trouter, and
# SHARE is what becomes /usr/share. Shells look for them by the name of the command.
set -eu
python=$1 share=$2
bash=$share/bash-completion/completions fish=$share/fish/vendor_completions.d zsh=$share/zsh/vendor-completions
mkdir -p "$bash" "$fish" "$zsh"
"$python" -m trouter completion bash >"$bash/trouter"
"$python" -m trouter completion zsh >"$zsh/_trouter"
"$python" -m trouter completion fish >"$fish/trouter.fish"
for program in qdstat qdmanage qdrouterd; do
    ln -sf trouter "$bash/$program"
    ln -sf trouter.fish "$fish/$program.fish"
done

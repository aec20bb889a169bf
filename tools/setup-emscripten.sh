#!/bin/bash
# Emscripten for `make wasm`: prints on stdout the folder that holds a usable emcc. That is the one
# on PATH if it is recent enough; else one that this script sets up in $SN_EMSDK [build/emsdk] with
# apt-get and without root: about a minute, 250 MB to download, 1.3 GB on disk, nothing elsewhere.
#
# Debian 12's own Emscripten is too old for today's SIMD names and for ES modules in Node. Debian
# 13's is not, and it needs the same clang-19 and lld-19 that Debian 12 has. Its binaryen wants a
# newer C library, so that one is brought along and used through its own loader.
set -euo pipefail

OLDEST=3.1.69 # before 3.1.58 threads need a file of their own, and older glue knows one name only
EMSCRIPTEN='emscripten=3.1.69*' BINARYEN='binaryen=120*' # of Debian 13
SUITE=trixie
DIR=$(realpath -m "${SN_EMSDK:-$(dirname "$0")/../build/emsdk}")
RUNTIME=(libc6 libstdc++6 libgcc-s1) # of Debian 13, for binaryen
TOOLS=(llvm-19 node-acorn)           # of this system's suite: clang's archiver, emcc's parser

say() {
    echo "$*" >&2
}

give_up() {
    say "setup-emscripten: $*"
    exit 1
}

# True if the emcc in $1 runs and is at least as new as OLDEST.
recent() {
    local version
    version=$("$1/emcc" -dumpversion 2>/dev/null) || return 1
    [ "$(printf '%s\n' "$OLDEST" "${version%%-*}" | sort -V | head -n 1)" = "$OLDEST" ]
}

# apt-get with its own lists and cache, from the sources in $DIR/apt/$1.
apt_from() {
    local sources=$DIR/apt/$1
    shift
    apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$sources" \
        -o Dir::State::lists="$sources/lists" -o Dir::Cache="$sources/cache" \
        -o APT::Sandbox::User=root "$@"
}

# This system's sources into $DIR/apt/$1, with the suite's name changed by the sed script $2.
copy_sources() {
    local to=$DIR/apt/$1 file
    mkdir -p "$to"/lists/partial "$to"/cache/archives/partial
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -f "$file" ] || sed -e "$2" "$file" >"$to/$(basename "${file%.list}").list"
    done
    for file in /etc/apt/sources.list.d/debian*.sources; do
        [ ! -f "$file" ] || sed -e "$2" "$file" >"$to/$(basename "$file")"
    done
}

download() { # a folder of sources, packages...
    local from=$1
    shift
    apt_from "$from" update || true # only a package that is not found matters
    (cd "$DIR/debs" && apt_from "$from" download "$@" >&2) ||
        give_up "apt-get could not download: $*"
}

# $1 (a program) through the C library of Debian 13.
wrap() {
    local lib=usr/lib/x86_64-linux-gnu to
    to=$DIR/binaryen/bin/$(basename "$1")
    cat >"$to" <<WRAPPER
#!/bin/sh
exec "$DIR/runtime/$lib/ld-linux-x86-64.so.2" --library-path \\
    "$DIR/runtime/$lib:$DIR/root/$lib" "$1" "\$@"
WRAPPER
    chmod +x "$to"
}

# What emcc calls clang's tools: this system's, and the ones that were unpacked here.
link_llvm() {
    local tool
    for tool in /usr/lib/llvm-19/bin/* "$DIR"/tools/usr/lib/llvm-19/bin/*; do
        ln -sfn "$tool" "$DIR/llvm/bin/$(basename "$tool")"
    done
}

configure() {
    local share=$DIR/root/usr/share/emscripten
    mkdir -p "$share/node_modules"
    ln -sfn "$DIR/tools/usr/share/nodejs/acorn" "$share/node_modules/acorn"
    cat >"$DIR/config" <<CONFIG
LLVM_ROOT = '$DIR/llvm/bin'
BINARYEN_ROOT = '$DIR/binaryen'
NODE_JS = '$(command -v node)'
FROZEN_CACHE = True
CACHE = '$(find "$DIR/root" -type d -path '*emscripten*/sysroot' -printf '%h\n' -quit)'
CONFIG
    # emcc's scripts must not take the type of a package that this folder lies in.
    echo '{ "type": "commonjs" }' >"$DIR/package.json"
    printf '#!/bin/sh\nEM_CONFIG="%s" exec "%s/emcc" "$@"\n' "$DIR/config" "$share" \
        >"$DIR/bin/emcc"
    chmod +x "$DIR/bin/emcc"
}

set_up() {
    [ "$(uname -m)" = x86_64 ] || give_up "please install emcc $OLDEST or later on this machine"
    command -v apt-get >/dev/null || give_up "please install emcc $OLDEST or later; no apt-get here"
    for tool in clang wasm-ld; do
        [ -x "/usr/lib/llvm-19/bin/$tool" ] ||
            give_up "/usr/lib/llvm-19/bin/$tool is missing: apt-get install clang-19 lld-19"
    done
    say "setting up Emscripten in $DIR (250 MB to download)"
    rm -rf "$DIR"
    mkdir -p "$DIR"/{debs,root,runtime,tools,binaryen/bin,llvm/bin,bin}
    copy_sources here ''
    copy_sources there "s/[a-z]*-backports//; s/bookworm-updates//; s/bookworm/$SUITE/"
    download there "$EMSCRIPTEN" "$BINARYEN" "${RUNTIME[@]}"
    download here "${TOOLS[@]}"
    local name deb
    for deb in "$DIR"/debs/*.deb; do
        name=$(basename "$deb")
        case " ${TOOLS[*]} " in *" ${name%%_*} "*) dpkg -x "$deb" "$DIR/tools" && continue ;; esac
        case " ${RUNTIME[*]} " in *" ${name%%_*} "*) dpkg -x "$deb" "$DIR/runtime" && continue ;; esac
        dpkg --fsys-tarfile "$deb" | tar -x -C "$DIR/root" --exclude='./usr/share/emscripten/test' \
            --exclude='./usr/share/doc' --exclude='*asan*'
    done
    for name in "$DIR"/root/usr/bin/wasm-*; do wrap "$name"; done
    link_llvm
    configure
    rm -rf "$DIR/debs" "$DIR/apt"
    recent "$DIR/bin" || give_up "the emcc that was set up does not run: $DIR/bin/emcc"
}

on_path=$(dirname "$(command -v emcc || echo /)")
if recent "$on_path"; then
    echo "$on_path"
else
    recent "$DIR/bin" || set_up
    echo "$DIR/bin"
fi

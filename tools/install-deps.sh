#!/bin/sh
# Checks for what building and testing need and installs what is missing with apt-get, if this
# is root or sudo asks for no password. Else it names what is missing and ends with 1.
# Versions are pinned by package name where one matters: clang-19 holds the sanitizers and
# libFuzzer that the tests are written against.
set -eu

missing='' packages=''

need() { # what is missing, the Debian package that has it
    missing="$missing  $1
"
    case " $packages " in
    *" $2 "*) ;;
    *) packages="$packages $2" ;;
    esac
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# True if the compiler and options given make a program.
builds() {
    echo 'int main(void) { return 0; }' | "$@" -x c - -o /dev/null >/dev/null 2>&1
}

need_emulator() {
    has "qemu-$1-static" || has "qemu-$1" || need "qemu-$1, the user mode emulator" qemu-user-static
}

check() {
    missing='' packages=''
    has gcc || need 'gcc' gcc
    has g++ || need 'g++' g++
    echo '#include <stdio.h>' | gcc -E - >/dev/null 2>&1 || need 'the C library headers' libc6-dev
    has make || need 'make' make
    has objdump && has nm && has objcopy || need 'objdump, nm and objcopy' binutils
    has cmake || need 'cmake' cmake
    has pkg-config || need 'pkg-config' pkg-config
    has groff || need 'groff' groff-base
    has node || need 'node' nodejs
    has npm || need 'npm' npm
    python3 -c 'import ensurepip, venv' >/dev/null 2>&1 ||
        need 'python3 with its module venv' python3-venv
    has chromium || need 'chromium' chromium
    has clang-19 || need 'clang-19' clang-19
    builds clang-19 -fsanitize=address || need "clang-19's sanitizers and libFuzzer" \
        libclang-rt-19-dev
    has llvm-objdump-19 && has llvm-nm-19 || need 'llvm-objdump-19 and llvm-nm-19' llvm-19
    has wasm-ld-19 || need 'wasm-ld-19' lld-19
    [ -d /usr/include/wasm32-wasi ] || need 'the C library of WASI' wasi-libc
    builds clang-19 --target=wasm32-wasi || need "clang-19's runtime for WebAssembly" \
        libclang-rt-19-dev-wasm32
    # Emulators show what the library does on other CPUs; AArch64 needs its compiler elsewhere.
    # wine runs what was built for Windows; its loader for 64 bits is enough. valgrind counts.
    if [ "$(uname -m)" = x86_64 ]; then
        need_emulator x86_64
        has wine && has wineserver || need 'wine and wineserver' wine
        has valgrind || need 'valgrind' valgrind
    fi
    need_emulator aarch64
    has aarch64-linux-gnu-gcc || need 'aarch64-linux-gnu-gcc' gcc-aarch64-linux-gnu
    builds aarch64-linux-gnu-gcc -static || need 'the C library for AArch64' libc6-dev-arm64-cross
}

give_up() {
    printf 'missing:\n%s%s\n' "$missing" "$1" >&2
    exit 1
}

# The tests need Node 20; Debian 12's is older, so npm's package brings one (the Makefile puts it
# first on PATH).
bring_node() {
    node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' && return
    echo 'installing node 20 into build/node'
    npm install --no-audit --no-fund --loglevel=error --prefix build/node node@20.20.2
}

check
if [ -z "$missing" ]; then
    bring_node
    exit 0
fi
has apt-get || give_up 'Please install them; there is no apt-get here to do it.'
root=''
if [ "$(id -u)" != 0 ]; then
    root='sudo -n'
    sudo -n true 2>/dev/null || give_up "Please run: sudo apt-get install$packages"
fi
echo "installing$packages"
$root apt-get update -qq || true # a mirror that fails matters only if a package is not found
# shellcheck disable=SC2086 # a list of words on purpose
$root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends $packages >/dev/null ||
    give_up "apt-get could not install$packages"
check
[ -z "$missing" ] || give_up 'The packages of this system do not bring them.'
bring_node

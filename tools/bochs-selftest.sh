#!/bin/sh
# Runs the self-test and the small test models by every back end on an emulated PC whose CPU has
# AVX-512 and VNNI, for machines that lack them. Bochs interprets each instruction.
#
#   tools/bochs-selftest.sh [CPU]      a model of `bochs --help cpu`; default corei7_icelake_u
#
# Not part of `make test`: 3 minutes with Bochs 3, about 15 with 2.7.
# Needs Debian's bochs bochs-term bochsbios vgabios isolinux syslinux-common xorriso; no root. No
# operating system runs in there: tools/bochs/ starts a static program in 64-bit mode and answers
# its few system calls. The same file also runs here, outside, first; all back ends in Bochs must
# give the hashes of the scalar one outside.
#
# Bochs 2.7 of Debian 12 has no CPU model with AVX-VNNI; sapphire_rapids and arrow_lake of Bochs 3
# have. SN_BOCHS names the program, SN_BOCHS_DISPLAY its display library [term].
set -eu

cpu=${1:-corei7_icelake_u}
here=$(cd "$(dirname "$0")/.." && pwd)
bochs=${SN_BOCHS:-bochs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
models='rwkv7-micro.f16 rwkv7-k256.q8_0 rwkv7-k256.q4_k_m rwkv7-k256.q6_k'

# ---- the program -------------------------------------------------------------------------

{
    echo '.section .rodata'
    for model in $models; do
        printf '.balign 64\n"begin %s": .incbin "%s"\n"end %s":\n"name %s": .asciz "%s"\n' \
            "$model" "$here/models/test/$model.gguf" "$model" "$model" "$model"
    done
    printf '.balign 8\n.globl models\nmodels:\n'
    for model in $models; do
        printf '.quad "name %s", "begin %s", "end %s"\n' "$model" "$model" "$model"
    done
    printf '.quad 0, 0, 0\n.section .note.GNU-stack, "", @progbits\n'
} > "$work/models.S"

make -C "$here" BUILD=build/bochs build/bochs/libsunnynet.a
cd "$work"
build() { gcc -std=c11 -O2 -Wall -Wextra -fno-pie -I"$here/core" "$@"; }
build -c "$here/tools/bochs/main.c" "$here/tools/bochs/boot.S" models.S
# Inside a system call nobody saves vector registers, and there is no library.
build -mgeneral-regs-only -ffreestanding -fno-stack-protector -c "$here/tools/bochs/system.c"
gcc -static -no-pie -o selftest boot.o system.o main.o models.o "$here/build/bochs/libsunnynet.a" \
    -pthread
./selftest > native

# The bytes as they lie in memory from the ELF header on, which the C library wants to see; but
# the loader must not: it takes every ELF file for a 32-bit one.
first=$((0x$(readelf -SW selftest | sed -n 's/^ *\[ *1\] *[^ ]* *[^ ]* *[^ ]* *\([^ ]*\).*/\1/p')))
objcopy -O binary selftest sections
mkdir boot
{ printf none; head -c "$first" selftest | tail -c +5; cat sections; } > boot/image

# ---- the machine -------------------------------------------------------------------------

cp /usr/lib/ISOLINUX/isolinux.bin boot/
for module in ldlinux mboot libcom32; do cp "/usr/lib/syslinux/modules/bios/$module.c32" boot/; done
cat > boot/isolinux.cfg <<'CONFIG'
serial 0 115200
default selftest
label selftest
kernel mboot.c32
append image
CONFIG
xorriso -as mkisofs -quiet -o boot.iso -b isolinux.bin -c boot.cat -no-emul-boot \
    -boot-load-size 4 -boot-info-table boot
cat > bochsrc <<CONFIG
cpu: model=$cpu, count=1, ips=100000000, reset_on_triple_fault=0
megs: 512
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
display_library: ${SN_BOCHS_DISPLAY:-term}
ata0-master: type=cdrom, path=boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=serial
log: log
panic: action=fatal
clock: sync=none
CONFIG
# Debian's build has a debugger, which wants a command to begin. Bochs takes the program's wish to
# end for a panic, hence no look at its exit code.
echo c > commands
debugger=$("$bochs" --help 2>&1 | sed -n 's/^ *\(-rc\) .*/\1 commands/p')
TERM=linux "$bochs" -q -f bochsrc $debugger > display 2>&1 < /dev/null || true
tr -d '\r' < serial > emulated
cat emulated

# ---- the verdict -------------------------------------------------------------------------

grep -q '^end: all good$' native
grep -q '^end: all good$' emulated
# hashes of each back end, under the name of scalar
hashes() { sed -n "s/^$2 *\(rwkv7.*\)/\1/p" "$1"; }
hashes native scalar > wanted
for backend in $(awk '/activations/ { print $1 }' emulated | sort -u); do
    hashes emulated "$backend" | cmp - wanted || { echo "$backend differs" >&2; exit 1; }
    echo "$backend: the hashes of the scalar back end outside"
done

#!/bin/sh
# bench/peers/torch.sh FOLDER: Debian's PyTorch (about 150 MB to fetch; the wheels on PyPI are made
# for GPUs and ten times that) unpacked into FOLDER. Nothing is installed and no root is needed.
# FOLDER/python is an interpreter that finds it, with OpenBLAS: the plain BLAS is several times
# slower, and OpenBLAS with threads of its own gets into the way of PyTorch's.
set -eu

folder=$1
here=$(pwd)

command -v apt-get >/dev/null && command -v dpkg >/dev/null || {
    echo 'torch.sh: PyTorch is taken from Debian: there is no apt-get here' >&2
    exit 1
}
mkdir -p "$folder/packages" "$folder/root"
packages=$(apt-get --simulate --no-install-recommends install python3-torch \
    libopenblas0-openmp | awk '/^Inst/ { print $2 }')
[ -n "$packages" ] || packages="python3-torch libopenblas0-openmp"
(cd "$folder/packages" && apt-get download --quiet --quiet $packages)
for package in "$folder"/packages/*.deb; do dpkg --extract "$package" "$folder/root"; done
rm -r "$folder/packages"

triplet=$(gcc -dumpmachine)
usr=$here/$folder/root/usr/lib
libraries=$usr/$triplet/openblas-openmp:$usr/$triplet:$usr/$triplet/lapack:$usr
libraries=$libraries:$here/$folder/root/lib/$triplet
cat > "$folder/python.new" <<END
#!/bin/sh
export PYTHONPATH="$usr/python3/dist-packages"
export LD_LIBRARY_PATH="$libraries"
exec /usr/bin/python3 "\$@"
END
chmod +x "$folder/python.new"
"$folder/python.new" -c 'import torch'
mv "$folder/python.new" "$folder/python"

#!/bin/sh
# stage.sh FOLDER OBJECTS SYSTEM VERSION SOVERSION MAN: makes the folder of a release from what was
# linked in OBJECTS. SYSTEM is linux, macos or windows.
set -eu

folder=$1 objects=$2 system=$3 version=$4 soversion=$5 man=$6

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/include" "$folder/lib/pkgconfig" "$folder/lib/cmake/sunnynet" \
    "$folder/share/sunnynet" "$folder/share/man/man1"
cp core/sunnynet.h "$folder/include"
[ ! -f core/sn_abi.h ] || cp core/sn_abi.h "$folder/include"
cp LICENSE "$folder"
cp packaging/README.txt "$folder/README"
cp models/rwkv7-fairy.gguf "$folder/share/sunnynet"
cp "$man" "$folder/share/man/man1"

libraries=../.. soname='' implib=''
case $system in
linux | macos)
    if [ "$system" = linux ]; then
        shared=libsunnynet.so.$version soname=libsunnynet.so.$soversion plain=libsunnynet.so
    else
        shared=libsunnynet.$version.dylib soname=libsunnynet.$soversion.dylib
        plain=libsunnynet.dylib
    fi
    cp "$objects/sunnynet" "$folder/bin"
    cp "$objects/$shared" "$folder/lib"
    ln -s "$shared" "$folder/lib/$soname"
    ln -s "$soname" "$folder/lib/$plain"
    [ "$system" = linux ] || soname=@rpath/$soname
    ;;
windows)
    shared=../bin/sunnynet.dll implib=sunnynet.lib
    cp "$objects/sunnynet.exe" "$objects/sunnynet.dll" "$folder/bin"
    cp "$objects/sunnynet.lib" "$folder/lib"
    ;;
esac

# shellcheck disable=SC2016 # pkg-config's variable
sed -e 's|@PREFIX@|${pcfiledir}/../..|' -e 's|@LIBDIR@|${prefix}/lib|' \
    -e 's|@INCLUDEDIR@|${prefix}/include|' -e "s|@VERSION@|$version|" \
    packaging/sunnynet.pc.in > "$folder/lib/pkgconfig/sunnynet.pc"
sed -e 's|@INCLUDE@|../../../include|' -e "s|@LIBRARIES@|$libraries|" -e "s|@SHARED@|$shared|" \
    -e "s|@SONAME@|$soname|" -e "s|@IMPLIB@|$implib|" -e 's|@STATIC@||' \
    packaging/sunnynetConfig.cmake.in > "$folder/lib/cmake/sunnynet/sunnynetConfig.cmake"
sed "s|@VERSION@|$version|" packaging/sunnynetConfigVersion.cmake.in \
    > "$folder/lib/cmake/sunnynet/sunnynetConfigVersion.cmake"

cd "$folder"
find . -type f ! -name SHA256SUMS | sed 's|^\./||' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS

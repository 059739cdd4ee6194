#!/bin/sh
# SPDX-License-Identifier: MIT
#
# dist-static.sh SOURCE VERSION
#
# Build a dlock that loads nothing at run time from SOURCE, a source tree that is not configured itself, and make a
# tarball of what "make install" installs: the program, the manual, the completions, the documentation, and the licenses
# of the libraries in it.  Works in the current folder, and leaves the tarball and the folder that it contains there.
#
# It needs static libraries, which Debian has in libc6-dev, libhiredis-dev and libssl-dev, and those that OpenSSL needs:
# on Debian 13 libzstd-dev and zlib1g-dev.

set -eu

source=$1
name=dlock-$2-linux-$(uname -m)

# package LIBRARY: the package of Debian that has it.
package() {
    case $1 in
        -lc | -lm | -ldl | -lpthread) echo libc6-dev ;;
        -l:libhiredis.a) echo libhiredis-dev ;;
        -lssl | -lcrypto) echo libssl-dev ;;
        -lz) echo zlib1g-dev ;;
        *) echo "lib${1#-l}-dev" ;;
    esac
}

packages='' missing=''
for library in -lc -l:libhiredis.a -lssl $(pkg-config --static --libs-only-l openssl 2>/dev/null); do
    package=$(package "$library")
    case " $packages " in *" $package "*) continue ;; esac
    packages="$packages $package"
    echo 'int main(void) { return 0; }' |
        ${CC:-cc} -static -x c - "$library" -o probe >/dev/null 2>&1 || missing="$missing $package"
done
rm -f probe
if [ -n "$missing" ]; then
    echo "make dist-static needs static libraries; on Debian: apt install$missing" >&2
    exit 1
fi

# The linker warns that libc loads libraries for names, and OpenSSL for providers: not here, see src/net/static.c.
quietly() {
    "$@" >log 2>&1 || {
        cat log >&2
        exit 1
    }
}

quietly "$source/configure" -q --enable-static-binary --prefix="$PWD/$name" CC="${CC:-cc}" CFLAGS="${CFLAGS:--O2 -g}"
quietly make -s install-strip

for package in $packages; do
    cp "/usr/share/doc/$package/copyright" "$name/share/doc/dlock/copyright.${package%-dev}" || {
        echo "make dist-static needs Debian's package $package, for its license" >&2
        exit 1
    }
done
tar --owner=0 --group=0 --numeric-owner --sort=name -cJf "$name.tar.xz" "$name"
echo "$name.tar.xz"

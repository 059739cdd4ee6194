#!/bin/sh
# SPDX-License-Identifier: MIT
#
# make-deb.sh TARBALL VERSION
#
# Build Debian packages from the release tarball and packaging/debian in it, in the folder "deb", and
# let lintian look at them.  The tests are not run: make check is for that.

set -eu

tarball=$(realpath "$1")
version=$2

for program in dpkg-buildpackage dh lintian; do
    command -v "$program" >/dev/null || {
        echo "make deb needs $program: apt-get install dpkg-dev debhelper lintian" >&2
        exit 1
    }
done

rm -rf deb
mkdir deb
cd deb
ln "$tarball" "dlock_$version.orig.tar.xz" 2>/dev/null || cp "$tarball" "dlock_$version.orig.tar.xz"
tar xf "dlock_$version.orig.tar.xz"
cd "dlock-$version"
cp -r packaging/debian debian
packaged=$(dpkg-parsechangelog -S Version)
[ "${packaged%-*}" = "$version" ] || {
    echo "packaging/debian/changelog is about $packaged, this is $version" >&2
    exit 1
}
# Of the make that calls this, nothing.
env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage --no-sign --build=full
cd ..
lintian --info --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "dlock_${packaged}_"*.changes
ls -- *.deb

#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes a Debian package of the files staged in BUILD/root: data/deb.sh BUILD VERSION
# The package depends on the libraries of the Debian or Ubuntu release that it is made on.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD build=$1 version=$2
root=$build/root
umask 022
doc=$root/usr/share/doc/weir

# Strip as debhelper does.
strip --remove-section=.comment --remove-section=.note "$root"/usr/bin/*
strip --remove-section=.comment --remove-section=.note --strip-unneeded \
  "$root"/usr/lib/*/gstreamer-1.0/*.so "$root"/usr/lib/*/libweir-store-*.so
chmod 644 "$root"/usr/lib/*/gstreamer-1.0/*.so "$root"/usr/lib/*/libweir-store-*.so
strip --strip-debug --enable-deterministic-archives "$root"/usr/lib/*/*.a
find "$root/usr/share/man" -type f -exec gzip -9n {} +
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
cat >"$doc/copyright" <<'EOF'
Copyright (c) the authors of Weir

Weir is free software: you can redistribute it and modify it under the terms of the GNU Lesser
General Public License, version 2.1 or any later version. On Debian systems its text is in
/usr/share/common-licenses/LGPL-2.1.

The page of rtsp-proxy contains hls.js, Copyright (c) 2017 Dailymotion (http://www.dailymotion.com),
under the Apache License, Version 2.0: /usr/share/common-licenses/Apache-2.0.
EOF

# dpkg-shlibdeps needs the layout of a source package.
mkdir -p "$build/debian" "$root/DEBIAN"
printf 'Source: weir\n\nPackage: weir\nArchitecture: any\n' >"$build/debian/control"
depends=$(cd "$build" && dpkg-shlibdeps -O root/usr/bin/* root/usr/lib/*/gstreamer-1.0/*.so \
  root/usr/lib/*/libweir-store-*.so)
echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"

cat >"$root/DEBIAN/control" <<EOF
Package: weir
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: ${DEBFULLNAME:-Weir} <${DEBEMAIL:-weir@localhost}>
Section: video
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Depends: ${depends#shlibs:Depends=}, gstreamer1.0-plugins-base, gstreamer1.0-plugins-good
Recommends: gstreamer1.0-plugins-bad, gstreamer1.0-tools
Suggests: gstreamer1.0-libav, gstreamer1.0-plugins-ugly, gnuplot-nox, libgstrtspserver-1.0-dev
Description: RTSP proxy and GStreamer elements that serve many readers
 rtsp-proxy makes one connection to each camera or other upstream and serves it
 to any number of readers. rtsp-load reads any RTSP server with many readers and
 measures packet loss and delay. weir-store keeps titles in blocks on many disks
 for video on demand. The GStreamer elements of both work in
 pipelines and in other programs; headers and static libraries are included.
EOF
cat >"$root/DEBIAN/postinst" <<'EOF'
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart rtsp-proxy.service
fi
EOF
cat >"$root/DEBIAN/prerm" <<'EOF'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl --quiet disable --now rtsp-proxy.service
fi
EOF
cat >"$root/DEBIAN/postrm" <<'EOF'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
EOF
chmod 755 "$root"/DEBIAN/p*
(cd "$root" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)

package=$build/weir_${version}_$(dpkg --print-architecture).deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "${package#"$source/"}"

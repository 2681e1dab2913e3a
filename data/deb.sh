#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes Debian packages of the files staged in BUILD/root: data/deb.sh BUILD VERSION
# weir-swarm has the plugin that needs libtorrent, if it was built; weir has all else. They depend on
# the libraries of the Debian or Ubuntu release that they are made on.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD build=$1 version=$2
root=$build/root
arch=$(dpkg --print-architecture)
umask 022

# Strip as debhelper does.
strip --remove-section=.comment --remove-section=.note "$root"/usr/bin/*
strip --remove-section=.comment --remove-section=.note --strip-unneeded \
  "$root"/usr/lib/*/gstreamer-1.0/*.so "$root"/usr/lib/*/libweir-store-*.so
chmod 644 "$root"/usr/lib/*/gstreamer-1.0/*.so "$root"/usr/lib/*/libweir-store-*.so
strip --strip-debug --enable-deterministic-archives "$root"/usr/lib/*/*.a
find "$root/usr/share/man" -type f -exec gzip -9n {} +

# dpkg-shlibdeps needs the layout of a source package.
mkdir -p "$build/debian"
printf 'Source: weir\n\nPackage: weir\nArchitecture: any\n' >"$build/debian/control"

# depends ROOT: prints the packages of the libraries that the programs and plugins in ROOT link.
depends() {
  mkdir -p "$1/DEBIAN" # by which dpkg-shlibdeps knows the libraries of the same package
  (cd "$build" && find "$1/usr" \( -path '*/usr/bin/*' -o -name '*.so' \) -exec dpkg-shlibdeps -O {} +) |
    sed 's/^shlibs:Depends=//'
}

# pack NAME ROOT: makes a package of ROOT. The rest of its control file is read from standard input.
pack() {
  local name=$1 root=$2 doc=$2/usr/share/doc/$1 package=$build/$1_${version}_$arch.deb
  mkdir -p "$doc" "$root/DEBIAN"
  gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
  cat >"$doc/copyright" <<'END'
Copyright (c) the authors of Weir

Weir is free software: you can redistribute it and modify it under the terms of the GNU Lesser
General Public License, version 2.1 or any later version. On Debian systems its text is in
/usr/share/common-licenses/LGPL-2.1.
END
  [ "$name" != weir ] || cat >>"$doc/copyright" <<'END'

The page of rtsp-proxy contains hls.js, Copyright (c) 2017 Dailymotion (http://www.dailymotion.com),
under the Apache License, Version 2.0: /usr/share/common-licenses/Apache-2.0.
END
  {
    cat <<END
Package: $name
Version: $version
Architecture: $arch
Maintainer: ${DEBFULLNAME:-Weir} <${DEBEMAIL:-weir@localhost}>
Section: video
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
END
    cat
  } >"$root/DEBIAN/control"
  (cd "$root" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)
  dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
  echo "${package#"$source/"}"
}

# What is in a package of its own.
swarm=$build/root-swarm recommends=''
rm -rf "$swarm" "$build"/weir*.deb
for plugin in "$root"/usr/lib/*/gstreamer-1.0/libgstweirswarm.so; do
  [ -e "$plugin" ] || continue
  folder=$swarm/${plugin#"$root/"}
  mkdir -p "${folder%/*}"
  mv "$plugin" "$folder"
  recommends="weir-swarm (= $version), "
  pack weir-swarm "$swarm" <<END
Depends: $(depends "$swarm"), weir (= $version)
Replaces: weir
Description: RTSP proxy: titles that readers send each other
 The GStreamer element swarmsrc, with which rtsp-proxy serves the titles of
 torrents: it reads them from BitTorrent peers, and from an HTTP server what
 would come too late. rtsp-proxy runs without it.
END
done

depends=$(depends "$root")
echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ "$1" = configure ]; then
  systemd-sysusers rtsp-proxy.conf
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart rtsp-proxy.service
  fi
fi
END
cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl --quiet disable --now rtsp-proxy.service
fi
END
cat >"$root/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
END
chmod 755 "$root"/DEBIAN/p*
pack weir "$root" <<END
Depends: $depends, gstreamer1.0-plugins-base, gstreamer1.0-plugins-good, systemd | systemd-standalone-sysusers | systemd-sysusers
Recommends: ${recommends}gstreamer1.0-plugins-bad, gstreamer1.0-tools
Suggests: gstreamer1.0-libav, gstreamer1.0-plugins-ugly, gnuplot-nox, graphviz, libgstrtspserver-1.0-dev
Description: RTSP proxy and GStreamer elements that serve many readers
 rtsp-proxy makes one connection to each camera or other upstream and serves it
 to any number of readers. rtsp-load reads any RTSP server with many readers and
 measures packet loss and delay. weir-store keeps titles in blocks on many disks
 for video on demand. The GStreamer elements of both work in
 pipelines and in other programs; headers and static libraries are included.
END

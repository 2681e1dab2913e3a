#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Installs Debian packages, as root: install-debs.sh PACKAGE...
# Some would start a daemon at once and at each boot. The services that packages.txt names do neither:
# they are masked first, and a policy refuses their init scripts for this run. A service that the system
# has already belongs to somebody else, and stays as it is.
set -eu

policy=/usr/sbin/policy-rc.d
masked=''
for service in $(sed -n 's/.* service://p' "$(dirname "$0")/packages.txt"); do
  unit=/etc/systemd/system/$service.service
  if [ "$(readlink "$unit")" != /dev/null ]; then
    [ ! -e "$unit" ] && [ ! -e "/lib/systemd/system/$service.service" ] &&
      [ ! -e "/etc/init.d/$service" ] || continue
    mkdir -p "${unit%/*}"
    ln -s /dev/null "$unit"
    echo "dev: the service $service will not start; to allow it: systemctl unmask $service"
  fi
  masked="$masked $service"
done

restore() {
  rm -f "$policy"
  [ ! -e "$policy.before-weir" ] || mv "$policy.before-weir" "$policy"
}
if [ -n "$masked" ]; then
  [ -e "$policy.before-weir" ] || [ ! -e "$policy" ] || mv "$policy" "$policy.before-weir"
  trap restore EXIT
  trap 'exit 1' HUP INT TERM
  cat >"$policy" <<END
#!/bin/sh
for word in "\$@"; do
  case \${word%.service} in $(echo $masked | sed 's/ / | /g')) exit 101 ;; esac
done
[ ! -x $policy.before-weir ] || exec $policy.before-weir "\$@"
END
  chmod 755 "$policy"
fi

apt-get -q update
DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends install "$@"

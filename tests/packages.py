# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which packages the commands of dev install, and that no daemon starts by it. Everything that would
change the system is replaced, in a mount namespace of the test."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from tap import Skip, run, test

ROOT = pathlib.Path(__file__).resolve().parents[1]
MASKED = ['nginx', 'opentracker', 'etcd']

# In place of the scripts that would start daemons, it writes down what would stop them.
APT_GET = r"""#!/bin/sh
cd "$(dirname "$0")/.."
case " $* " in *' install '*) ;; *) exit 0 ;; esac
for word; do echo "$word"; done >installed
for service in nginx opentracker.service etcd ssh cron.service; do
  if [ -x /usr/sbin/policy-rc.d ] && ! /usr/sbin/policy-rc.d --quiet $service start; then
    echo $service
  fi
done >refused
for name in nginx opentracker etcd; do readlink /etc/systemd/system/$name.service; done >masks
[ ! -e fails ]
"""
SUDO = """#!/bin/sh
echo "$@" >>"$(dirname "$0")/../sudo-calls"
exec "$@"
"""
STUBS = {'apt-get': APT_GET, 'sudo': SUDO, 'meson': '#!/bin/sh\nexit 3\n', 'ninja': '#!/bin/sh\nexit 3\n',
         'dpkg-query': '#!/bin/sh\nexit 1\n', 'dpkg-buildflags': '#!/bin/sh\n',
         'dpkg-architecture': '#!/bin/sh\n'}


# What the installation looks at or changes, as folders of the test.
PLACES = {'sbin': '/usr/sbin', 'systemd': '/etc/systemd', 'units': '/lib/systemd/system',
          'init.d': '/etc/init.d'}


class Machine:
    """A system without packages."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        for name, text in STUBS.items():
            self.stub(name, text)
        for name in PLACES:
            (self.folder / name).mkdir()
        # A tree of its own: the commands would change the build directory of the run that this is part of.
        shutil.copytree(ROOT / 'tests/support', self.folder / 'tree/tests/support')
        shutil.copy(ROOT / 'dev', self.folder / 'tree')

    def stub(self, name, text):
        path = self.folder / 'bin' / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding='utf-8')
        path.chmod(0o755)

    def dev(self, *words):
        """Runs a command of dev, which ends when it would build. Returns its output."""
        mounts = ' && '.join(f'mount --bind {self.folder}/{name} {place}'
                             for name, place in PLACES.items() if os.path.isdir(place))
        script = f'{mounts} || exit 77; bash {self.folder}/tree/dev "$@"'
        root = [] if os.geteuid() == 0 else ['-r']
        path = f'{self.folder}/bin:/usr/bin:/bin'
        done = subprocess.run(['unshare', *root, '-m', 'sh', '-c', script, 'sh', *words], text=True,
                              env={**os.environ, 'PATH': path}, timeout=30, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode == 77 or done.stdout.startswith('unshare: '):
            raise Skip('a mount namespace is not allowed here')
        return done.stdout

    def lines(self, name):
        path = self.folder / name
        return path.read_text(encoding='utf-8').split() if path.exists() else []

    def packages(self):
        words = self.lines('installed')
        return set(words[words.index('install') + 1:]) if words else set()


def machine():
    return tempfile.TemporaryDirectory(prefix='weir-packages-')


def lists():
    """Returns the packages of each list of packages.txt."""
    found, name = {}, None
    for line in (ROOT / 'tests/support/packages.txt').read_text(encoding='utf-8').splitlines():
        if heading := re.fullmatch(r'\[(\w+)\]', line):
            name = heading[1]
        elif line and not line.startswith('#'):
            found.setdefault(name, set()).add(line.split()[0])
    return found


@test
def building_and_running_install_nothing_of_the_tests():
    assert set(lists()) == {'build', 'test'} and not lists()['build'] & lists()['test']
    for command in 'build', 'run', 'docs', 'deb':
        with machine() as folder:
            computer = Machine(folder)
            computer.dev(command)
            assert computer.packages() - {'dpkg-dev'} == lists()['build'], (command, computer.packages())


@test
def tests_benches_and_fuzzing_install_both_lists():
    for command in ('setup',), ('test',), ('fuzz',), ('soak', '1s'), ('bench',):
        with machine() as folder:
            computer = Machine(folder)
            computer.dev(*command)
            assert computer.packages() - {'libclang-rt-dev'} == lists()['build'] | lists()['test'], command


@test
def daemons_of_the_tests_never_start():
    """daemons of the tests start neither by their installation nor at the next boot"""
    with machine() as folder:
        computer = Machine(folder)
        told = computer.dev('setup')
        assert computer.lines('refused') == ['nginx', 'opentracker.service', 'etcd']
        assert computer.lines('masks') == 3 * ['/dev/null']
        assert not list((computer.folder / 'sbin').iterdir()), 'the policy stays'
        assert all(f'to allow it: systemctl unmask {name}\n' in told for name in MASKED), told
        # Again, for a package that came later.
        assert 'unmask' not in computer.dev('setup')
        assert computer.lines('refused') == ['nginx', 'opentracker.service', 'etcd']


@test
def daemons_do_not_start_by_sudo():
    """a user who is not root installs by one call of sudo, and no daemon starts"""
    with machine() as folder:
        computer = Machine(folder)
        computer.stub('id', '#!/bin/sh\necho 1000\n')
        computer.dev('test')
        calls = (computer.folder / 'sudo-calls').read_text(encoding='utf-8').splitlines()
        assert len(calls) == 1 and 'nginx-light' in calls[0], calls
        assert computer.lines('refused') == ['nginx', 'opentracker.service', 'etcd']


@test
def a_users_own_daemon_stays_as_it_is():
    """the service of a user's own nginx is not masked, and his policy is kept"""
    policy = '#!/bin/sh\nfor word; do [ "$word" != cron.service ] || exit 101; done\n'
    with machine() as folder:
        computer = Machine(folder)
        (computer.folder / 'init.d/nginx').touch()
        (computer.folder / 'units/nginx.service').touch()
        (computer.folder / 'sbin/policy-rc.d').write_text(policy, encoding='utf-8')
        (computer.folder / 'sbin/policy-rc.d').chmod(0o755)
        computer.dev('setup')
        assert computer.lines('refused') == ['opentracker.service', 'etcd', 'cron.service']
        assert computer.lines('masks') == 2 * ['/dev/null']
        names = [path.name for path in (computer.folder / 'sbin').iterdir()]
        assert names == ['policy-rc.d'], names
        assert (computer.folder / 'sbin/policy-rc.d').read_text(encoding='utf-8') == policy


@test
def a_failed_installation_takes_its_policy_back():
    with machine() as folder:
        computer = Machine(folder)
        (computer.folder / 'fails').touch()
        computer.dev('setup')
        assert computer.lines('refused'), 'apt-get was not called'
        assert not list((computer.folder / 'sbin').iterdir())


if __name__ == '__main__':
    run()

# SPDX-License-Identifier: LGPL-2.1-or-later
"""Uses the files that `meson install` has installed, from a staging folder (DESTDIR)."""

import atexit
import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

from control import CLIP_URI, config
from proc import Proc, Rtsp, free_port
from tap import SLOWER, Skip, run, test

ROOT = os.path.realpath(os.path.join(os.environ['WEIR_DATA'], '../..'))
BUILD = os.environ['WEIR_BUILD']
PREFIX = os.environ['WEIR_PREFIX']
PAGES = ['man1/rtsp-proxy.1', 'man1/rtsp-load.1', 'man5/rtsp-proxy.yaml.5']
if os.environ.get('WEIR_STORE_PROGRAM'):
    PAGES += ['man1/weir-store.1']
# Ten times the exposure that systemd-analyze security reports for the unit; today it is 16.
EXPOSURE = 20


@functools.cache
def installed():
    """Returns the prefix below the DESTDIR."""
    if os.environ.get('WEIR_SANITIZER_RUNTIME'):
        raise Skip('a build with sanitizers is not for installation')
    need('meson')
    directory = tempfile.TemporaryDirectory()
    atexit.register(directory.cleanup)
    call('meson', 'install', '-C', BUILD, '--no-rebuild', '--quiet',
         env={**os.environ, 'DESTDIR': directory.name})
    return directory.name + PREFIX


def find(name):
    """Returns the only file with this name."""
    found = [os.path.join(where, name) for where, _, names in os.walk(installed()) if name in names]
    assert len(found) == 1, (name, found)
    return found[0]


def environment(**more):
    """Returns an environment for which the prefix comes first in all search paths."""
    plugins = os.path.dirname(find('libgstweir.so'))
    return {**os.environ, 'GST_PLUGIN_PATH': plugins,
            'GST_REGISTRY': os.path.join(plugins, 'registry.bin'),
            'XDG_DATA_DIRS': os.path.join(installed(), 'share'), **more}


def program(name):
    return os.path.join(installed(), 'bin', name)


def call(*command, env=None, timeout=50):
    """Returns both outputs of a command, which must exit with 0."""
    done = subprocess.run(command, env=env, text=True, timeout=SLOWER * timeout, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, (command, done.returncode, done.stdout)
    return done.stdout


def need(name):
    if not shutil.which(name):
        raise Skip(f'{name} is not on the PATH')


@test
def elements():
    """GStreamer finds the elements in the installed plugin"""
    need('gst-inspect-1.0')
    plugin = find('libgstweir.so')
    told = call('gst-inspect-1.0', 'fanoutsink', env=environment())
    assert re.search(rf'Filename +{re.escape(plugin)}\n', told), told


@test
def programs():
    """the installed rtsp-proxy serves through an installed stage, and rtsp-load reads it"""
    listed = call(program('rtsp-proxy'), '--list-stages', env=environment())
    assert {'pull', 'decode', 'restamp', 'transcode'} <= set(re.findall(r'^(\w+):', listed, re.M))
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        file.write(config({'/clip': {'upstream': CLIP_URI, 'pipeline': ['pull', 'restamp']}}))
        file.flush()
        with Proc(program('rtsp-proxy'), '--config', file.name, env=environment()) as proxy:
            url = proxy.wait_for_line(r' serves (rtsp://\S+)')[1]
            told = call(program('rtsp-load'), '--duration', '1', '--json', url)
            proxy.signal(signal.SIGTERM)
            assert proxy.wait() == 0
    assert json.loads(told)['packets'] > 0, told


def build(module, source, *compiler):
    """Builds a source from outside the tree with pkg-config's flags. Returns the program's path."""
    need('pkg-config')
    pc = find(module + '.pc')
    with open(pc, encoding='utf-8') as file:
        text = file.read()
    # The prefix that an installation without DESTDIR would have written.
    with open(pc, 'w', encoding='utf-8') as file:
        file.write(text.replace(f'prefix={PREFIX}\n', f'prefix={installed()}\n'))
    paths = [os.path.dirname(pc)] + os.environ.get('PKG_CONFIG_PATH', '').split(':')
    env = {**os.environ, 'PKG_CONFIG_PATH': ':'.join(filter(None, paths))}
    flags = shlex.split(call('pkg-config', '--cflags', '--libs', module, env=env))
    assert f'-I{installed()}/include/{module.replace("-rtsp", "")}' in flags, flags
    made = os.path.join(installed(), f'{module}-{compiler[0]}')
    call(*compiler, '-Wall', '-Werror', '-o', made, source, *flags)
    return made


MINIMAL = """#include <weir.h>
int main (void)
{
  gst_init (NULL, NULL);
  return weir_use_fanoutsink (NULL) ? 0 : 1;
}
"""


def embeds(*compiler):
    need(compiler[0])
    api = '.'.join(os.environ['WEIR_VERSION'].split('.')[:2])
    minimal = os.path.join(installed(), 'minimal.c')
    with open(minimal, 'w', encoding='utf-8') as file:
        file.write(MINIMAL)
    call(build(f'weir-{api}', minimal, *compiler), env=environment())
    server = build(f'weir-rtsp-{api}', os.path.join(ROOT, 'docs/examples/serve.c'), *compiler)
    port = free_port()
    with Proc(server, port, env=environment()) as serve:
        serve.wait_for_line(r'^rtsp://127\.0\.0\.1:\d+/test$')
        with Rtsp(port) as rtsp:
            assert rtsp.request('DESCRIBE', f'rtsp://127.0.0.1:{port}/test')[0] == 200


@test
def embedding_in_c():
    """a C program that includes each installed header builds with pkg-config and runs"""
    embeds('cc', '-xc', '-std=c11')


@test
def embedding_in_cxx():
    """a C++ program builds in the same way"""
    embeds('c++', '-xc++', '-std=c++17')


@test
def manual_pages():
    """man and mandoc report no warnings for the manual pages"""
    pages = [os.path.join(installed(), 'share/man', page) for page in PAGES]
    need('man')
    for page in pages:
        told = call('man', '--warnings', '-E', 'UTF-8', '-l', page,
                    env={**os.environ, 'MANPAGER': 'cat', 'MAN_KEEP_STDERR': '1'})
        assert 'SEE ALSO' in told and not re.search(r'warning|troff:|@[A-Z]+@', told), told
    if shutil.which('mandoc'):
        call('mandoc', '-Tlint', '-Wwarning', *pages)


def options(name):
    """Returns the options in the program's --help, except the help options."""
    told = call(program(name), '--help', env=environment())
    names = re.findall(r'^  (?:-\w, )?--([a-z-]+)', told, re.M)
    return {option for option in names if not option.startswith('help')}


def read(*path):
    with open(os.path.join(installed(), *path), encoding='utf-8') as file:
        return file.read()


@test
def pages_are_whole():
    """the manual pages and the completion have every option and every configuration key"""
    for name in 'rtsp-proxy', 'rtsp-load':
        page = read('share/man/man1', name + '.1').replace('\\-', '-')
        words = set(re.findall(r'--([a-z-]+)', read('share/bash-completion/completions', name)))
        asked = options(name)
        assert len(asked) > 5, asked
        assert asked <= set(re.findall(r'\\fB--([a-z-]+)', page)), page
        assert asked | {'help'} == words, (asked, words)
    docs = call(program('rtsp-proxy'), '--print-config-docs', env=environment())
    # A row of a key has five cells; one of a kind of upstream has two.
    keys = re.findall(r'^\| `([a-z.-]+)`(?: \|.*){4} \|$', docs, re.M)
    page = read('share/man/man5/rtsp-proxy.yaml.5').replace('\\-', '-')
    told = re.findall(r'^\.TP\n\\fB([a-z.-]+)', page, re.M)
    assert len(keys) > 20 and sorted(keys) == sorted(told), set(keys) ^ set(told)


@test
def page_of_the_store_is_whole():
    """weir-store runs installed; its manual page and completion have every command and option"""
    if not os.environ.get('WEIR_STORE_PROGRAM'):
        raise Skip('this build has no store')
    libraries = os.path.dirname(find('libweir-store-0.1.so'))
    env = environment(LD_LIBRARY_PATH=libraries)
    told = call(program('weir-store'), '--help', env=env)
    commands = re.findall(r'^  ([a-z][a-z-]+) +[A-Z]', told.split('Commands:')[1], re.M)
    page = read('share/man/man1/weir-store.1').replace('\\-', '-')
    assert len(commands) > 8 and set(complete('weir-store', '')) == {*commands, '--help', '--version'}
    for command in commands:
        told = call(program('weir-store'), command, '--help', env=env)
        names = set(re.findall(r'^  (?:-\w, )?(--[a-z-]+)', told, re.M))
        assert names == set(complete('weir-store', command, '-')), (command, names)
        section = re.search(rf'^\.SS {command} .*\n((?:(?!\.S[SH]).*\n)*)', page, re.M)[1]
        assert set(re.findall(r'\\fB(--[a-z-]+)', section)) | {'--help'} == names, section


def complete(*words):
    """Returns bash's completions of the last word of a command line."""
    source = os.path.join(installed(), 'share/bash-completion/completions', words[0])
    script = (f'set -u; . {shlex.quote(source)}; COMP_WORDS=({shlex.join(words)}); '
              f'COMP_CWORD={len(words) - 1}; _{words[0].replace("-", "_")}; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    return call('bash', '--norc', '-c', script).split('\n')[:-1]


@test
def bash_completion():
    """bash completes options, and files and folders where they belong"""
    need('bash')
    assert complete('rtsp-proxy', '--l') == ['--list-stages', '--listen']
    assert complete('rtsp-load', '--ar') == ['--arrivals']
    if os.environ.get('WEIR_STORE_PROGRAM'):
        assert complete('weir-store', 'ver') == ['verify']
        assert complete('weir-store', 'add', '--n') == ['--name']
        file = os.path.join(ROOT, 'meson.bu')
        assert complete('weir-store', 'add', '/srv', file) == [file + 'ild']
    folder = os.path.join(ROOT, 'tests/a')
    assert complete('rtsp-proxy', '--stages', folder) == [os.path.join(ROOT, 'tests/app')]
    file = os.path.join(ROOT, 'meson.bu')
    for before in ('--config',), ('--config', '='), ('--check-config', '-c'):
        assert complete('rtsp-proxy', *before, file) == [file + 'ild'], before


@test
def example():
    """the example configuration is valid"""
    told = call(program('rtsp-proxy'), '--check-config', '--config',
                os.path.join(installed(), 'share/doc/weir/rtsp-proxy.yaml'), env=environment())
    assert told.startswith('The configuration is good'), told


@test
def example_of_limits():
    """the example of the system's limits is installed, and sysctl reads it"""
    file = os.path.join(installed(), 'share/doc/weir/90-rtsp-proxy.conf')
    need('sysctl')
    if 'dry-run' in call('sysctl', '--help'):
        told = call('sysctl', '--dry-run', '-p', file)
        assert 'net.core.rmem_max = 4194304\n' in told, told
    else:
        assert 'net.core.rmem_max = 4194304\n' in read(file)


@test
def unit():
    """systemd accepts the unit and rates its exposure low"""
    need('systemd-analyze')
    unit = os.path.join(installed(), 'lib/systemd/system/rtsp-proxy.service')
    text = read(unit)
    command = re.search(r'^ExecStart=(\S+)', text, re.M)[1]
    assert os.access(command.replace(PREFIX, installed(), 1), os.X_OK), command
    with open(unit, 'w', encoding='utf-8') as file:
        file.write(text.replace(f'={PREFIX}/bin', f'={installed()}/bin'))
    told = call('systemd-analyze', 'verify', '--man=no', unit)
    assert not told, told
    call('systemd-analyze', 'security', '--offline=true', f'--threshold={EXPOSURE}', unit)


def settings(text, section):
    """Returns {name: [values]} of a section of a unit file."""
    found = {}
    part = re.search(rf'^\[{section}\]\n((?:(?!\[).*\n)*)', text, re.M)[1]
    for name, value in re.findall(r'^(\w+)=(.*)', part, re.M):
        found.setdefault(name, []).append(value)
    return found


@test
def the_service_starts_again_however_often_it_ends():
    text = read('lib/systemd/system/rtsp-proxy.service')
    assert settings(text, 'Unit')['StartLimitIntervalSec'] == ['0']
    assert settings(text, 'Service')['Restart'] == ['on-failure']


@test
def the_service_has_a_user_of_its_own_and_folders_that_stay():
    service = settings(read('lib/systemd/system/rtsp-proxy.service'), 'Service')
    assert 'DynamicUser' not in service and 'SupplementaryGroups' not in service, service
    assert service['ProtectSystem'] == ['strict'] and service['ProtectHome'] == ['yes']
    assert service['StateDirectory'] == ['rtsp-proxy'] and service['CacheDirectory'] == ['rtsp-proxy']
    need('systemd-sysusers')
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, 'etc'))
        call('systemd-sysusers', '--root=' + root, find('rtsp-proxy.conf'))
        with open(os.path.join(root, 'etc/passwd'), encoding='utf-8') as file:
            users = [line.rstrip('\n').split(':') for line in file]
        with open(os.path.join(root, 'etc/group'), encoding='utf-8') as file:
            groups = [line.rstrip('\n').split(':') for line in file]
    assert [user[0] for user in users] == service['User'], users
    assert users[0][5] == '/var/lib/rtsp-proxy' and users[0][6].endswith('/nologin'), users
    assert [group[0] for group in groups if group[2] == users[0][3] or users[0][0] in group[3].split(',')
            ] == service['User'], groups


def field(package, name):
    return call('dpkg-deb', '--field', package, name).strip()


def contents(package):
    listed = call('dpkg-deb', '--contents', package)
    return {line.split()[5].lstrip('.') for line in listed.splitlines() if not line.startswith('d')}


@test
def debian_packages_leave_the_choice_of_torrents():
    """the Debian packages have all files once, and only weir-swarm needs libtorrent"""
    need('dpkg-shlibdeps')
    if not os.environ.get('WEIR_STORE_PROGRAM'):
        raise Skip('this build has no store')
    version = os.environ['WEIR_VERSION']
    with tempfile.TemporaryDirectory() as build:
        shutil.copytree(installed(), os.path.join(build, 'root/usr'), symlinks=True)
        staged = {os.path.join('/usr', os.path.relpath(os.path.join(where, name), installed()))
                  for where, _, names in os.walk(installed()) for name in names}
        told = call('bash', os.path.join(ROOT, 'data/deb.sh'), build, version, timeout=150,
                    env={**os.environ, 'DPKG_DEB_COMPRESSOR_TYPE': 'none'})
        paths = [line for line in told.splitlines() if line.endswith('.deb')]
        packages = {field(path, 'Package'): path for path in paths}
        files = {name: contents(path) for name, path in packages.items()}
        depends = {name: field(path, 'Depends') for name, path in packages.items()}
        recommends = field(packages['weir'], 'Recommends')
        call('dpkg-deb', '--control', packages['weir'], os.path.join(build, 'control'))
        call('sh', '-n', os.path.join(build, 'control/postinst'))
    assert 'libtorrent' not in depends['weir'] and 'libgstreamer1.0-0' in depends['weir'], depends
    if any(name.endswith('/libgstweirswarm.so') for name in staged):
        assert f'weir-swarm (= {version})' in recommends, recommends
        assert 'libtorrent-rasterbar' in depends['weir-swarm'], depends
        assert f'weir (= {version})' in depends['weir-swarm'], depends
        assert not files['weir'] & files['weir-swarm'], files['weir'] & files['weir-swarm']
    every = set().union(*files.values())
    missing = {name for name in staged if name not in every and name + '.gz' not in every}
    assert not missing, missing


if __name__ == '__main__':
    run()

# SPDX-License-Identifier: LGPL-2.1-or-later
"""rtsp-proxy with the kernel path. Needs root, for the rig."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from proc import Proc, interop
from rig import EVERYBODY, NoRig, Rig
from tap import Skip, run, test

CLIP = os.path.join(os.environ['WEIR_DATA'], 'bigbuckbunny.mp4')
READERS, SECONDS = 10, 4
PROGRAMS = {name: os.environ.get(name) for name in ('WEIR_RTSP_PROXY', 'WEIR_RTSP_LOAD')}
ASK = ('import sys, urllib.request as r; '
       'print(r.urlopen("http://127.0.0.1:9554" + sys.argv[1]).read().decode())')
NOTHING = ('setpriv', '--bounding-set=-all', '--inh-caps=-all')
TWO = ('--inh-caps=-all,+bpf,+net_admin', '--ambient-caps=-all,+bpf,+net_admin',
       '--bounding-set=-all,+bpf,+net_admin')
NOBODY = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', *TWO)


def with_two_capabilities():
    """Begins a command with only CAP_BPF and CAP_NET_ADMIN, as another user if others can read the program:
    nobody can in root's home."""
    readable = subprocess.run([*NOBODY, 'test', '-r', PROGRAMS['WEIR_RTSP_PROXY']], check=False).returncode == 0
    return NOBODY if readable else ('setpriv', *TWO)


@contextlib.contextmanager
def network():
    if None in PROGRAMS.values():
        raise Skip('the programs are not built')
    try:
        rig = Rig()
    except NoRig as why:
        raise Skip(str(why)) from None
    with rig, Proc(*rig.server, interop(), 'origin', '--listen', f'{rig.server_address}:0', '--clip',
                   CLIP) as origin:
        yield rig, origin.wait_for_line(r'^READY (rtsp://\S+)')[1]


@contextlib.contextmanager
def serving(rig, upstream, kernel, enter=()):
    # JSON is YAML too.
    settings = {'listen': f'{rig.server_address}:0', 'api': '127.0.0.1:9554', **EVERYBODY, 'kernel': kernel,
                'mounts': {'/cam': {'upstream': upstream}}}
    with tempfile.NamedTemporaryFile('w', suffix='.yaml', encoding='utf-8') as file:
        json.dump(settings, file)
        file.flush()
        os.chmod(file.name, 0o644)
        with Proc(*rig.server, *enter, PROGRAMS['WEIR_RTSP_PROXY'], '--config',
                  file.name) as proxy:
            yield proxy


def url_of(proxy):
    url = proxy.wait_for_line(r' serves (rtsp://\S+)$|kernel=on: (.*)')
    if url[2]:
        if 'no kernel path' in url[2] or 'too old' in url[2]:
            raise Skip(url[2])
        raise AssertionError(url[2])
    return url[1]


def loading(rig, url, seconds=60):
    """Starts readers over UDP."""
    return Proc(*rig.readers, PROGRAMS['WEIR_RTSP_LOAD'], '--json', '--readers', READERS,
                '--duration', seconds, url)


def lost(readers):
    """Returns what the readers have lost, when they have ended."""
    assert readers.wait(SECONDS + 20) == 0, readers.output()
    text = readers.output()
    result = json.loads(text[text.index('{'):text.rindex('}') + 1])
    assert result['packets'] > 0, result
    return result['lost']


def load(rig, url):
    with loading(rig, url, SECONDS) as readers:
        return lost(readers)


def cloned(rig):
    """Returns how many messages were cloned: the system counts each as a send without room."""
    listing = subprocess.run([*rig.server, 'grep', '^Udp:', '/proc/net/snmp'], capture_output=True,
                             text=True, check=True).stdout
    names, values = map(str.split, listing.splitlines())
    return int(values[names.index('SndbufErrors')])


def ask(rig, path):
    """Returns the answer of the proxy's API."""
    return subprocess.run([*rig.server, sys.executable, '-c', ASK, path], capture_output=True,
                          text=True, check=True).stdout


def kernel_metrics(rig):
    """Returns the metrics of the kernel path that are not 0."""
    found = re.findall(r'^weir_kernel_(\w+)\{mount="/cam"(?:,state="(.*)")?\} ([1-9].*)$',
                       ask(rig, '/metrics'), re.M)
    return {(name, state): int(value) for name, state, value in found}


def wait_for_readers(rig, state):
    """Waits until all readers are served so."""
    end = time.monotonic() + 20
    while kernel_metrics(rig).get(('readers', state)) != READERS:
        assert time.monotonic() < end, kernel_metrics(rig)
        time.sleep(0.05)
    return [reader['kernel'] for reader in json.loads(ask(rig, '/v1/readers'))['readers']]


@test
def readers_get_clones():
    """with `kernel: on`, readers get clones, which the API counts, and lose nothing"""
    with network() as (rig, upstream), serving(rig, upstream, 'on') as proxy, \
            loading(rig, url_of(proxy)) as readers:
        assert wait_for_readers(rig, 'clones') == ['clones'] * READERS
        end = time.monotonic() + 20
        while cloned(rig) <= 20:
            assert time.monotonic() < end, cloned(rig)
            time.sleep(0.05)
        readers.signal(signal.SIGINT)
        assert lost(readers) == 0
        metrics = kernel_metrics(rig)
        assert metrics['clones_total', ''] >= 2 * cloned(rig), (metrics, cloned(rig))


@test
def the_api_says_why_not():
    """with `kernel: auto`, the API says that a device does not segment"""
    with network() as (rig, upstream):
        subprocess.run([*rig.server, 'ethtool', '-K', 'veth', 'tx-udp-segmentation', 'off'],
                       check=True)
        with serving(rig, upstream, 'auto') as proxy, loading(rig, url_of(proxy)) as readers:
            if 'without the kernel path' in proxy.output():
                raise Skip(proxy.output())
            assert wait_for_readers(rig, 'segmentation') == ['segmentation'] * READERS
            readers.signal(signal.SIGINT)
            assert lost(readers) == 0
            assert cloned(rig) == 0


@test
def rules_come_and_go():
    """with `kernel: auto`, readers get clones while no rule for packets that leave is there"""
    with network() as (rig, upstream):
        def nft(*words):
            subprocess.run([*rig.server, 'nft', *words], check=True)
        nft('add', 'table', 'inet', 't')
        nft('add', 'chain', 'inet', 't', 'out', '{ type filter hook output priority 0; }')
        nft('add', 'rule', 'inet', 't', 'out', 'udp', 'dport', '9', 'drop')
        with serving(rig, upstream, 'auto', with_two_capabilities()) as proxy:
            url = url_of(proxy)
            if 'path for now: the system has a rule' not in proxy.output():
                raise Skip(proxy.output())
            with loading(rig, url) as readers:
                wait_for_readers(rig, 'rules')
                nft('flush', 'chain', 'inet', 't', 'out')
                wait_for_readers(rig, 'clones')
                nft('add', 'rule', 'inet', 't', 'out', 'udp', 'dport', '9', 'drop')
                wait_for_readers(rig, 'rules')
                readers.signal(signal.SIGINT)
                assert lost(readers) == 0
            assert len(re.findall(r'^\d{4}-\S+ \S+ kernel path: the system has a rule', proxy.output(),
                                  re.MULTILINE)) == 1, proxy.output()


@test
def without_permission():
    """without permission, `on` refuses to start and `auto` says why it serves by sends"""
    with network() as (rig, upstream):
        with serving(rig, upstream, 'on', NOTHING) as proxy:
            said = proxy.wait_for_line(r'^rtsp-proxy: .*kernel=on: (.*)')[1]
            if 'no kernel path' in said:
                raise Skip(said)
            assert 'CAP_BPF and CAP_NET_ADMIN' in said, said
            assert proxy.wait() == 1
        with serving(rig, upstream, 'auto', NOTHING) as proxy:
            url = url_of(proxy)
            assert load(rig, url) == 0
            lines = [line for line in proxy.output().splitlines() if 'kernel path' in line]
            assert len(lines) == 1 and 'CAP_BPF' in lines[0], lines
            assert cloned(rig) == 0


def capable_threads(pid):
    """Returns the names of the threads with any capability."""
    names = set()
    for status in pathlib.Path(f'/proc/{pid}/task').glob('*/status'):
        fields = dict(line.split(':', 1) for line in status.read_text('ascii').splitlines())
        if any(int(fields[kind], 16) for kind in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb')):
            names.add(fields['Name'].strip())
    return names


@test
def capabilities_are_given_up():
    """the proxy gives up both capabilities in all threads but the one that attaches the program to
    devices, and clones go on"""
    if os.environ.get('WEIR_SANITIZER_RUNTIME'):
        raise Skip('the proxy itself looks for plugins, and some start threads')
    if with_two_capabilities() is not NOBODY:
        raise Skip('root keeps its capabilities, and nobody else can read the program here')
    with network() as (rig, upstream), serving(rig, upstream, 'on', with_two_capabilities()) as proxy:
        url = url_of(proxy)
        assert load(rig, url) == 0
        assert capable_threads(proxy.pid) == {'weir-routes'}, capable_threads(proxy.pid)
        assert cloned(rig) > 20, cloned(rig)


if __name__ == '__main__':
    run()

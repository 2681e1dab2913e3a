# SPDX-License-Identifier: LGPL-2.1-or-later
"""rtsp-proxy with the kernel path. Needs root, for the rig."""

import contextlib
import json
import os
import subprocess
import tempfile

from proc import Proc, interop
from rig import EVERYBODY, NoRig, Rig
from tap import Skip, run, test

CLIP = os.path.join(os.environ['WEIR_DATA'], 'bigbuckbunny.mp4')
READERS, SECONDS = 10, 4
PROGRAMS = {name: os.environ.get(name) for name in ('WEIR_RTSP_PROXY', 'WEIR_RTSP_LOAD')}
NOTHING = ('setpriv', '--bounding-set=-all', '--inh-caps=-all')
NOBODY = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups',
          '--inh-caps=-all,+bpf,+net_admin', '--ambient-caps=-all,+bpf,+net_admin',
          '--bounding-set=-all,+bpf,+net_admin')


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
    settings = {'listen': f'{rig.server_address}:0', 'api': 'off', **EVERYBODY, 'kernel': kernel,
                'mounts': {'/cam': {'upstream': upstream}}}
    with tempfile.NamedTemporaryFile('w', suffix='.yaml', encoding='utf-8') as file:
        json.dump(settings, file)
        file.flush()
        os.chmod(file.name, 0o644)
        with Proc(*rig.server, *enter, PROGRAMS['WEIR_RTSP_PROXY'], '--config',
                  file.name) as proxy:
            yield proxy


def url_of(proxy):
    url = proxy.wait_for_line(r' ready (rtsp://\S+)$|kernel=on: (.*)')
    if url[2]:
        if 'no kernel path' in url[2] or 'too old' in url[2]:
            raise Skip(url[2])
        raise AssertionError(url[2])
    return url[1]


def load(rig, url):
    """Returns what readers over UDP have lost."""
    with Proc(*rig.readers, PROGRAMS['WEIR_RTSP_LOAD'], '--json', '--readers', READERS, '--duration',
              SECONDS, url) as loading:
        assert loading.wait(SECONDS + 20) == 0, loading.output()
        text = loading.output()
    result = json.loads(text[text.index('{'):text.rindex('}') + 1])
    assert result['packets'] > 0, result
    return result['lost']


def cloned(rig):
    """Returns how many messages were cloned: the system counts each as a send without room."""
    listing = subprocess.run([*rig.server, 'grep', '^Udp:', '/proc/net/snmp'], capture_output=True,
                             text=True, check=True).stdout
    names, values = map(str.split, listing.splitlines())
    return int(values[names.index('SndbufErrors')])


@test
def readers_get_clones():
    """with `kernel: on`, readers get clones and lose nothing"""
    with network() as (rig, upstream), serving(rig, upstream, 'on') as proxy:
        assert load(rig, url_of(proxy)) == 0
        assert cloned(rig) > 20, cloned(rig)


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


@test
def capabilities_are_given_up():
    """the proxy gives up both capabilities, and clones go on"""
    with network() as (rig, upstream), serving(rig, upstream, 'on', NOBODY) as proxy:
        url = url_of(proxy)
        with open(f'/proc/{proxy.pid}/status', encoding='ascii') as f:
            capabilities = [line.split()[1] for line in f if line.startswith(('CapEff', 'CapPrm'))]
        assert [int(c, 16) for c in capabilities] == [0, 0], capabilities
        assert load(rig, url) == 0
        assert cloned(rig) > 20, cloned(rig)


if __name__ == '__main__':
    run()

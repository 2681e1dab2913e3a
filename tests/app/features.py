# SPDX-License-Identifier: LGPL-2.1-or-later
"""The features that a build may leave out: the proxy names them, and says so where a configuration
asks for one that it does not have."""

import os
import subprocess
import tempfile

from control import CLIP_URI, Controlled, config
from loads import refuse
from proxy import environment, program
from tap import SLOWER, Skip, run, test

ALL = 'store broadcast swarm kernel openh264 srt webrtc'.split()
IN = os.environ.pop('WEIR_FEATURES').split()  # so that a refusal skips no test here
OUT = [name for name in ALL if name not in IN]

LACKS = {
    'store': 'this build has no block stores and no titles of HTTP servers',
    'broadcast': 'this build has no broadcasts',
    'swarm': 'this build has no swarms',
    'kernel': 'this build has no kernel path',
    'openh264': 'this build has no layers by OpenH264',
    'srt': 'this build has no SRT listener',
    'webrtc': 'this build has no WebRTC',
}

# What asks for a feature: it, the keys of the mount, and the place and key in the message.
MOUNTS = [
    ('store', 'upstream: "store:///srv/store/"', '3:15: upstream: '),
    ('store', 'upstream: "https://192.0.2.7/titles/"', '3:15: upstream: '),
    ('store', f'upstreams: ["http://192.0.2.7/titles/", "{CLIP_URI}"]', '3:17: upstreams: '),
    ('broadcast', 'upstream: "rtsp-schedule://192.0.2.7/film"', '3:15: upstream: '),
    ('broadcast', f'{{upstream: "{CLIP_URI}", broadcast: {{groups: 239.1.1.1}}}}', 'broadcast: '),
    ('swarm', 'upstream: "swarm:///srv/torrents/"', '3:15: upstream: '),
    ('swarm', f'{{upstream: "{CLIP_URI}", swarm: {{upload: 1M}}}}', 'swarm: '),
    ('openh264', 'upstream: "launch: videotestsrc ! svcenc ! rtph264pay name=pay0"',
     '3:15: upstream: wrong launch line: GStreamer has no element "svcenc"; '),
]
TOPS = [
    ('kernel', 'kernel: on', '1:9: kernel: '),
    ('srt', 'srt: {listen: "127.0.0.1:0"}', '1:6: srt: '),
    ('webrtc', 'webrtc: {listen: "127.0.0.1:0"}', '1:9: webrtc: '),
]


def files():
    """Yields (feature, text, place and key) of files that ask for one feature."""
    for name, keys, place in MOUNTS:
        yield name, f'mounts:\n  /cam:\n    {keys}\n', place
    for name, key, place in TOPS:
        yield name, f'{key}\nmounts:\n  /cam: {{upstream: "{CLIP_URI}"}}\n', place


def lack(name):
    return f'{LACKS[name]}; build it with -D{name}=enabled'


def call(*words):
    done = subprocess.run([program(), *words], env=environment(), capture_output=True, text=True,
                          timeout=60 * SLOWER, check=False)
    return done.returncode, done.stdout, done.stderr


def need_out():
    if not OUT:
        raise Skip('this build has all features')


@test
def the_version_says_which_features_are_in():
    status, out, err = call('--version')
    names = [f'{word} {", ".join(which)}' for word, which in (('with', IN), ('without', OUT)) if which]
    assert (status, err) == (0, '') and out.splitlines()[1:] == ['; '.join(names)], out


@test
def what_is_left_out_is_refused_where_the_file_asks_for_it():
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/proxy.yaml'
        for name, text, place in files():
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
            status, _, err = call('--config', path, '--check-config')
            if name in IN:
                assert lack(name) not in err, err
                continue
            assert status == 2 and err.startswith(f'rtsp-proxy: {path}:'), (text, err)
            assert err.endswith(f'{place}{lack(name)}\n') and err.count('\n') == 1, (text, err)
            assert call('--config', path)[::2] == (2, err), text


@test
def all_that_is_left_out_is_named_at_once():
    need_out()
    with tempfile.TemporaryDirectory() as folder:
        path = f'{folder}/proxy.yaml'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(''.join(f'{key}\n' for _, key, _ in TOPS) + 'mounts:\n')
            file.write(''.join(f'  /cam{i}:\n    {keys}\n' for i, (_, keys, _) in enumerate(MOUNTS)))
        _, _, err = call('--config', path, '--check-config')
        for name in ALL:
            asked = sum(other == name for other, *_ in MOUNTS + TOPS)
            assert err.count(lack(name)) == (asked if name in OUT else 0), (name, err)


@test
def an_argument_that_asks_for_it_is_refused():
    for name, uri in (('store', 'store:///srv/store/'), ('swarm', 'swarm:///srv/torrents/'),
                      ('broadcast', 'rtsp-schedule://192.0.2.7/film')):
        if name in OUT:
            assert call('--mount', f'/cam={uri}')[::2] == (
                2, f'rtsp-proxy: --mount: /cam: {lack(name)}\n')


@test
def a_reload_and_the_api_refuse_it_too():
    need_out()
    with Controlled({'/cam': {'upstream': CLIP_URI}}) as proxy:
        for name, text, place in files():
            if name not in OUT:
                continue
            line = proxy.hang_up(text)
            assert line.startswith('not reloaded') and line.endswith(f'{place}{lack(name)}'), line
        for name, body in (('store', {'upstream': 'store:///srv/store/'}),
                           ('broadcast', {'upstream': CLIP_URI, 'broadcast': {'groups': '239.1.1.1'}})):
            if name in OUT:
                status, _, answer = proxy.http('PUT', '/v1/mounts/new', body)
                assert status == 400 and lack(name) in str(answer), (status, answer)
        assert proxy.hang_up(config({'/cam': {'upstream': CLIP_URI}})).startswith('reloaded: ')
        page = proxy.get('/metrics').decode()
        for name, metric in (('store', 'weir_store_'), ('broadcast', 'weir_broadcast_'),
                             ('swarm', 'weir_swarm_'), ('srt', 'weir_srt_')):
            assert (metric in page) == (name in IN), (name, metric)


@test
def what_does_not_insist_runs_without_it():
    for text in 'kernel: auto', 'kernel: off':
        with tempfile.TemporaryDirectory() as folder:
            path = f'{folder}/proxy.yaml'
            with open(path, 'w', encoding='utf-8') as file:
                file.write(f'{text}\nmounts:\n  /cam: {{upstream: "{CLIP_URI}"}}\n')
            assert call('--config', path, '--check-config')[::2] == (0, ''), text


@test
def rtsp_load_names_what_it_lacks():
    for name, option, scheme in ('broadcast', '--scheme', 'rtsp'), ('webrtc', '--whep', 'http'):
        if name in OUT:
            refuse(option, f'{scheme}://192.0.2.7/cam', line=f'{lack(name)}; see --help', status=2)


if __name__ == '__main__':
    run()

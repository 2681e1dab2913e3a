# SPDX-License-Identifier: LGPL-2.1-or-later
"""The example of docs/embedding.md, built outside of the tree with the page's command."""

import os
import re
import shutil
import subprocess
import tempfile

from proc import Proc, Rtsp, free_udp_pair
from tap import Skip, run, test

ROOT = os.path.realpath(os.path.join(os.environ['WEIR_DATA'], '../..'))
PREFIX = os.environ['WEIR_PREFIX']
SDES = b'\x81\xca\0\3' + bytes(4) + b'\1\2ab' + bytes(4)


def find(root, name):
    found = [os.path.join(where, name) for where, _, names in os.walk(root) if name in names]
    assert len(found) == 1, (name, found)
    return found[0]


def install(directory):
    """Installs into the directory. Returns the environment that the page has a user set."""
    subprocess.run(['meson', 'install', '-C', os.environ['WEIR_BUILD'], '--no-rebuild', '--quiet',
                    '--destdir', directory], check=True, capture_output=True)
    config = os.path.dirname(find(directory, 'weir-rtsp-0.1.pc'))
    for name in os.listdir(config):
        path = os.path.join(config, name)
        with open(path, encoding='utf-8') as file:
            text = file.read()
        # The prefix that it has for a user who installs without DESTDIR.
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text.replace(f'prefix={PREFIX}\n', f'prefix={directory}{PREFIX}\n'))
    plugins = os.path.dirname(find(directory, 'libgstweir.so'))
    paths = filter(None, [config, os.environ.get('PKG_CONFIG_PATH')])
    return {**os.environ, 'PKG_CONFIG_PATH': ':'.join(paths), 'GST_PLUGIN_PATH': plugins,
            'GST_REGISTRY': os.path.join(directory, 'registry.bin')}


def commands():
    with open(os.path.join(ROOT, 'docs/embedding.md'), encoding='utf-8') as file:
        blocks = re.findall(r'^```sh\n(.*?)^```', file.read(), re.S | re.M)
    build, = (text for text in blocks if text.startswith('cc '))
    start, = (text for text in blocks if text.startswith('./'))
    return build, start.replace('8554', '0')


def play(rtsp, url, transport):
    status, headers, _ = rtsp.request('SETUP', f'{url}/stream=0', {'Transport': transport})
    assert status == 200
    assert rtsp.request('PLAY', url)[0] == 200
    return headers['transport']


@test
def the_example_prints_statistics():
    """serve-stats.c, built by the page's command, prints statistics and receiver reports"""
    if os.environ.get('WEIR_SANITIZER_RUNTIME'):
        raise Skip('a build with sanitizers cannot be installed')
    for command in 'meson', 'pkg-config', 'cc':
        if not shutil.which(command):
            raise Skip(f'no command {command}')
    build, start = commands()
    with tempfile.TemporaryDirectory() as directory:
        environment = install(directory)
        shutil.copy(os.path.join(ROOT, 'docs/examples/serve-stats.c'), directory)
        subprocess.run(['sh', '-ec', build], cwd=directory, env=environment, check=True)
        with Proc('sh', '-ec', f'exec {start}', cwd=directory, env=environment) as server:
            port, = re.findall(r':(\d+)/', server.wait_for_line(r'^(rtsp://\S+/test)$')[1])
            url = f'rtsp://127.0.0.1:{port}/test'
            rtp, rtcp = free_udp_pair()
            with Rtsp(int(port)) as tcp, Rtsp(int(port)) as udp:
                own = rtp.getsockname()[1]
                play(tcp, url, 'RTP/AVP/TCP;unicast;interleaved=0-1')
                answer = play(udp, url, f'RTP/AVP;unicast;client_port={own}-{own + 1}')
                rtcp_port = int(re.search(r'server_port=\d+-(\d+)', answer)[1])
                server.wait_for_line(r'^reader [0-9a-f]{32} port 0 state ok sent [1-9]\d* packets')
                server.wait_for_line(
                    rf'^reader 127\.0\.0\.1 port {own} state ok sent [1-9]\d* packets')
                rtcp.settimeout(20)
                ssrc = rtcp.recv(2000)[4:8]  # of the first sender report
                # A receiver report: 64 of 256 packets lost, jitter 900 ticks.
                rtcp.sendto(b'\x81\xc9\0\x07' + bytes(4) + ssrc + b'\x40' + bytes(7) +
                            (900).to_bytes(4, 'big') + bytes(8) + SDES, ('127.0.0.1', rtcp_port))
                server.wait_for_line(r'^session \S+ lost 25\.0 %, jitter 10\.0 ms$')
            server.wait_for_line('^closed: by the client$')
            rtp.close()
            rtcp.close()


if __name__ == '__main__':
    run()

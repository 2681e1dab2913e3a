#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the commands of docs/tutorial.md, docs/operations.md, docs/experiments.md and README.md, and
the example of docs/security.md.

The test runs in a network namespace of its own, where all ports are free and 192.0.2.7 is a camera,
so that the commands run as the pages have them.
"""

import base64
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile

from control import CLIP_URI, config
from proc import Proc
from proxy import environment, program
from snippets import ROOT, blocks
from tap import SLOWER, TIMEOUT, Skip, run, test

IN_NAMESPACE = 'WEIR_DOCS_NAMESPACE'
# Commands that change the machine, or take longer than a test may.
NOT_RUN = re.compile(r'^(sudo |\./dev (deb|test|bench)|meson )', re.M)
SERVER = re.compile(r'(\./dev run|rtsp-proxy --config (?!.*--(check-config|check-system|explain)))')
CAMERA = '192.0.2.7'
LIMIT = 2 * TIMEOUT
# ffplay without a window: it ends after five pictures, or in the background with the test.
PLAYER = '''#!/bin/sh
for url; do :; done
[ $# = 1 ] || { from="$1 $2"; }
exec ffmpeg -nostdin -v error $from -i "$url" -an $FRAMES -f null -
'''
# ./dev without the build.
DEV = '''#!/bin/sh
shift
case $#:$1 in
  0:) set -- --mount "/demo=file://$PWD/tests/data/bigbuckbunny.mp4" ;;
  1:rtsp://*) set -- --mount "/live=$1" ;;
esac
exec rtsp-proxy "$@"
'''


def enter_namespace():
    """Starts this program again in a network namespace of its own; returns why it cannot."""
    unshare = ['unshare', '-n'] if os.geteuid() == 0 else ['unshare', '-rn']
    if not shutil.which('unshare') or not shutil.which('ip'):
        return 'needs unshare and ip'
    if subprocess.run([*unshare, 'true'], capture_output=True, check=False).returncode != 0:
        return f'{" ".join(unshare)} is not allowed here'
    os.environ[IN_NAMESPACE] = '1'
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])
    return None


LACK = None if IN_NAMESPACE in os.environ else enter_namespace()


def need(*names):
    if LACK:
        raise Skip(LACK)
    if missing := [name for name in names if not shutil.which(name)]:
        raise Skip(f'needs {", ".join(missing)}')


def write(path, text):
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    os.chmod(path, 0o755)


def commands(text):
    """Splits a block into its commands. A here document belongs to its command."""
    lines = iter(text.splitlines())
    command = []
    for line in lines:
        command.append(line)
        if end := re.search(r"<<'?(\w+)", line):
            for line in lines:
                command.append(line)
                if line == end[1]:
                    break
        whole = '\n'.join(command)
        syntax = subprocess.run(['sh', '-n', '-c', whole], capture_output=True, check=False)
        if syntax.returncode == 0 and not line.endswith('\\'):
            yield whole
            command = []
    assert not command, command


class Shell:
    """Runs the commands of a page in a folder with what they need, and the servers in between."""

    def __init__(self, folder):
        self.folder, self.server, self.players = folder, None, []
        places = os.path.join(folder, 'bin')
        os.makedirs(places)
        for name in 'tests', 'pipelines':
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        for name, path in (('rtsp-proxy', program()), ('rtsp-load', os.environ['WEIR_RTSP_LOAD'])):
            os.symlink(path, os.path.join(places, name))
            os.makedirs(os.path.join(folder, 'build/apps', name))
            os.symlink(path, os.path.join(folder, 'build/apps', name, name))
        plugins = os.environ['GST_PLUGIN_PATH'].split(':')[0]
        os.symlink(plugins, os.path.join(folder, 'build/plugins'))
        write(os.path.join(places, 'ffplay'), PLAYER)
        write(os.path.join(folder, 'dev'), DEV)
        self.environment = environment({
            'PATH': f'{places}:{os.environ["PATH"]}', 'FRAMES': '-frames:v 5'})

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind and self.server:
            self.server.dump()
        self.stop()

    def stop(self):
        for child in [*self.players, *([self.server] if self.server else [])]:
            child.kill()
        self.server, self.players = None, []

    def serve(self, command):
        self.stop()
        self.server = Proc('sh', '-ec', 'exec ' + command, env=self.environment, cwd=self.folder)
        self.server.wait_for_line(' serves rtsp://')

    def play(self, command):
        """Starts a player in the background and waits until it is a reader."""
        seen = len(self.server.lines)
        self.players.append(Proc('sh', '-ec', 'exec ' + command.rstrip('& '),
                                 env={**self.environment, 'FRAMES': ''}, cwd=self.folder))
        self.server.wait_for_line(r' reader \S+ (in|joined)', start=seen)

    def call(self, command):
        """Returns what a command prints; exports stay for the commands behind it."""
        text = re.sub(r'\bcurl -', 'curl -fsS -', re.sub(r'\bcurl http', 'curl -fsS http', command))
        for name, value in re.findall(r'^export (\w+)=(.*)$', text, re.M):
            self.environment[name] = value.replace('$PWD', self.folder)
        done = subprocess.run(['sh', '-ec', text], env=self.environment, cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50 * SLOWER,
                              check=False)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def run(self, command):
        if SERVER.match(command):
            return self.serve(command)
        if command.endswith('&'):
            return self.play(command)
        return self.call(command)


def run_page(page, replace=()):
    """Runs all blocks of a page that a shell reads; returns {command: its output}."""
    printed = {}
    with tempfile.TemporaryDirectory() as folder, Shell(folder) as shell:
        for text in blocks(page, 'sh'):
            for old, new in replace:
                text = text.replace(old, new)
            for command in commands(text):
                if not NOT_RUN.search(command):
                    printed[command] = shell.run(command)
    return printed


class Camera(Proc):
    """The camera that the pages have at 192.0.2.7."""

    def __init__(self):
        subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
        subprocess.run(['ip', 'address', 'replace', f'{CAMERA}/32', 'dev', 'lo'], check=True)
        with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
            file.write(config({'/stream': {'upstream': CLIP_URI}}, listen=f'{CAMERA}:554',
                              api='off',
                              users=[{'name': 'any', 'permissions': [{'action': 'read'}]}]))
            file.flush()
            super().__init__(program(), '--config', file.name, env=environment())
            self.wait_for_line(' serves rtsp://')


@test(timeout=LIMIT)
def the_tutorial_runs():
    """docs/tutorial.md: each command does what it says"""
    need('curl', 'ffmpeg', 'dot')
    with Camera() as camera:
        printed = run_page('docs/tutorial.md')
        assert re.search(' reader .* (in|joined)', camera.output()), 'nothing came from the camera'
    load, = (text for command, text in printed.items() if 'rtsp-load' in command)
    assert re.search(r'^connected +100 of 100\n', load, re.M), load
    layers = [text for command, text in printed.items() if '"layers"' in command]
    assert len(layers) == 1, printed.keys()


@test
def the_operators_page_runs():
    """docs/operations.md: its commands run, and its configurations are good"""
    need('seq')
    with tempfile.NamedTemporaryFile('w', suffix='.password') as password:
        password.write('secret\n')
        password.flush()
        here = [('/etc/rtsp-proxy/cam.password', password.name),
                ('rtsp-proxy --config /etc/rtsp-proxy.yaml --check-config', ':')]
        printed = run_page('docs/operations.md', here)
        assert any('40 mounts' in str(text) for text in printed.values()), printed
        for text in blocks('docs/operations.md', 'yaml'):
            with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file, \
                    tempfile.TemporaryDirectory() as films:
                file.write(text.replace('/srv/films', films))
                file.flush()
                done = subprocess.run([program(), '--config', file.name, '--check-config'],
                                      env=environment(), capture_output=True, text=True, timeout=20 * SLOWER,
                                      check=False)
                assert done.returncode == 0, (text, done)


@test
def the_log_lines_of_the_operators_page():
    """docs/operations.md: the program prints each log line of the table"""
    sources = ''
    for where, _, names in os.walk(os.path.join(ROOT, 'apps/rtsp-proxy')):
        for name in names:
            with open(os.path.join(where, name), encoding='utf-8') as file:
                sources += file.read()
    with open(os.path.join(ROOT, 'docs/operations.md'), encoding='utf-8') as file:
        table = file.read().partition('| line begins with |')[2].partition('\n\n')[0]
    lines = re.findall(r'`([^`]+)`', '\n'.join(re.findall(r'^\|([^|]*)\|', table, re.M)))
    assert len(lines) >= 10, lines
    for line in lines:
        parts = re.split(r'/cam|ADDR(?::PORT|ADDR)?|ADDR|\w+://\u2026|METHOD|PATH|STATUS', line)
        assert re.search('"' + r'%[su]\S*'.join(map(re.escape, parts)), sources), line


@test(timeout=LIMIT)
def the_experiments_run():
    """docs/experiments.md: packets are lost without pacing, and none with it"""
    need('curl', 'tc', 'gst-launch-1.0')
    if os.environ.get('WEIR_SANITIZER_RUNTIME'):
        raise Skip('gst-launch-1.0 of the page cannot load a plugin with a sanitizer')
    if subprocess.run(['unshare', '-rn', 'true'], capture_output=True, check=False).returncode != 0:
        raise Skip('unshare -rn is not allowed here')
    # No check depends on the time of the experiment with layers.
    printed = run_page('docs/experiments.md', [('--duration 30', '--duration 6'),
                                               ('sleep 5', 'sleep 1')])
    losses = [int(re.search(r'lost_packets_total\{.*\} (\d+)', text)[1])
              for text in printed.values() if text and 'lost_packets_total' in text]
    assert len(losses) == 2 and losses[0] > 0 and losses[1] == 0, losses


@test
def the_readme_runs():
    """README.md: its commands run"""
    need('ffmpeg')
    with Camera():
        run_page('README.md')


def example_of_security(folder):
    """Returns the configuration of docs/security.md, with its files in a folder and ports of 0."""
    with open(os.path.join(ROOT, 'docs/security.md'), encoding='utf-8') as file:
        page = file.read()
    text, = re.findall(r'^   ```yaml\n(.*?)^   ```', page, re.S | re.M)
    text = re.sub(r'^   ', '', text, flags=re.M)
    unit, = re.findall(r'^   ```ini\n(.*?)^   ```', page, re.S | re.M)
    names = re.findall(r'LoadCredential=([^:]+):', unit)
    used = re.findall(r'/run/credentials/rtsp-proxy.service/(\S+)', text)
    assert sorted(names) == sorted(used), (names, used)
    for name in names:
        if name != 'proxy.pem':
            write(os.path.join(folder, name), f'word of {name}\n')
            os.chmod(os.path.join(folder, name), 0o400)
    subprocess.run([program(), 'make-certificate', '--host', '127.0.0.1',
                    os.path.join(folder, 'proxy.pem')], capture_output=True, check=True)
    for old, new in (('/run/credentials/rtsp-proxy.service', folder), ('0.0.0.0:8322', '127.0.0.1:0'),
                     ('127.0.0.1:9554', '127.0.0.1:0')):
        assert old in text, old
        text = text.replace(old, new)
    return text


def ask(port, folder, method, path, user=None):
    """Sends one RTSP or HTTP request with basic authentication. Returns its status."""
    lines = [f'{method} rtsps://127.0.0.1:{port}{path} RTSP/1.0', 'CSeq: 1']
    if method == 'GET':
        lines = [f'GET {path} HTTP/1.1', f'Host: 127.0.0.1:{port}', 'Connection: close']
    if user:
        word = base64.b64encode(f'{user}:word of {user}'.encode()).decode()
        lines.append(f'Authorization: Basic {word}')
    connection = socket.create_connection(('127.0.0.1', port), 10)
    if method != 'GET':
        trust = ssl.create_default_context(cafile=os.path.join(folder, 'proxy.pem'))
        connection = trust.wrap_socket(connection, server_hostname='127.0.0.1')
    with connection:
        connection.sendall(('\r\n'.join(lines) + '\r\n\r\n').encode())
        return int(connection.recv(65536).split()[1])


@test
def the_example_of_the_security_page():
    """docs/security.md: its users read over TLS, and nobody else does anything"""
    need()
    with Camera(), tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'proxy.yaml')
        write(path, example_of_security(folder))
        with Proc(program(), '--config', path, env=environment()) as proxy:
            port = int(proxy.wait_for_line(r' serves rtsps://\S+:(\d+)/')[1])
            api = int(proxy.wait_for_line(r' api http://\S+:(\d+)/v1')[1])
            assert ask(port, folder, 'DESCRIBE', '/cam') == 401
            assert ask(port, folder, 'DESCRIBE', '/cam', 'viewer') == 200
            assert ask(port, folder, 'DESCRIBE', '/other', 'viewer') == 403
            assert ask(port, folder, 'DESCRIBE', '/cam', 'prometheus') == 403
            assert ask(api, folder, 'GET', '/metrics') == 401
            assert ask(api, folder, 'GET', '/metrics', 'prometheus') == 200
            assert ask(api, folder, 'GET', '/v1/mounts', 'prometheus') == 403
            assert ask(api, folder, 'GET', '/v1/mounts') == 401
            assert ask(api, folder, 'GET', '/v1/mounts', 'admin') == 200
            assert ask(port, folder, 'DESCRIBE', '/cam', 'admin') == 403
            assert ' serves rtsp://' not in proxy.output(), proxy.output()
            for word in 'word of viewer', 'word of cam', 'word of admin':
                assert word not in proxy.output(), word


@test
def the_options_of_rtsp_load():
    """docs/rtsp-load.md has the options that rtsp-load --help prints"""
    done = subprocess.run([sys.executable, os.path.join(ROOT, 'docs/write-options.py'), '--check',
                           os.environ['WEIR_RTSP_LOAD']], env=environment(), check=False)
    assert done.returncode == 0, 'docs/rtsp-load.md is out of date: run ./dev docs'


if __name__ == '__main__':
    run()

#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/tutorial.md and docs/pipelines.md describe presentations correctly; tried with readers."""

import json
import os
import re
import shutil
import subprocess
import tempfile

from control import CLIP_URI, Watch
from proc import Proc
from proxy import CLIP, environment, program, wait_until
from tap import SLOWER, Skip, run, test


PATIENCE = 90  # s, for a new pipeline
ROOT = os.path.realpath(os.path.join(os.environ['WEIR_DATA'], '../..'))


def blocks(page, language):
    with open(os.path.join(ROOT, page), encoding='utf-8') as file:
        return re.findall(rf'^```{language}\n(.*?)^```', file.read(), re.S | re.M)


class Served(Proc):
    """The proxy with the file that docs/tutorial.md tells a user to write, on free ports."""

    def __init__(self, directory):
        write, = (text for text in blocks('docs/tutorial.md', 'sh') if 'cam.yaml <<EOF' in text)
        text = write.replace('mounts:', 'listen: 127.0.0.1:0\napi: 127.0.0.1:0\n'
                             f'file-roots: [{os.path.dirname(os.path.realpath(CLIP))}]\nmounts:')
        # The encoders of a new pipeline start slowly on a busy machine.
        text = text.replace('  /cam:\n', f'  /cam:\n    switch-timeout: {PATIENCE}s\n')
        text = text.replace('$PWD', ROOT).replace('./dev run', f'exec {program()}')
        assert text.count('exec ') == 1, text
        super().__init__('sh', '-ec', text, env=environment(), cwd=directory)
        self.port = int(self.wait_for_line(r' serves rtsp://[\d.]+:(\d+)/')[1])
        self.api = self.wait_for_line(r' api http://(\S+)/v1')[1]

    def url(self, path='/cam'):
        return f'rtsp://127.0.0.1:{self.port}{path}'

    def get(self, path):
        done = subprocess.run(['curl', '-fsS', f'http://{self.api}{path}'], capture_output=True,
                              text=True, timeout=20 * SLOWER, check=True)
        return json.loads(done.stdout)

    def run(self, text, reader):
        """Runs a snippet in a shell. After each change, reads until the change is in force."""
        text = text.replace('127.0.0.1:9554', self.api)
        text = re.sub(r'rtsp://192\.0\.2\.\d+/\w+', CLIP_URI, text)
        for part in re.split(r'(?m)^(?=curl )', text)[1:]:
            done = subprocess.run(['sh', '-ec', part.replace('curl ', 'curl -fsS ', 1)],
                                  capture_output=True, text=True, timeout=20 * SLOWER)
            assert done.returncode == 0, (part, done)
            wait_until(lambda: reader.take() or self.is_settled(), PATIENCE + 10,
                       'the change is in force')

    def is_settled(self):
        main = self.get('/v1/mounts/cam')['presentations'][0]
        assert 'problem' not in main, main
        return not main['switching']


@test(timeout=120)
def the_urls_share():
    """docs/tutorial.md: its three URLs share one pull and one decoder, and have two encoders"""
    if not shutil.which('curl'):
        raise Skip('needs curl')
    players, = (text for text in blocks('docs/tutorial.md', 'sh') if text.count('ffplay') == 3)
    paths = re.findall(r'rtsp://127.0.0.1:8554(/[^\s\']*)', players)
    with tempfile.TemporaryDirectory() as directory, Served(directory) as proxy:
        with Watch(proxy, paths[0]), Watch(proxy, paths[1]), Watch(proxy, paths[2]):
            stages = [node['label'] for node in proxy.get('/v1/graph')['nodes']
                      if node['kind'] == 'stage']
    assert sorted(stages) == ['decode', 'pull', 'transcode', 'transcode'], stages


@test(timeout=240)
def pipelines_change_while_people_watch():
    """docs/tutorial.md, docs/pipelines.md: each PATCH takes effect, and a reader stays"""
    if not shutil.which('curl'):
        raise Skip('needs curl')
    snippets = [text for page in ('docs/tutorial.md', 'docs/pipelines.md') for text in blocks(page, 'sh')
                if 'curl -X PATCH' in text and '/mounts/cam' in text]
    assert len(snippets) == 3, snippets
    with tempfile.TemporaryDirectory() as directory, Served(directory) as proxy, \
            Watch(proxy) as reader:
        for text in snippets:
            proxy.run(text, reader)
        assert ' out: ' not in proxy.output()


@test
def configurations_are_good():
    """docs/pipelines.md: each of its configurations passes --check-config"""
    found = blocks('docs/pipelines.md', 'yaml')
    assert len(found) == 10, found
    with tempfile.TemporaryDirectory() as directory:
        for text in found:
            path = os.path.join(directory, 'proxy.yaml')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text.replace('/srv/soon.mp4', os.path.realpath(CLIP)).replace(
                    '/srv/clips', os.path.dirname(os.path.realpath(CLIP))).replace('/srv/logo.png', os.path.realpath(CLIP)))
            done = subprocess.run([program(), '--config', path, '--check-config'],
                                  env=environment(), capture_output=True, text=True, timeout=20 * SLOWER)
            assert done.returncode == 0, (text, done)


@test
def configurations_with_users_are_good():
    """README.md and docs/configuration.md: each configuration with users passes --check-config"""
    found = [text for page in ('README.md', 'docs/configuration.md')
             for text in blocks(page, 'yaml') if 'users:' in text]
    assert len(found) == 4, found
    with tempfile.TemporaryDirectory() as directory:
        secret = os.path.join(directory, 'secret')
        with open(secret, 'w', encoding='utf-8', opener=lambda name, flags: os.open(
                name, flags, 0o600)) as file:
            file.write('password')
        for text in found:
            path = os.path.join(directory, 'proxy.yaml')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(re.sub(r'/etc/rtsp-proxy/[\w.]+', secret, text).replace(
                    '/srv/films', directory))
            done = subprocess.run([program(), '--config', path, '--check-config'],
                                  env=environment(), capture_output=True, text=True, timeout=20 * SLOWER)
            assert done.returncode == 0, (text, done)


if __name__ == '__main__':
    run()

# SPDX-License-Identifier: LGPL-2.1-or-later
"""rtsp-proxy with a configuration file; tests query and change it through its API."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

from rig import EVERYBODY
from servers import BUILD, PORT, Weir

API = '127.0.0.1:9554'  # on the server's side of the rig
CHANGE_WITHIN = 30


class Configured(Weir):
    """`mounts` is {path with its slash: {key: value}}."""

    program = BUILD / 'apps/rtsp-proxy/rtsp-proxy'

    def __init__(self, rig, mounts):
        self._side = rig.server
        super().__init__(rig, mounts)

    def words(self, mounts):
        self._directory = tempfile.TemporaryDirectory()
        self.file = pathlib.Path(self._directory.name) / 'proxy.yaml'
        self.write(mounts)
        return [self.program, '--config', self.file]

    def write(self, mounts):
        # JSON is YAML too.
        self.file.write_text(json.dumps(
            {'listen': f'{self.address}:{PORT}', 'api': API, **EVERYBODY, 'mounts': mounts},
            indent=1),
            encoding='utf-8')

    def ask(self, method, path, body=None):
        """Returns the answer's text and the seconds that the request took."""
        sent = () if body is None else ('-H', 'Content-Type: application/json',
                                        '-d', json.dumps(body))
        done = subprocess.run(
            [*self._side, 'curl', '-sS', '--fail-with-body', '-X', method, *sent,
             '-w', '\n%{time_total}', f'http://{API}{path}'],
            capture_output=True, text=True, check=False)
        text, _, seconds = done.stdout.rpartition('\n')
        assert done.returncode == 0, f'{method} {path}: {text} {done.stderr}'
        return text, float(seconds)

    def get(self, path):
        return json.loads(self.ask('GET', path)[0])

    def change(self, mount, keys):
        """Changes a mount, waits until the change is in force, and returns the seconds that
        took."""
        begin = time.monotonic()
        self.ask('PATCH', f'/v1/mounts{mount}', keys)
        while True:
            main = self.get(f'/v1/mounts{mount}')['presentations'][0]
            took = time.monotonic() - begin
            assert 'problem' not in main, f'{keys} was refused: {main["problem"]}'
            if not main['switching']:
                return took
            assert took < CHANGE_WITHIN, f'{keys} is not in force after {CHANGE_WITHIN} s'
            time.sleep(0.02)

    def launch_text(self, url):
        """Returns the pipeline that a URL selects, as {stage: launch text}."""
        done = subprocess.run([self.program, '--config', self.file, '--explain', url],
                              env={**os.environ, **self.environment},
                              capture_output=True, text=True, check=True)
        return dict(re.findall(r'^# (\w+): (.*)$', done.stdout, re.MULTILINE))

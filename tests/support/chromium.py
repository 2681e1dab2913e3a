# SPDX-License-Identifier: LGPL-2.1-or-later
"""A headless Chromium with one page, driven over its debugging protocol."""

import base64
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager

from tap import SLOWER, Skip

ARGUMENTS = ('--headless=new', '--no-sandbox', '--disable-gpu', '--mute-audio', '--no-first-run',
             '--disable-dev-shm-usage', '--disable-background-networking',
             '--disable-background-timer-throttling', '--disable-renderer-backgrounding',
             '--autoplay-policy=no-user-gesture-required', '--remote-debugging-pipe')


class Chromium:
    """One browser runs at a time, as each keeps about a processor busy: others wait for its end."""

    def __init__(self, *arguments, prefix=()):
        """`prefix` are the words to put before the command."""
        program = shutil.which('chromium')
        if not program:
            raise Skip('no chromium found')
        self.turn = open(__file__, 'rb')
        fcntl.flock(self.turn, fcntl.LOCK_EX)
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        take, self.out = os.pipe()
        self.into, give = os.pipe()
        # The browser reads descriptor 3 and writes 4. dash knows no descriptors above 9.
        command = [*prefix, 'bash', '-c', f'exec "$0" "$@" 3<&{take} 4>&{give}', program, *ARGUMENTS, *arguments,
                   f'--user-data-dir={self.folder.name}', 'about:blank']
        # It is killed, and so leaves what it has in TMPDIR.
        own = os.path.join(self.folder.name, 'tmp')
        os.mkdir(own)
        self.process = subprocess.Popen(command, pass_fds=(take, give), stderr=subprocess.DEVNULL,
                                        env={**os.environ, 'TMPDIR': own})
        os.close(take)
        os.close(give)
        self.count, self.session, self.rest = 0, None, b''
        targets = self.call('Target.getTargets')['targetInfos']
        page = next(each for each in targets if each['type'] == 'page')
        self.session = self.call('Target.attachToTarget', targetId=page['targetId'], flatten=True)['sessionId']
        self.call('Page.enable')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        self.folder.cleanup()
        self.turn.close()

    def receive(self):
        while b'\0' not in self.rest:
            data = os.read(self.into, 65536)
            assert data, 'the browser has ended'
            self.rest += data
        message, _, self.rest = self.rest.partition(b'\0')
        return json.loads(message)

    def call(self, method, **parameters):
        self.count += 1
        message = {'id': self.count, 'method': method, 'params': parameters}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.out, json.dumps(message).encode() + b'\0')
        while (answer := self.receive()).get('id') != self.count:
            pass
        assert 'result' in answer, answer
        return answer['result']

    def open(self, url):
        self.call('Page.navigate', url=url)

    def run(self, script):
        """Returns the value of an expression, or None if it fails."""
        return self.call('Runtime.evaluate', expression=script, returnByValue=True,
                         awaitPromise=True)['result'].get('value')

    def wait(self, script, timeout, what):
        """Waits until an expression is true. Returns its value. The limit is for an idle machine."""
        end = time.monotonic() + SLOWER * timeout
        while not (value := self.run(script)):
            assert time.monotonic() < end, f'{what}: {value}'
            time.sleep(0.1)
        return value

    def _signal(self, number):
        found = [self.process.pid]
        for pid in found:
            for thread in os.listdir(f'/proc/{pid}/task'):
                with open(f'/proc/{pid}/task/{thread}/children', encoding='ascii') as file:
                    found += map(int, file.read().split())
            os.kill(pid, number)

    @contextmanager
    def asleep(self):
        """Stops the browser, as a telephone does that is locked."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def screenshot(self):
        return base64.b64decode(self.call('Page.captureScreenshot')['data'])

# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs rtsp-load and delay.py on the readers' side of the rig."""

import json
import math
import os
import pathlib
import resource
import sys

from proc import Proc
from rig import FIRST_PORT, LAST_PORT
from servers import BUILD

HERE = pathlib.Path(__file__).resolve().parent
FILES_OF_READER, OTHER_FILES = 5, 100


class JsonProc(Proc):
    """A command that ends by itself and prints one JSON object among other lines."""

    def result(self, timeout):
        self.wait(timeout)
        text = self.output()
        if '{' not in text:
            raise AssertionError(f'{self.command} said: {text}')
        return json.loads(text[text.index('{'):text.rindex('}') + 1])


def figure(result, name, key):
    """Returns one figure of a distribution that rtsp-load reports, or None if it had no samples."""
    return (result[name] or {}).get(key)


def set_up(result, key='p50'):
    """Returns the sum of the times of a session's three requests."""
    parts = [figure(result, name, key) for name in ('describe_ms', 'setup_ms', 'play_ms')]
    return None if None in parts else sum(parts)


class Load(JsonProc):
    def __init__(self, rig, *words, ports=(FIRST_PORT, LAST_PORT)):
        super().__init__(*rig.readers, BUILD / 'apps/rtsp-load/rtsp-load', '--json',
                         '--ports', f'{ports[0]}-{ports[1]}', *words)


class Loads:
    """Readers in as many programs as the limit of open files asks for. If `probes` is not 0, only
    this many readers, of the first program, read what they get."""

    def __init__(self, rig, readers, rate, probes, *words):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        n = math.ceil(readers * FILES_OF_READER / (limit - OTHER_FILES))
        ports = (LAST_PORT + 1 - FIRST_PORT) // n // 2 * 2
        self._loads = []
        for i in range(n):
            first = FIRST_PORT + i * ports
            more = () if not probes else ('--mute',) if i > 0 else ('--probes', probes)
            self._loads.append(Load(
                rig, '--readers', readers * (i + 1) // n - readers * i // n,
                '--arrivals', f'uniform:{rate / n}', *more, *words,
                ports=(first, first + ports - 1)))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for load in self._loads:
            load.__exit__(*error)

    def result(self, timeout):
        """Returns the sums of what the programs counted."""
        results = [load.result(timeout) for load in self._loads]
        return {name: sum(result[name] for result in results)
                for name in ('connected', 'packets', 'bytes', 'lost', 'cpu_s')}


class Delay(JsonProc):
    def __init__(self, rig, *words):
        super().__init__(*rig.readers, sys.executable, HERE / 'delay.py', *words,
                         env={**os.environ, 'PYTHONPATH': str(HERE.parent / 'support')})

# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs rtsp-load and delay.py on the readers' side of the rig."""

import json
import os
import pathlib
import sys

from proc import Proc
from rig import FIRST_PORT, LAST_PORT
from servers import BUILD

HERE = pathlib.Path(__file__).resolve().parent


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
    def __init__(self, rig, *words):
        super().__init__(*rig.readers, BUILD / 'apps/rtsp-load/rtsp-load', '--json',
                         '--ports', f'{FIRST_PORT}-{LAST_PORT}', *words)


class Delay(JsonProc):
    def __init__(self, rig, *words):
        super().__init__(*rig.readers, sys.executable, HERE / 'delay.py', *words,
                         env={**os.environ, 'PYTHONPATH': str(HERE.parent / 'support')})

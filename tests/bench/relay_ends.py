# SPDX-License-Identifier: LGPL-2.1-or-later
"""Both ends of the bench `relay`: the origin of many streams, and their readers.

relay_origin.c and relay_readers.c say what they do. Each packet has a stamp with its number and the
time at which it was sent, so that losses, the share delivered and delays are exact.
"""

import json
import re
import time

from proc import Proc
from servers import BUILD, ORIGIN_PORT, ORIGIN_RTP

SLOT = 0.1  # seconds in which packets are counted together


class Camera(Proc):
    """The origin. `shape` is one of relay_shape.c, and `how` are words of relay_origin.c."""

    def __init__(self, rig, shape='camera', *how):
        self._address = f'{rig.server_address}:{ORIGIN_PORT}'
        super().__init__(*rig.server, BUILD / 'tests/bench/relay_origin', self._address, ORIGIN_RTP,
                         shape, *how)
        self.ready_ns = int(self.wait_for_line(r'^READY at_ns=(\d+)')[1])

    def dump(self):
        """Prints the output, without the lines about slots of time."""
        for line in self.output().splitlines():
            if not line.startswith('slot='):
                print(f'# relay_origin: {line}')

    @staticmethod
    def mounts(rig, streams):
        """Returns a server's mounts {path: URL}, each with a stream of its own."""
        return {f's{n}': f'rtsp://{rig.server_address}:{ORIGIN_PORT}/s{n}' for n in range(streams)}

    def slots(self):
        """Returns {number: {name: value}} of the slots of time that are over."""
        found = {}
        for line in self.output().splitlines():
            if line.startswith('slot='):
                values = {name: int(value) for name, value in re.findall(r'(\w+)=(\d+)', line)}
                found[values.pop('slot')] = values
        return found

    def sent(self, begin, end):
        """Returns the sums and the largest lateness of the slots from `begin` to before `end`."""
        slots = [values for slot, values in self.slots().items() if begin <= slot < end]
        return {'packets': sum(values['packets'] for values in slots),
                'failed': sum(values['failed'] for values in slots),
                'late_ms': max((values['late_us'] / 1e3 for values in slots), default=0)}

    def wait_for_sessions(self, number, seconds):
        """Waits until `number` sessions play. Returns how many do at the end."""
        deadline = time.monotonic() + seconds
        while True:
            slots = self.slots()
            playing = slots[max(slots)]['sessions'] if slots else 0
            if playing >= number or time.monotonic() > deadline:
                return playing
            time.sleep(SLOT)


class Readers(Proc):
    """One reader for each stream, in the order of `mounts`. With a `window` of 0 they run until
    they are stopped."""

    def __init__(self, rig, server, mounts, tracks, rate, settle, window):
        address, path, first = re.fullmatch(r'rtsp://([^/]*)/(.*?)(\d*)',
                                            server.url(next(iter(mounts)))).groups()
        self._patience = len(mounts) / rate + 60 + settle + window + 20
        super().__init__(*rig.readers, BUILD / 'tests/bench/relay_readers',
                         address, path, first or 0, len(mounts), tracks, rate, settle, window)

    def wait_to_measure(self):
        self.wait_for_line('^MEASURE$', timeout=self._patience)

    def wait_until_done(self):
        self.wait_for_line('^DONE$', timeout=self._patience)

    def result(self):
        self.wait(self._patience)
        text = self.output()
        if '{' not in text:
            raise AssertionError(f'relay_readers said: {text}')
        return json.loads(text[text.index('{'):text.rindex('}') + 1])

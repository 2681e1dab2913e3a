# SPDX-License-Identifier: LGPL-2.1-or-later
"""Changes valid messages of RTSP so that they are invalid in ways that parsers know."""

import re

from scripted import CHALLENGES

NUMBERS = '0', '-1', '1', '65536', '2147483648', '4294967295', '99999999999999999999', '1e999', 'x', ''
HEADERS = (
    'Session: x', 'Session: ', 'CSeq: ', 'CSeq: -1', 'Require: x', 'Content-Length: -1',
    'Content-Length: 5', 'Content-Type: x', 'Range: npt=-', 'Range: clock=x-', 'Range: npt=5-1',
    'Scale: 0', 'Scale: -1e99', 'Speed: nan', 'Blocksize: -1', 'Bandwidth: 0', 'X: ' + 'y' * 5000,
    'Transport: ', 'Transport: RTP/AVP;unicast;client_port=0-0', 'Transport: x-real-rdt/tcp',
    'Transport: RTP/AVP/TCP;interleaved=255-0', 'Transport: RTP/AVP;multicast;ttl=999',
    'Accept: x', 'Authorization: Digest', 'Authorization: Basic ====', 'RTP-Info: url=;seq=;rtptime=',
    'Location: rtsp://', 'Content-Base: x', 'Public: ,', ': ', 'x', '\0: \xff', 'Connection: close',
    'x-sessioncookie: a', 'Supported: x-weir-schedule', 'Content-Type: application/x-weir-ranges',
    'Accept: application/x-weir-packets', *(f'WWW-Authenticate: {challenge}' for challenge in CHALLENGES))


def spoilt(data, chance, most=6):
    """Returns the data with some bytes changed, removed, cut off, inserted or repeated."""
    data = bytearray(data)
    for _ in range(chance.randrange(1, most + 1)):
        at = chance.randrange(len(data) + 1)
        what = chance.randrange(6)
        if what < 2 and at < len(data):
            data[at] = chance.choice((0, 13, 10, 32, 36, 58, 255, chance.randrange(256)))
        elif what == 2:
            del data[at:at + chance.randrange(1, 20)]
        elif what == 3:
            data[at:at] = chance.randbytes(chance.randrange(1, 12))
        elif what == 4:
            data[at:at] = data[at:at + chance.randrange(1, 200)]
        elif chance.random() < 0.2:
            del data[at:]
    return bytes(data)


def other_lines(head, lines, chance):
    """Returns a head with lines removed, repeated and added, and with other numbers."""
    first, *rest = head.split('\r\n')
    for _ in range(chance.randrange(3)):
        what, at = chance.randrange(4), chance.randrange(len(rest) + 1)
        if what == 0 and at < len(rest):
            del rest[at]
        elif what == 1 and at < len(rest):
            rest.insert(at, rest[at])
        elif what == 2:
            rest.insert(at, chance.choice(lines))
        elif at < len(rest):
            rest[at] = re.sub(r'\d+', lambda _: chance.choice(NUMBERS), rest[at], count=1)
    return '\r\n'.join((first, *rest))

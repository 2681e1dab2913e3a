# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy whose upstream is a scripted server, read by the light client."""

import re
from contextlib import contextmanager

from control import Watch
from proxy import Proxy, matches
from scripted import KEY_PICTURE, VIDEO, Server, rtp

SETTINGS = {'client': 'light', 'on-demand': 'no', 'transport': 'tcp', 'connect-timeout': '2s',
            'read-timeout': '3s'}


def with_credentials(url):
    return url.replace('://', '://user:word@')


def play(session, tracks=(VIDEO,), piece=None, send=None):
    """Sends keyframes until the session ends."""
    send = send or (lambda track, packet: session.send(track, packet, piece=piece))
    try:
        for seq in range(100000):
            for track in tracks:
                send(track, rtp(seq, seq * 1800, KEY_PICTURE, track))
            if session.left.wait(0.02):
                return
    except OSError:
        pass


@contextmanager
def pulled(server, **settings):
    """Runs the proxy with the server as its upstream."""
    settings = {key.replace('_', '-'): value for key, value in settings.items()}
    mount = {'upstream': with_credentials(server.url), **SETTINGS, **settings}
    with server, Proxy({'/cam': mount}) as proxy:
        yield proxy


def check_plays(proxy, tracks=(VIDEO,)):
    """Checks that a reader gets packets of these tracks, with the payload types of the SDP."""
    proxy.wait_for_line(rf' mount /cam up: .*, {len(tracks)} tracks?$', 10)
    with Watch(proxy) as reader:
        for number, track in enumerate(tracks):
            got = []
            while len(got) < 3:
                channel, packet = reader.frame()
                if channel == 2 * number:
                    got.append(packet)
            assert all(packet[1] & 0x7f == 96 + track for packet in got), got


def plays(server, tracks=(VIDEO,), **settings):
    with pulled(server, **settings) as proxy:
        check_plays(proxy, tracks)


def only(method, change):
    """Returns a function that changes the answers to one method."""
    return lambda asked, answer: change(answer) if asked == method else answer


def without(name):
    return lambda _, answer: re.sub(name + rb': [^\r]*\r\n', b'', answer)


def requests(server, method):
    return [each for session in server.sessions for each in session.requests if each[0] == method]


def status(text, *lines):
    """Returns a function that replaces the status of an answer, and its headers but CSeq."""
    def change(answer):
        cseq = re.search(rb'CSeq: \d+\r\n', answer)[0].decode()
        head = f'RTSP/1.0 {text}\r\n{cseq}' + ''.join(f'{line}\r\n' for line in lines)
        return head.encode() + b'\r\n'

    return change


def with_body(answer, body):
    head = answer.partition(b'\r\n\r\n')[0]
    head = re.sub(rb'Content-Length: \d+', b'Content-Length: %d' % len(body), head)
    return head + b'\r\n\r\n' + body


def is_down(server, reason, **settings):
    """Checks that the mount is down for this reason while another one is served."""
    settings = {**SETTINGS, **settings}
    with server, Server(play) as good:
        mounts = {'/cam': {'upstream': with_credentials(server.url), **settings},
                  '/good': {'upstream': good.url, **settings}}
        with Proxy(mounts) as proxy:
            proxy.wait_for_line(rf' mount /cam down: rtsps?://\S+: {reason}; next try in ', 10)
            proxy.wait_for_line(' mount /good up: ', 5)
            with Watch(proxy, '/good') as reader:
                for _ in range(50):
                    reader.frame()
            assert not matches(proxy, ' mount /good down: '), proxy.output()
            proxy.check_alive()

# SPDX-License-Identifier: LGPL-2.1-or-later
"""Upstreams with invalid answers: the proxy survives and serves its other mounts."""

import contextlib
import itertools
import os
import threading

from proc import known_criticals
from proxy import CLIENT, QUICK, Proxy, wait_until
from scripted import (CHALLENGES, KEY_PICTURE, VIDEO, Server, adding, changing, describing,
                      refusing, removing, rtp)
from tap import run, test

SDP = b'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\n'
PATIENCE = 10 if os.environ.get('WEIR_SANITIZER_RUNTIME') else 2
# rtspsrc of GStreamer 1.22, if a server that answered with a transport over UDP sends over TCP while
# rtspsrc waits for the answer to TEARDOWN.
STRAY_DATA = r"GStreamer-CRITICAL .*gst_event_set_seqnum: assertion 'seqnum != GST_SEQNUM_INVALID' failed"
TRACK = b'm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:track0\r\n'


def play(session):
    try:
        for seq in itertools.count():
            if session.left.wait(0.02):
                return
            session.send(VIDEO, rtp(seq, seq * 1800, KEY_PICTURE))
    except OSError:
        pass


def survived(mangles, transport='tcp'):
    """Requests mounts with these upstreams, all at once. Checks that the proxy answers each request,
    and soon for a mount with a valid upstream. Returns the statuses."""
    good = Server(play)
    bad = [Server(play, mangle=mangle) for mangle in mangles]
    settings = {**QUICK, 'transport': transport}
    mounts = {f'/{n}': {'upstream': server.url.replace('//', '//user:word@'), **settings}
              for n, server in enumerate(bad)}
    good_settings = {'upstream': good.url, **settings, 'on-demand': False}
    with Proxy({'/good': good_settings, **mounts}) as proxy:
        proxy.wait_for_line(' mount /good up: ')
        answers = {}
        asking = [threading.Thread(target=lambda path=path: answers.update(
            {path: proxy.ask('DESCRIBE', path)[0]})) for path in mounts]
        for each in asking:
            each.start()
        while asking:
            status, seconds = proxy.ask('DESCRIBE', '/good')
            assert status == 200 and seconds < PATIENCE, (status, seconds)
            asking = [each for each in asking if each.is_alive()]
            for each in asking[:1]:
                each.join(0.1)
        assert set(answers) == set(mounts), answers
        proxy.check_alive()
    for server in good, *bad:
        server.__exit__()
    return list(answers.values())


@test
def the_proxy_survives_invalid_challenges():
    mangles = [refusing(f'WWW-Authenticate: {challenge}') for challenge in CHALLENGES]
    mangles.append(refusing(*['WWW-Authenticate: Digest realm="x"'] * 1000))
    assert set(survived(mangles)) == {503}


@test
def the_proxy_survives_invalid_challenges_to_each_method():
    assert 503 in survived([
        refusing('WWW-Authenticate: Digest', methods=(method,), status=status)
        for method in ('OPTIONS', 'DESCRIBE', 'SETUP', 'PLAY')
        for status in ('401 Unauthorized', '404 Not Found')])


@test
def the_proxy_survives_a_challenged_keep_alive():
    refuse = refusing('WWW-Authenticate: Digest', methods=('OPTIONS', 'GET_PARAMETER'))

    def mangle(method, answer):
        if method == 'PLAY':
            server.mangle = refuse
        return answer

    with Server(play, timeout=2, mangle=mangle) as server:
        settings = {'upstream': server.url, **QUICK, 'transport': 'udp', 'on-demand': False}
        with Proxy({'/cam': settings}) as proxy:
            proxy.wait_for_line(' mount /cam up: ')
            session = next(each for each in server.sessions if 'PLAY' in each.asked)
            wait_until(lambda: session.asked[-1] != 'PLAY', 10, 'a keep-alive')
            # By then the proxy has read the refusal. It may keep the session or close it.
            wait_until(lambda: len(session.asked) > session.asked.index('PLAY') + 2
                       or session.left.is_set(), 10, 'another keep-alive or the end of the session')
            proxy.check_alive()


@test
def the_proxy_survives_unrequested_transports():
    mangles = [changing(b'Transport', value) for value in (
        b'x-real-rdt/tcp;interleaved=0', b'x-real-rdt/udp;client_port=5000', b'RAW/RAW/UDP', b'',
        b';;', b'RTP/AVP', b'RTP/AVP/TCP', b'RTP/AVP/TCP;interleaved=0-255',
        b'RTP/AVP/TCP;interleaved=255-0', b'RTP/AVP/TCP;interleaved=-1--2',
        b'RTP/AVP/TCP;interleaved=300-301', b'RTP/SAVP/TCP;interleaved=0-1',
        b'RTP/AVP;unicast;client_port=1-2;server_port=70000-80000',
        b'RTP/AVP;unicast;client_port=0-0;server_port=0-0;source=256.0.0.1',
        b'RTP/AVP;multicast', b'RTP/AVP;multicast;destination=x;port=1-2;ttl=999')]
    mangles.append(removing(b'Transport'))
    survived(mangles, 'udp')
    with known_criticals(STRAY_DATA) if CLIENT == 'rtspsrc' else contextlib.nullcontext():
        survived(mangles, 'tcp')


@test
def an_invalid_transport_is_requested_once():
    """an invalid transport is requested once; the light client takes it as the requested one"""
    expected = 503 if CLIENT == 'rtspsrc' else 200
    for transport in 'udp', 'tcp':
        with Server(play, mangle=changing(b'Transport', b';;')) as server:
            with Proxy({'/cam': {'upstream': server.url, **QUICK, 'transport': transport}}) as proxy:
                assert proxy.ask('DESCRIBE')[0] == expected
            asked = [session.asked.count('SETUP') for session in server.sessions]
            assert set(asked) == {1}, asked


@test
def the_proxy_survives_invalid_sessions_and_numbers():
    survived([changing(b'Session', value) for value in (
        b'', b';', b'abc;timeout=0', b'abc;timeout=-1', b'abc;timeout=1', b'abc;timeout=2147483647',
        b'abc;timeout=99999999999999', b'a' * 3000)]
        + [changing(b'CSeq', value) for value in (b'-1', b'99', b'x')]
        + [changing(b'Content-Length', value) for value in (
            b'-1', b'0', b'1', b'x', b'4294967295', b'99999999999999999999')]
        + [removing(name) for name in (b'Session', b'CSeq', b'Content-Length')], 'udp')


@test
def the_proxy_survives_invalid_redirects():
    assert set(survived([
        refusing(*lines, methods=('DESCRIBE',), status='302 Found')
        for lines in ((), *((f'Location: {to}',) for to in (
            '', 'x', 'rtsp://', 'rtsp://[::1', 'rtsp-sdp://v=0', 'http://x/', '/s')))])) == {503}


@test
def the_proxy_survives_invalid_descriptions():
    lines = (
        b'a=rtpmap:96 H264/0', b'a=rtpmap:96 H264/-1', b'a=rtpmap:96', b'a=rtpmap:96 /',
        b'a=rtpmap:96 \xff/90000', b'a=control:', b'a=control:*', b'a=control:rtsp://',
        b'a=control:\xff', b'a=key-mgmt:', b'a=key-mgmt:mikey AAAA', b'a=rtcp-fb:', b'a=rtcp-fb:* ',
        b'a=rtcp-fb:96 nack \xff', b'a=fmtp:96 ;;=;', b'a=fmtp:96 media=x;payload=300', b'a=extmap:',
        b'a=range:npt=x', b'a=ssrc:', b'c=IN IP4 ', b'm=', b'm=video 0 RTP/AVP',
        b'm=video 0 RTP/AVP 999', b'm=video 99999 RTP/SAVPF -1', b'=', b'a=' + b'z' * 100000)
    survived([describing(SDP + TRACK + line + b'\r\n') for line in lines]
             + [describing(SDP + line + b'\r\n' + TRACK) for line in lines]
             + [describing(b''), describing(SDP)])
    assert set(survived([describing(SDP + TRACK.replace(b'video', b'v\xb3')),
                         describing(SDP + TRACK.replace(b'H264', b'H\x1264')),
                         describing(SDP + TRACK.replace(b'H264', b'H' * 9000))])) == {503}


@test
def media_that_cannot_be_prepared_delays_no_other_mount():
    line = ('launch: audiotestsrc is-live=true ! rtpL16pay ! capssetter name=pay0 replace=true '
            'caps="application/x-rtp,media=audio,clock-rate=44100,payload=96"')
    with Server(play) as good, Proxy({
            '/good': {'upstream': good.url, **QUICK, 'transport': 'tcp', 'on-demand': False},
            '/bad': {'upstream': line, **QUICK, 'start-timeout': '6s'}}) as proxy:
        proxy.wait_for_line(' mount /good up: ')
        answers = []
        asking = [threading.Thread(target=lambda: answers.append(proxy.ask('DESCRIBE', '/bad')[0]))
                  for _ in range(8)]
        for each in asking:
            each.start()
        proxy.wait_for_line(' mount /bad up: ')
        for _ in range(8):
            for method in 'OPTIONS', 'DESCRIBE':
                status, seconds = proxy.ask(method, '/good')
                assert status == 200 and seconds < PATIENCE, (method, status, seconds)
        for each in asking:
            each.join()
        assert answers == [503] * 8, answers
        proxy.wait_for_line(" mount /bad cannot be served: .* track 0 has no encoding-name")


@test
def tracks_without_their_own_url_or_name_are_left_out():
    bare, bad = TRACK.replace(b'a=control:track0\r\n', b''), TRACK.replace(b'track0', b'//[::1')
    absolute = TRACK.replace(b'track0', b'rtsp://127.0.0.1/track0')
    other = TRACK.replace(b'track0', b'track1')
    bad_base = b'a=control:rtsp://[::1\r\n'
    bare_audio = b'm=audio 0 RTP/AVP 0\r\n'
    cases = [(SDP + tracks, 1) for tracks in (
        TRACK + bare, bare + TRACK, TRACK + bare_audio + bare_audio, bare_audio + TRACK,
        TRACK + bad, bad + TRACK, b'a=control:*\r\n' + TRACK + bare,
        b'a=control:track0\r\n' + bare + bare_audio)]
    long = TRACK.replace(b'track0', b'track1').replace(b'H264', b'H' * 9000)
    cases += [(SDP + TRACK + long, 1), (SDP + long + TRACK, 1)]
    cases += [(SDP + bad_base + absolute + other, 2), (SDP + absolute + other, 2)]
    servers = [Server(play, mangle=describing(description)) for description, _ in cases]
    described = servers[-1].mangle
    servers[-1].mangle = lambda method, answer: changing(b'Content-Base', b'rtsp://[::1')(
        method, described(method, answer))
    with Proxy({f'/{n}': {'upstream': server.url, **QUICK, 'transport': 'tcp'}
                for n, server in enumerate(servers)}) as proxy:
        for n, (description, expected) in enumerate(cases):
            assert proxy.ask('DESCRIBE', f'/{n}')[0] == 200, description
            offered = int(proxy.wait_for_line(rf' mount /{n} up: .*, (\d+) tracks')[1])
            set_up = servers[n].sessions[0].asked.count('SETUP')
            assert offered == set_up == expected, (offered, set_up, description)
    for server in servers:
        server.__exit__()


@test
def the_proxy_survives_endless_descriptions():
    many = b''.join(TRACK.replace(b'track0', b'track%d' % n) for n in range(10000))
    survived([describing(SDP + many), describing(SDP + TRACK * 5000),
              describing(SDP + TRACK + b'a=fmtp:96 ' + b'x=1;' * 60000 + b'\r\n'),
              *(adding(b'X: ' + b'y' * length) for length in (4000, 5000, 100000))])


if __name__ == '__main__':
    run()

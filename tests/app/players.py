# SPDX-License-Identifier: LGPL-2.1-or-later
"""Players that deviate from RFC 2326 are served: their SETUPs, their silence over UDP, their queries."""

import struct
import time

from control import CLIP_URI, Controlled
from proc import Rtsp, free_udp_pair
from proxy import QUICK, Read, matches, tracks
from tap import run, test

TCP = 'RTP/AVP/TCP;unicast;interleaved={}-{}'
FILE = {'upstream': CLIP_URI, **QUICK}
SDP = ('v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n'
       'a=rtpmap:96 H264/90000\r\na=control:streamid=0\r\n')


def described(proxy, path='/cam'):
    player = Rtsp(proxy.port)
    assert player.request('DESCRIBE', proxy.url(path))[0] == 200
    return player


def set_up(player, url, track, transport=None, session=None):
    """Sends SETUP with this Session, or without. Returns the answer."""
    player.session = None
    headers = {'Transport': transport or TCP.format(2 * track, 2 * track + 1)}
    if session is not None:
        headers['Session'] = session
    return player.request('SETUP', f'{url}/stream={track}', headers)


def take_both(player):
    """Waits for packets of both tracks."""
    channels = set()
    while not channels >= {0, 2}:
        channels.add(player.frame()[0])


def plays(proxy, url, ports, player):
    """Plays over UDP. Returns for how many seconds, and how many packets came."""
    assert player.request('PLAY', url)[0] == 200
    begun, number = time.monotonic(), 0
    ports[0].settimeout(2)
    try:
        while time.monotonic() < begun + 8:
            ports[0].recv(65536)
            number += 1
    except TimeoutError:
        pass
    return time.monotonic() - begun, number


@test
def udp_without_unicast():
    """SETUP over UDP without "unicast" gets unicast; one without ports, which means multicast, is refused"""
    with Controlled({'/cam': FILE}) as proxy:
        for form in 'RTP/AVP/UDP;client_port={}-{}', 'RTP/AVP;client_port={}-{}', ' rtp/avp ; client_port = {}-{} ':
            with described(proxy) as player:
                ports = free_udp_pair()
                numbers = [each.getsockname()[1] for each in ports]
                status, headers, _ = set_up(player, proxy.url(), 0, form.format(*numbers))
                assert status == 200 and 'unicast' in headers['transport'], (form, status, headers)
                assert player.request('PLAY', proxy.url())[0] == 200
                ports[0].settimeout(20)
                assert ports[0].recv(65536)
                for each in ports:
                    each.close()
        with described(proxy) as player:
            for transport in ('RTP/AVP', 'RTP/AVP;multicast;client_port=5000-5001', 'RTP/AVP;port=5000-5001',
                              'RTP/AVP;multicast'):
                assert set_up(player, proxy.url(), 0, transport)[0] == 461, transport
            assert set_up(player, proxy.url(), 0, 'RTP/AVP;client_port=80-81')[0] == 461


@test
def a_second_setup_without_session_joins_the_first():
    """a SETUP of another track without Session joins the session, in which both tracks play"""
    with Controlled({'/cam': FILE, '/other': FILE}) as proxy:
        for line_end in '\r\n', '\n':
            with described(proxy) as player:
                first = set_up(player, proxy.url(), 0)
                player.send(f'SETUP {proxy.url()}/stream=1 RTSP/1.0{line_end}CSeq: 9{line_end}'
                            f'Transport: {TCP.format(2, 3)}{line_end}{line_end}'.encode())
                second = player.answer()
                assert (first[0], second[0]) == (200, 200), (first, second)
                assert first[1]['session'].split(';')[0] == second[1]['session'].split(';')[0]
                player.session = first[1]['session'].split(';')[0]
                assert player.request('PLAY', proxy.url())[0] == 200
                take_both(player)
        with described(proxy) as player:
            assert set_up(player, proxy.url(), 0)[0] == 200
            # That of another mount has no session to join, and the connection may have no other.
            assert player.request('DESCRIBE', proxy.url('/other'))[0] == 200
            answer = set_up(player, proxy.url('/other'), 0)
            assert answer[0] == 503, answer
            proxy.wait_for_line(r' reader \S+ refused: SETUP: the connection has too many sessions \(limits.sessions\)$')


@test
def each_setup_without_session_is_one_where_many_are_allowed():
    """with limits.sessions, SETUPs of different mounts without Session begin sessions, those of one mount join"""
    with Controlled({'/cam': FILE, '/other': FILE}, limits={'sessions': 4}) as proxy, described(proxy) as player:
        ids = []
        for at, (path, track) in enumerate((('/cam', 0), ('/other', 0), ('/cam', 1), ('/other', 1))):
            assert player.request('DESCRIBE', proxy.url(path))[0] == 200
            answer = set_up(player, proxy.url(path), track, TCP.format(2 * at, 2 * at + 1))
            assert answer[0] == 200, (path, track, answer)
            ids.append(answer[1]['session'].split(';')[0])
        assert ids[0] == ids[2] != ids[1] == ids[3], ids


@test
def a_session_of_the_players_own_is_replaced():
    """a SETUP with a Session that the player has made up gets one; other requests with such get 454 and a line"""
    with Controlled({'/cam': FILE}) as proxy:
        for own in 'null', '12345678', '', 'a;timeout=60', '0' * 900:
            with described(proxy) as player:
                ids = []
                for track in 0, 1:
                    status, headers, _ = set_up(player, proxy.url(), track, session=own)
                    assert status == 200, (own, status)
                    ids.append(headers['session'].split(';')[0])
                assert ids[0] == ids[1] != own, ids
                seen = len(proxy.lines)
                if own == '12345678':
                    assert player.request('PLAY', proxy.url(), {'Session': own})[0] == 454
                    proxy.wait_for_line(r' reader \S+ refused: PLAY: its header Session names no session of this '
                                        'connection$', start=seen)
                player.session = ids[0]
                assert player.request('PLAY', proxy.url())[0] == 200
                take_both(player)


@test
def a_publisher_with_a_session_of_its_own_is_taken():
    """ANNOUNCE and SETUP with "Session: null", as an old RootEncoder sends it, are taken"""
    with Controlled({'/cam': {'upstream': 'publish', **QUICK}}) as proxy, Rtsp(proxy.port) as publisher:
        headers = {'Session': 'null', 'Content-Type': 'application/sdp'}
        assert publisher.request('ANNOUNCE', proxy.url(), headers, SDP.encode())[0] == 200
        answer = publisher.request('SETUP', proxy.url() + '/streamid=0', {
            'Session': 'null', 'Transport': 'RTP/AVP/TCP;unicast;interleaved=0-1;mode=record'})
        assert answer[0] == 200, answer
        assert publisher.request('RECORD', proxy.url())[0] == 200
        for number in range(50):
            publisher.send_frame(0, struct.pack('>BBHII', 0x80, 0xe0, number, number * 3600, 77) + b'\x65' + bytes(50))
        proxy.wait_for_line(r' mount /cam up: publish, 1 track')


@test(timeout=90)
def a_udp_reader_that_only_receives_plays_on_where_it_is_trusted():
    """a UDP reader that sends no datagram plays on in a trusted network, and is cut after 5 s in any other"""
    for networks, plays_on in (None, True), (['127.0.0.0/8'], True), ([], False), (['192.0.2.0/24', '::1'], False):
        more = {} if networks is None else {'trusted-networks': networks}
        with Controlled({'/cam': FILE}, **more) as proxy, described(proxy) as player:
            ports = free_udp_pair()
            numbers = [each.getsockname()[1] for each in ports]
            assert set_up(player, proxy.url(), 0, 'RTP/AVP;unicast;client_port={}-{}'.format(*numbers))[0] == 200
            seconds, number = plays(proxy, proxy.url(), ports, player)
            assert number > 50, number
            if plays_on:
                assert seconds >= 8 and not matches(proxy, ' out: /cam'), (networks, seconds)
                assert player.request('GET_PARAMETER', proxy.url())[0] == 200
            else:
                proxy.wait_for_line(r' reader \S+ out: /cam: no datagram came from its UDP ports within 5 s; let it use '
                                    'TCP, or add its network to trusted-networks$')
            for each in ports:
                each.close()


def status(proxy, path):
    with Rtsp(proxy.port) as player:
        return player.request('DESCRIBE', proxy.url(path))[0]


@test
def unknown_queries_are_ignored():
    """parameters that a mount does not offer are ignored, or refused with strict-queries; wrong values are refused"""
    folder = {'upstream': CLIP_URI.rpartition('/')[0] + '/', **QUICK}
    scaled = {'upstream': CLIP_URI, **QUICK, 'choices': {'transcode': ['size']}}
    title = '/films/' + CLIP_URI.rpartition('/')[2]
    unknown = ('tcp', 'transportmode=unicast', '_=123', 'a=1&a=2', 'a', '%', '%zz=1', 'a=' + 500 * 'x',
               'transportmode=unicast&profile=Profile_1', '=', 'SIZE=1x1')
    for strict in 'no', 'yes':
        with Controlled({'/cam': FILE, '/films': folder, '/scaled': scaled}, http={'listen': '127.0.0.1:0'}, hls={},
                        **{'strict-queries': strict}) as proxy:
            for query in unknown:
                for path in '/cam', '/scaled', title:
                    wanted = 404 if strict == 'yes' else 200
                    assert status(proxy, f'{path}?{query}') == wanted, (strict, path, query)
            for query in 'size=1x1', 'size', 'size=160x120&size=80x60', 'layers=x', 'delay=30', 'delay=x', '%73ize=x':
                assert status(proxy, f'/scaled?{query}') == 404, (strict, query)
                assert query[:4] not in ('laye', 'dela') or status(proxy, f'{title}?{query}') == 404, (strict, query)
            assert status(proxy, '/scaled?size=160x120') == 200
            if strict == 'no':
                assert status(proxy, '/scaled?tcp&size=160x120&_=1') == 200
                # A reader with such a query gets what the others get.
                for path in '/cam?tcp', title + '?tcp':
                    with Read(proxy.url(path), duration=2) as read:
                        for number, name, track in tracks(read.result()):
                            assert track['lost'] == 0 and track['packets'] > 20, (number, name, track)
                paths = {each['path'] for each in proxy.get('/v1/mounts')['mounts']}
                assert '/cam' in paths, paths
                with Read(proxy.url('/scaled?tcp&size=160x120&_=1'), duration=2) as read:
                    proxy.wait_for_line(r' reader \S+ in: /scaled')
                    urls = {each['url'] for each in proxy.get('/v1/mounts/scaled')['presentations']}
                    assert urls == {'/scaled', '/scaled?size=160x120'}, urls
                    read.result()


if __name__ == '__main__':
    run()

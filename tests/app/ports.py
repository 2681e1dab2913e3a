# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where no UDP ports are free, readers over TCP are served, nothing waits or spins, and the log and
the answers say what is wrong. The ports are those of a network of this process."""

import os
import re
import socket
import subprocess
from contextlib import ExitStack

from control import CLIP_URI, Controlled, Watch
from good import play_on
from multicast import enter_network
from proc import Rtsp, free_udp_pair, thread_names
from proxy import QUICK, wait_until
from scripted import Server
from tap import SLOWER, Skip, run, test

RANGE = '/proc/sys/net/ipv4/ip_local_port_range'
FIRST, LAST = 40000, 40127  # also the ports of TCP clients
TCP = 'RTP/AVP/TCP;unicast;interleaved=0-1'
UDP = 'RTP/AVP;unicast;client_port=20000-20001'

HAS_NETWORK = enter_network()  # before the first socket


def take_ports(stack, but=()):
    """Binds all UDP ports that the kernel gives out, but these."""
    if not HAS_NETWORK:
        raise Skip('needs root, for a network of its own')
    with open(RANGE, 'w', encoding='ascii') as file:
        file.write(f'{FIRST} {LAST}')
    for port in range(FIRST, LAST + 1):
        if port not in but:
            taken = stack.enter_context(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
            taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            taken.bind(('::', port))


def settle(proxy):
    """No thread of the proxy opens media any more."""
    wait_until(lambda: 'media-opener' not in thread_names(proxy.pid).values(), 10,
               'nothing is being opened')


def set_up(proxy, path, transport):
    """Returns the answer to the SETUP of a new connection."""
    with Rtsp(proxy.port) as rtsp:
        assert rtsp.request('DESCRIBE', proxy.url(path))[0] == 200
        return rtsp.request('SETUP', proxy.url(path) + '/stream=0', {'Transport': transport})


def check(proxy, path):
    """A mount is served over TCP, and over nothing else."""
    with Watch(proxy, path) as reader:
        reader.take()
    status, _, body = set_up(proxy, path, UDP)
    assert status == 461 and b'no free UDP ports' in body, (status, body)
    status, fields, _ = set_up(proxy, path, f'{UDP},{TCP}')
    assert status == 200 and fields['transport'].startswith('RTP/AVP/TCP'), fields
    proxy.wait_for_line(r' reader \S+ refused: SETUP: .*no free UDP ports')


def serving(upstream):
    return Controlled({'/cam': {'upstream': upstream.url, 'transport': 'tcp', **QUICK},
                       '/films': {'upstream': os.path.dirname(CLIP_URI) + '/'}})


def check_both(but=()):
    with ExitStack() as stack:
        upstream = stack.enter_context(Server(play_on))
        with ExitStack() as taken:
            take_ports(taken, but)
            proxy = stack.enter_context(serving(upstream))
            check(proxy, '/cam')
            proxy.wait_for_line(r' mount /cam: no free UDP ports.*over TCP only')
            check(proxy, '/films/bigbuckbunny.mp4')
            settle(proxy)
        # Ports are free again: the mount serves UDP when it is opened next.
        wait_until(lambda: proxy.get('/v1/mounts/cam')['state'] == 'idle', 20, 'the mount is idle')
        pair = free_udp_pair()
        ports = '-'.join(str(each.getsockname()[1]) for each in pair)
        for path in '/cam', '/films/bigbuckbunny.mp4':
            status, fields, _ = set_up(proxy, path, f'RTP/AVP;unicast;client_port={ports}')
            assert status == 200 and re.search(r'server_port=\d+-\d+', fields['transport']), fields
        settle(proxy)
        assert proxy.stop() == 0


@test
def readers_over_tcp_need_no_udp_ports():
    check_both()


@test
def single_ports_are_no_pair():
    """an odd port and the even one after it are no pair for RTP and RTCP"""
    check_both({FIRST + 1, FIRST + 2, FIRST + 9})


@test
def the_last_pair_is_used():
    with ExitStack() as stack:
        upstream = stack.enter_context(Server(play_on))
        take_ports(stack, {FIRST + 20, FIRST + 21})
        proxy = stack.enter_context(serving(upstream))
        status, fields, _ = set_up(proxy, '/cam', UDP)
        assert status == 200 and f'server_port={FIRST + 20}-{FIRST + 21}' in fields['transport'], fields
        assert proxy.stop() == 0


@test
def readers_of_other_protocols_need_no_rtsp_ports():
    """HLS, HTTP-TS and SRT, whose caller has the only free port"""
    with ExitStack() as stack:
        take_ports(stack, {FIRST + 1})
        proxy = stack.enter_context(Controlled({'/cam': {'upstream': CLIP_URI, **QUICK}}, hls={},
                                               http={'listen': '127.0.0.1:0'}, srt={'listen': f'127.0.0.1:{FIRST - 1}'}))
        web = proxy.wait_for_line(r' titles (http://[\d.]+:\d+)')[1]
        for url in f'{web}/hls/cam/index.m3u8', f'{web}/ts/cam', f'srt://127.0.0.1:{FIRST - 1}?streamid=read:cam':
            done = subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-i', url, '-map', '0:v', '-frames:v', '25', '-f',
                                   'framehash', '-'], capture_output=True, text=True, timeout=60 * SLOWER, check=True)
            assert len(re.findall(r'^0, ', done.stdout, re.M)) == 25, done.stdout
        assert not [line for line in proxy.lines if 'ports' in line], 'RTSP media was opened'
        assert proxy.stop() == 0


if __name__ == '__main__':
    run()

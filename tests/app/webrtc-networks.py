# SPDX-License-Identifier: LGPL-2.1-or-later
"""Readers over WebRTC behind networks as they are: without UDP, behind a router, with a small MTU, with IPv6 only."""

import json
import subprocess

from networks import PROXY, Wide, connect, line, network, tool
from tap import SLOWER, run, test
from webrtcproxy import program

PUBLIC = '203.0.113.1'


def behind_router(client, router):
    """The router has the address PUBLIC, and passes three ports on to this process, as that of a container does."""
    connect('line', router, [f'{PROXY}/24'], ['10.79.0.254/24'])
    tool('ip', 'route', 'add', 'default', 'via', '10.79.0.254')
    router.run('ip', 'link', 'add', 'outside', 'type', 'veth', 'peer', 'name', 'outside', 'netns', client.path)
    for side, address in (router, PUBLIC), (client, '203.0.113.2'):
        side.run('ip', 'address', 'add', f'{address}/24', 'dev', 'outside')
        side.run('ip', 'link', 'set', 'outside', 'up')
    router.run('sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward')
    router.run('nft', '-f', '-', text=f"""table ip nat {{ chain in {{ type nat hook prerouting priority -100;
        udp dport 8189 dnat to {PROXY}; tcp dport {{ 8189, 8888 }} dnat to {PROXY}; }}; }}""")


def drop(client, what):
    client.run('nft', '-f', '-', text=f'table inet no {{ chain out {{ type filter hook output priority 0; {what} drop; }}; }}')


def read(client, proxy, *words, host=PROXY):
    """Reads for 3 s, and checks that all comes. Returns the address of the proxy that was chosen."""
    done = subprocess.run([*client.words, program(), 'read', '--json', '--duration', '3', *words,
                           f'http://{host}:{proxy.web_port}/cam/whep'],
                          check=True, timeout=60 * SLOWER, capture_output=True, text=True)
    result, = json.loads(done.stdout)
    tracks = {track['kind']: track for track in result['tracks']}
    print(f'# {result["remote"]} after {result["connected_ms"]} ms: {tracks}')
    assert tracks['video']['units'] > 40 and not any(track['lost'] for track in tracks.values()), result
    return result['remote']


def fragments():
    """How many datagrams this process's network has sent in pieces."""
    with open('/proc/self/net/snmp', encoding='ascii') as file:
        names, values = (text.split() for text in file if text.startswith('Ip:'))
    with open('/proc/self/net/snmp6', encoding='ascii') as file:
        six = dict(text.split() for text in file)
    return int(dict(zip(names, values))['FragCreates']) + int(six['Ip6FragCreates'])


@test(timeout=90)
def a_network_without_udp_is_read_over_tcp():
    with line() as client, Wide() as proxy:
        assert read(client, proxy, '--any').startswith('udp')
        drop(client, 'meta l4proto udp')
        assert read(client, proxy, '--any').startswith('tcp')


@test(timeout=90)
def a_router_that_passes_ports_on_needs_its_address():
    """a router that passes ports on (DNAT) needs only its address in additional-hosts"""
    with network(behind_router, 2) as (client, _), Wide(port=8888, listen='0.0.0.0:8189', **{'additional-hosts': [PUBLIC]}) as proxy:
        for words, kind in ((), 'udp'), (('--tcp',), 'tcp'):
            remote = read(client, proxy, *words, host=PUBLIC)
            assert remote.startswith(kind) and PUBLIC in remote, remote


@test(timeout=90)
def no_packet_is_longer_than_a_small_mtu():
    """over lines of 1280 bytes, of IPv4 and of IPv6, no packet is sent in pieces"""
    with line(mtu=1280) as client, Wide(listen='[::]:0') as proxy:
        before = fragments()
        assert PROXY in read(client, proxy)
        drop(client, 'meta nfproto ipv4 meta l4proto udp')
        assert 'fd79::1' in read(client, proxy)
        assert fragments() == before, (before, fragments())


run()

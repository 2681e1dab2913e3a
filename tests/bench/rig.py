#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A network of two hosts inside this one, so that a server is charged for its sending alone.

The rig has two network namespaces and a veth pair between them. The readers' side drops media as
it arrives, so the server pays what it would pay with a NIC: the way down through its own stack,
and no receiver's cost.

The namespaces have no names, and go when this process and its children end (netns.py).

Run directly, the rig runs a command on the server's side:

    tests/bench/rig.py [--probes N] [--no-segmentation] [--rate RATE] -- COMMAND...

The command gets WEIR_RIG_SERVER and WEIR_RIG_READERS, the addresses of both sides, and
WEIR_RIG_ENTER, the words to put before a command to run it on the readers' side.
"""

import argparse
import contextlib
import os
import re
import sys
import time

from netns import Namespace, NoRig

SERVER, READERS = '10.77.0.1', '10.77.0.2'
# Keys of a proxy that lets all readers of the other host in. They have one address.
EVERYBODY = {'users': [{'name': 'any', 'permissions': [{'action': 'read'}, {'action': 'playback'}]}],
             'limits': {'connections': 100000, 'connections-per-address': 0,
                        'requests-per-second': 100000}}
FIRST_PORT, LAST_PORT = 20000, 59999
PROBES = 20
IP_UDP = 28  # bytes of IP and UDP headers before RTP

class Rig:
    """Both sides. `server` and `readers` are the words to put before a command to run it there."""

    server_address, readers_address = SERVER, READERS
    real = True

    def __init__(self, segmentation=True, rate=None):
        self._namespaces = []
        try:
            self._namespaces += [Namespace(), Namespace()]
            self.server, self.readers = (side.words for side in self._namespaces)
            self._connect()
            self._shape(segmentation, rate)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for namespace in self._namespaces:
            namespace.close()
        self._namespaces = []

    def hand_over(self):
        """Makes the namespaces survive an exec of this process."""
        for namespace in self._namespaces:
            os.set_inheritable(namespace.descriptor, True)

    def _connect(self):
        server, readers = self._namespaces
        server.run('ip', 'link', 'add', 'veth', 'type', 'veth', 'peer', 'name', 'veth', 'netns',
                   readers.path)
        for side, address in (server, SERVER), (readers, READERS):
            side.run('ip', 'link', 'set', 'lo', 'up')
            side.run('ip', 'address', 'add', f'{address}/24', 'dev', 'veth')
            side.run('ip', 'link', 'set', 'veth', 'up')
        # The kernel drops packets until its link watch has seen the link come up.
        for side in server, readers:
            while ' UP ' not in side.run('ip', '-brief', 'link', 'show', 'veth'):
                time.sleep(0.01)

    def _shape(self, segmentation, rate):
        if not segmentation:
            self._namespaces[0].run('ethtool', '-K', 'veth', 'tx-udp-segmentation', 'off')
        if rate:
            self._namespaces[0].run('tc', 'qdisc', 'add', 'dev', 'veth', 'root', 'tbf', 'rate', rate,
                 'burst', '64kb', 'latency', '100ms')

    @contextlib.contextmanager
    def narrow(self, rate, queue, burst='3kb'):
        """Limits the server's side of the link to `rate` (as tc writes it), with a queue of `queue`
        bytes after `burst`, while the context lasts."""
        device = ('dev', 'veth', 'root')
        self._namespaces[0].run('tc', 'qdisc', 'replace', *device, 'tbf', 'rate', rate, 'burst', burst,
             'limit', str(queue))
        try:
            yield
        finally:
            self._namespaces[0].run('tc', 'qdisc', 'del', *device)

    @contextlib.contextmanager
    def switch(self, rate, queue):
        """While the context lasts, drops UDP packets for the readers' ports that find no room in
        the queue of a switch on the way: it forwards `rate` packets a second, and keeps `queue`.
        Counts them as `lost`, and the others, which it drops, too, as `arrived`.

        Other than with narrow(), no packet in the queue belongs to a socket of the server, so a
        full queue does not hold the server back. The device does not segment, as a switch judges
        each packet by itself.
        """
        ports = f'udp dport {FIRST_PORT}-65535'
        with self.unsegmented():
            # For the counts, a bucket of tokens is a queue.
            self._rules(self._namespaces[1], ('arrived', 'lost'), 'netdev', 'ingress device "veth"',
                        [f'{ports} limit rate over {rate}/second burst {queue} packets counter name lost '
                         'drop',
                         f'{ports} counter name arrived drop'])
            yield

    @contextlib.contextmanager
    def unsegmented(self):
        """While the context lasts, the device does not segment, so that rules see each packet."""
        features = 'ethtool', '-K', 'veth', 'tx-udp-segmentation'
        before = self._namespaces[0].run('ethtool', '-k', 'veth')
        self._namespaces[0].run(*features, 'off')
        try:
            yield
        finally:
            if 'tx-udp-segmentation: on' in before:
                self._namespaces[0].run(*features, 'on')

    def drop_all_but(self, probes, tracks=1, let_through=()):
        """Drops packets for the readers' ports, except those of the first `probes` readers.

        Counts media (even ports) and RTCP (odd ports) separately, and also the media of readers on
        ports above that range. Leaves UDP from the source ports in `let_through` alone.
        """
        end = FIRST_PORT + 2 * tracks * probes
        others = f'udp dport {end}-{LAST_PORT}'
        kept = ', '.join(map(str, let_through))
        # The rule for most packets comes first, as the server is charged for the search.
        rules = [f'{others} {f"udp sport != {{ {kept} }}" if kept else ""} udp dport & 1 == 0 '
                 'counter name dropped drop']
        rules += [f'udp sport {port} accept' for port in let_through]
        if probes:
            ports = f'udp dport {FIRST_PORT}-{end - 1}'
            rules += [f'{ports} udp dport & 1 == 0 counter name media accept',
                      f'{ports} counter name reports accept']
        rules += [f'{others} drop',
                  f'udp dport {LAST_PORT + 1}-65535 udp dport & 1 == 0 counter name sampled']
        self._rules(self._namespaces[1], ('media', 'reports', 'dropped', 'sampled'),
                    'netdev', 'ingress device "veth"', rules)

    def let_all_through(self):
        """Drops and counts nothing from now on."""
        for side in self._namespaces:
            side.run('nft', 'flush', 'ruleset')

    def lose(self, every):
        """Drops one of `every` UDP packets for the readers' even ports."""
        self._rules(self._namespaces[1], (), 'netdev', 'ingress device "veth"',
                    [f'udp dport & 1 == 0 numgen inc mod {every} == 0 drop'])

    def lose_udp(self, every):
        """Drops one of `every` UDP packets for the readers, at random, until let_all_through()."""
        self._rules(self._namespaces[1], (), 'netdev', 'ingress device "veth"',
                    [f'meta l4proto udp numgen random mod {every} == 0 drop'])

    def count_upstream(self, port):
        """Counts the packets that the server's side gets from its upstream, which sends from
        `port`."""
        self._rules(self._namespaces[0], ('upstream',), 'inet', 'input',
                    [f'iif "lo" udp sport {port} counter name upstream'])

    def count_to(self, port):
        """Counts the datagrams that the readers' side sends to a port of the server's side."""
        self._rules(self._namespaces[0], ('sent',), 'inet', 'input', [f'iif "veth" udp dport {port} counter name sent'])

    @staticmethod
    def _rules(side, counters, family, hook, rules):
        lines = [f'table {family} rig', f'delete table {family} rig', f'table {family} rig {{']
        lines += [f'counter {name} {{ }}' for name in counters]
        lines += ['chain in {', f'type filter hook {hook} priority 0;', *rules, '}', '}']
        side.run('nft', '-f', '-', text='\n'.join(lines))

    def counters(self):
        """Returns {name: (packets, bytes)} of the counters; bytes include the IP headers.

        A packet is one unit that the device hands over: a segmented send counts as one packet with
        one IP and one UDP header.
        """
        listing = ''.join(side.run('nft', 'list', 'counters') for side in self._namespaces)
        return {
            match[1]: (int(match[2]), int(match[3]))
            for match in re.finditer(r'counter (\w+) {\s*packets (\d+) bytes (\d+)', listing)
        }

    def rtp(self, *names):
        """Returns the bytes of RTP, with RTP headers, that the named counters saw."""
        counters = self.counters()
        return sum(counters[name][1] - IP_UDP * counters[name][0] for name in names)

    def packets(self, name):
        return self.counters()[name][0]

    def overflows(self):
        """Returns how many datagrams the server's side lost because a socket's buffer was full."""
        return int(self._namespaces[0].run('awk', '/^Udp: [0-9]/ { print $6 }', '/proc/net/snmp'))

    def tcp_bytes(self, port):
        """Returns the bytes that the server's TCP connections on `port` have had acknowledged."""
        listing = self._namespaces[0].run('ss', '-tinH', 'sport', '=', f':{port}')
        return sum(map(int, re.findall(r'bytes_acked:(\d+)', listing)))


class Loopback:
    """Replaces the rig where it cannot run: everything is on 127.0.0.1, and the server pays for the
    receivers.

    Drops nothing and counts nothing; only the readers count.
    """

    server_address = readers_address = '127.0.0.1'
    server = readers = ()
    real = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def drop_all_but(self, probes, tracks=1, let_through=()):
        pass

    def let_all_through(self):
        pass

    def count_upstream(self, port):
        pass

    def rtp(self, *names):
        return 0

    def packets(self, name):
        return 0

    def overflows(self):
        return 0

    def tcp_bytes(self, port):
        return 0


def rig_or_loopback(**options):
    try:
        return Rig(**options)
    except NoRig as why:
        print(f'bench: WARNING: cannot set up the rig: {why}.\n'
              'bench: WARNING: over loopback the receivers\' cost is charged to the server, and '
              'the difference between servers looks smaller than it is.', file=sys.stderr)
        return Loopback()


def main():
    parser = argparse.ArgumentParser(
        prog='rig.py', epilog='Example: sudo tests/bench/rig.py --probes 2 --rate 10mbit -- bash',
        description='Runs COMMAND on the server\'s side of a network of two hosts inside this one. '
                    'The command gets WEIR_RIG_SERVER and WEIR_RIG_READERS, the addresses of both '
                    'sides, and WEIR_RIG_ENTER, the words to put before a command to run it on the '
                    'readers\' side. Needs root.')
    parser.add_argument('--probes', type=int, metavar='N',
                        help='drop UDP for all readers except the first N; each reader has two '
                             f'ports, and the first reader has {FIRST_PORT} and {FIRST_PORT + 1}')
    parser.add_argument('--no-segmentation', action='store_true',
                        help='use a device without UDP segmentation')
    parser.add_argument('--rate', help='rate limit of the line, as tc writes it, such as 10mbit')
    parser.add_argument('command', nargs='+', metavar='COMMAND', help='the command and its arguments')
    options = parser.parse_args()
    try:
        rig = Rig(not options.no_segmentation, options.rate)
        if options.probes is not None:
            rig.drop_all_but(options.probes)
    except NoRig as why:
        print(f'rig: {why}', file=sys.stderr)
        return 1
    rig.hand_over()
    os.environ.update(WEIR_RIG_SERVER=SERVER, WEIR_RIG_READERS=READERS,
                      WEIR_RIG_ENTER=' '.join(rig.readers))
    return os.execvp(rig.server[0], [*rig.server, *options.command])


if __name__ == '__main__':
    sys.exit(main())

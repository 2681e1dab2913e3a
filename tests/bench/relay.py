# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many streams, each with an upstream of its own: measures what they cost a server."""

import relay_down
import relay_ticks
from relay_measure import Case, Relay
from servers import MediaMtx, Weir, WeirElements, WeirRtspsrc, servers

NAME = 'relay'


def streams(quick):
    return [Case(number) for number in ((10, 100, 300, 1000) if quick else
                                        (10, 100, 300, 500, 700, 1000))]


def ways(quick):
    numbers = (100,) if quick else (100, 1000)
    return [Case(number, note, **rest) for number in numbers for note, rest in (
        ('spread', {'how': ('spread',)}),
        ('packet by packet', {'how': ('single',)}),
        ('upstreams over TCP', {'tcp': True}),
        ('with sound', {'how': ('sound',)}),
        ('with sound, spread', {'how': ('sound', 'spread')}),
    )]


def paper(quick):
    """The streams of the AMPS testbed, and as many as its proxy relayed (UMass 2004-08, tables 1
    and 2)."""
    return [Case(number, note, shape, how)
            for shape, number in (('V1024', 280), ('V300', 710), ('V100', 1580), ('V10', 2060))
            for note, how in ((shape, ()), (f'{shape}, spread', ('spread',)))
            if not (quick and how)]


def unread(_quick):
    return [Case(number, 'no readers', read=False) for number in (1, 100, 1000)]


def light():
    return [server for server in servers() if server in (Weir, MediaMtx)]


PARTS = (
    Relay('relay', 'CPU time to relay streams of 1 Mb/s to one reader each', streams,
          lambda: [*servers(), WeirRtspsrc, WeirElements]),
    Relay('relay-ways', 'CPU time to relay streams of 1 Mb/s in other ways', ways, servers),
    Relay('relay-paper', 'CPU time to relay the streams of the AMPS testbed', paper, light),
    Relay('relay-unread', 'CPU time to receive streams of 1 Mb/s without readers', unread, light),
    relay_ticks,
    relay_down,
)

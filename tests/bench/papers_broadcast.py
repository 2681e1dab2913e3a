# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures of periodic broadcast and patching, and the benches that repeat them."""

from papers import Figure, Paper

SECTION = 'broadcast-schedules-and-how-they-are-kept'


def disk(titles):
    return (f'{titles} titles offer {{{titles}; offered; rate; .0f}} Mb/s, of which '
            f'{{{titles}; 1 MB of cache; rate; .0f}} are sent with 1 MB of cache and '
            f'{{{titles}; 4 MB of cache; rate; .0f}} with 4 MB')


PAPER = Paper('Broadcast and patching', '''M. K. Bradshaw, B. Wang, S. Sen, L. Gao, J. Kurose, P. Shenoy, D. Towsley, "Periodic broadcast and patching
services: implementation, measurement and analysis in an internet streaming video testbed", Multimedia
Systems.''', (
    Figure(
        'Figure 4', 'what the network carries by offered load', 'broadcast-disk',
        'without a cache, as much as is offered by three titles is sent, and less the more titles there are; with '
        '8 MB of cache for each title, five are sent.',
        (f'{disk(3)}; {disk(5)}.', f'{disk(5)}.'),
        'the disk is imitated, and carries three titles; the least cache is 1 MB for all titles, which is a fifth of '
        'their first segments, and 4 MB are in the proportion of the paper. What its disk carried beside the cache '
        'is not said.'),
    Figure(
        'Figure 4, from memory', 'the same without a slow disk', 'broadcast-throughput',
        'as much is sent as is offered.',
        'of 5 titles, {5; offered; rate; .1f} Mb/s are offered and {5; sent; rate; .1f} sent.', '', SECTION),
    Figure(
        'Figure 5', 'what patching reads, with a cache', 'broadcast-patching',
        '18.7 Mb/s without a cache, 17 with 16 MB, 11 with 48 MB.',
        'simulated, {0.0; 0 MB; mean; .1f}, {0.0; 16 MB; mean; .1f} and {0.0; 48 MB; mean; .1f} Mb/s.', '', SECTION),
    Figure(
        'Figure 6', 'what periodic broadcast reads, with a cache', 'broadcast-cache',
        '10-GDB with 32 MB: 16.27 Mb/s with LRU, 10.14 with LFU.',
        'simulated, {32; 10-GDB, LRU; read; .2f} and {32; 10-GDB, LFU; read; .2f} Mb/s.', '', SECTION),
    Figure(
        'Figure 7', 'where patching costs as much as periodic broadcast', 'broadcast-crossing',
        '0.046 clients a second, at 25 Mb/s.',
        'simulated, at 0.046 clients a second patching reads {0.046; patching, 0 MB; read; .1f} Mb/s, 3-GDB '
        '{0.046; 3-GDB, 0 MB; read; .1f} and 10-GDB {0.046; 10-GDB, 0 MB; read; .1f}.',
        'the paper\'s number agrees with 3-GDB, not with 10-GDB, after which it is named.', SECTION),
    Figure(
        'Table 3', 'the time of the network\'s and the disk\'s thread', 'broadcast-threads',
        '48 Mb/s from memory: 1.60 ms of each 30 ms for three titles of 8 groups, and 5.08 ms for one of 24; the '
        'disk\'s thread takes 6.16 and 8.39 ms of each second.',
        '{3, 8; rtsp-proxy; network; .2f} and {1, 24; rtsp-proxy; network; .2f} ms of each frame of 33 ms, with '
        '{3, 8; rtsp-proxy; late; .1f} and {1, 24; rtsp-proxy; late; .1f} % of the frames more than 1 ms late.',
        'the network\'s thread also looks ahead, and the disk\'s threads have nothing to do. Each group sends the '
        'whole title, begun at another time, where the paper\'s send a part of it each.'),
    Figure(
        'Figure 8', 'signalling and queueing by arrival rate', 'broadcast-signalling',
        'signalling takes 8 ms, and more with more clients; queueing is negligible up to 600 clients a minute, above '
        'which connections fail.',
        'with 600 clients a minute, a request waits {600; waits for a thread; ms; .2f} ms for a thread on average, '
        'and is answered in {600; is answered; ms; .2f} ms; with 60,000 a minute, '
        '{60000; waits for a thread; ms; .2f} and {60000; is answered; ms; .2f} ms.',
        'measured from the kernel\'s receipt of the request to a thread\'s reading of it, and from there to its answer, '
        'with 10-GDB.'),
    Figure(
        'Figure 8, saturation', 'answers seen by clients', 'broadcast-service',
        'above 600 to 1670 clients a minute, connections fail.',
        ('60,000 clients a minute get their schedules in {60000; 10-GDB; answer; .1f} ms (median), and 99 % of '
         'them within {60000; 10-GDB; answer_p99; .1f} ms.',
         '600 clients a minute get their schedules in {600; 10-GDB; answer; .1f} ms (median), and 99 % of '
         'them within {600; 10-GDB; answer_p99; .1f} ms.'),
        'nobody is refused at 36 times the paper\'s rate.', SECTION),
    Figure(
        'Figure 9', 'gaps of frames', 'broadcast-gaps',
        'coefficient of variation 0.16 for 3-GDB and 0.10 for 10-GDB.',
        ('{33-34; 3-GDB; variation; .4f} for 3-GDB and {33-34; 10-GDB; variation; .4f} for 10-GDB.',
         '{33-34; 10-GDB; variation; .4f} for 10-GDB.'),
        'Linux wakes a thread in time today.', SECTION),
    Figure(
        'Section 6.3.2', 'patching over a network', 'broadcast-patched',
        '1 and 5 clients a minute: 20.85 and 55.27 Mb/s; a start 1.5 s after the request is enough.',
        ('in a tenth of the time, {10; rtsp-proxy; sent; .1f} and {50; rtsp-proxy; sent; .1f} Mb/s; 99 % of the '
         'readers start within {50; rtsp-proxy; start_p99; .0f} ms.',
         'in a tenth of the time, 5 clients a minute: {50; rtsp-proxy; sent; .1f} Mb/s, of which '
         '{50; rtsp-proxy; groups; .1f} on groups; 99 % of the readers start within '
         '{50; rtsp-proxy; start_p99; .0f} ms.')),
    Figure(
        'Figure 10', 'bandwidth as parts of the time', 'broadcast-histogram',
        'periodic broadcast is always near 2.1 Mb/s, patching between 1 and 4 Mb/s.',
        'simulated, 10-GDB is at 2.1 to 2.4 Mb/s for {2.1; 10-GDB; part; .0f} % of the time.', '', SECTION),
    Figure(
        'Section 6.4', 'bandwidth of a title with 2 clients a minute', 'broadcast-bandwidth',
        '2.09 Mb/s for 10-GDB and 2.32 for patching, where unicast needs 12.',
        'simulated, {10-GDB; simulated; sent; .2f}, {patching; simulated; sent; .2f} and '
        '{unicast; simulated; sent; .2f} Mb/s.', '', SECTION),
    Figure(
        'Tables 4 and 5', 'losses on the way', 'broadcast-losses',
        'less than 1 % lost between two sites, up to 20 % to a third; what is lost stays lost.',
        'with 20 % lost on the way, {20; gdb; unicast; .1f} % of the bytes come by unicast with 10-GDB, and '
        '{20; gdb; lost; .0f} packets are missing at the decoder.',
        'the paper has no repair, and a real path with bursts.', SECTION),
    Figure(
        'Table 5, by segment', 'which segments lose packets', 'broadcast-segments',
        'of the 7 segments of 10-GDB, the first loses 5.6 % and the last 23.4 %, as the server sends a round\'s '
        'packets of the first segment first; 21.1 % of all.',
        'where a queue on the way is too short for a frame of all segments, the first loses '
        '{1; rtsp-proxy; lost; .1f} %, the fourth {4; rtsp-proxy; lost; .1f} % and the last '
        '{7; rtsp-proxy; lost; .1f} %; {all; rtsp-proxy; lost; .1f} % of all.',
        'the segment that is sent first differs from frame to frame, which the paper left for later; a queue of a '
        'fixed length, where the paper had a real path.'),
    Figure(
        'Figure 11', 'delays of answers', 'broadcast-answers',
        '70 to 170 ms on real paths.',
        '600 requests a minute are answered within {0-0.5; 600; p50; .1f} ms (median), and 99 % of them within '
        '{0-0.5; 600; p99; .1f} ms.', 'no path between sites.', SECTION),
    Figure(
        'Figure 12', 'schedules that send together', 'broadcast-stagger',
        'three titles that send their last segments together make bursts; staggered, they do not.',
        'simulated, {3; together; most; .0f} and {3; staggered; most; .0f} Mb/s in the fullest second.', '',
        SECTION),
))

# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures of periodic broadcast and patching, and the benches that repeat them."""

from papers import Figure, Paper

SECTION = 'broadcast-schedules-and-how-they-are-kept'

PAPER = Paper('Broadcast and patching', '''M. K. Bradshaw, B. Wang, S. Sen, L. Gao, J. Kurose, P. Shenoy, D. Towsley, "Periodic broadcast and patching
services: implementation, measurement and analysis in an internet streaming video testbed", Multimedia
Systems.''', (
    Figure(
        'Figure 4', 'what the network carries by offered load', 'broadcast-throughput',
        'without a cache the disk is full first, and what is sent stays below what is offered.',
        'of 5 titles, {5; offered; rate; .1f} Mb/s are offered and {5; sent; rate; .1f} sent.',
        'the titles are in memory, so nothing is overloaded; a slow disk is not imitated.', SECTION),
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
        'Table 3', 'the time of the network\'s and the disk\'s thread', None,
        '1.60 to 5.08 ms of each 30 ms, and 6.16 to 8.39 ms of each second.'),
    Figure(
        'Figure 8', 'signalling and queueing by arrival rate', 'broadcast-service',
        'signalling takes 8 ms; above 600 to 1670 clients a minute, connections fail.',
        ('60,000 clients a minute get their schedules in {60000; 10-GDB; answer; .1f} ms (median), and 99 % of '
         'them within {60000; 10-GDB; answer_p99; .1f} ms.',
         '600 clients a minute get their schedules in {600; 10-GDB; answer; .1f} ms (median), and 99 % of '
         'them within {600; 10-GDB; answer_p99; .1f} ms.'),
        'one time for both; nobody is refused at 100 times the paper\'s rate.', SECTION),
    Figure(
        'Figure 9', 'gaps of frames', 'broadcast-gaps',
        'coefficient of variation 0.16 for 3-GDB and 0.10 for 10-GDB.', '',
        'Linux wakes a thread in time today.', SECTION),
    Figure(
        'Section 6.3.2', 'patching over a network', 'broadcast-patched',
        '1 and 5 clients a minute: 20.85 and 55.27 Mb/s; a start 1.5 s after the request is enough.',
        ('in a tenth of the time, {10; rtsp-proxy; sent; .1f} and {50; rtsp-proxy; sent; .1f} Mb/s; 99 % of the '
         'readers start within {50; rtsp-proxy; start_p99; .0f} ms.',
         'in a tenth of the time, 5 clients a minute: {50; rtsp-proxy; sent; .1f} Mb/s; 99 % of the readers start '
         'within {50; rtsp-proxy; start_p99; .0f} ms.')),
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
        'Figure 11', 'delays of answers', 'broadcast-answers',
        '70 to 170 ms on real paths.', '', 'no path between sites.', SECTION),
    Figure(
        'Figure 12', 'schedules that send together', 'broadcast-stagger',
        'three titles that send their last segments together make bursts; staggered, they do not.',
        'simulated, {3; together; most; .0f} and {3; staggered; most; .0f} Mb/s in the fullest second.', '',
        SECTION),
))

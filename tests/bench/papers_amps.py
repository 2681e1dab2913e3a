# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures of the AMPS testbed, and the benches that repeat them."""

from papers import Figure, Paper

PAPER = Paper('AMPS', '''X. Zhang, M. K. Bradshaw, Y. Guo, B. Wang, J. Kurose, P. Shenoy, D. Towsley, "AMPS: A Flexible,
Scalable Proxy Testbed for Implementing Streaming Services", UMass Computer Science Technical Report
2004-08. The proxy was a Pentium 4 of 1.8 GHz.''', (
    Figure(
        'Figure 3', 'CPU time by function, 600 streams of V300', None,
        'the kernel\'s network protocols take most of all, then receiving packets in the proxy; 55 % of the '
        'CPU is busy.'),
    Figure(
        'Figure 4', 'CPU time by function, with 5 clients a second', None,
        'network protocols 20 %, receiving 19 %, copies in the kernel 7 %, copies in the proxy 6 %, pipes, '
        'system calls and threads 5 % each.'),
    Figure(
        'Figure 5', 'dispatchers of requests compared', None,
        'a dispatcher that sleeps 15 ms after each round takes less CPU time than one that waits in '
        'select, and answers a little later.',
        '', 'all requests come through GLib\'s main loops, so there is nothing to compare; the bench '
        '`signal` has the set-up times by arrival rate.'),
    Figure(
        'Figure 6', 'threads in use when the server answers late', None,
        '20 clients a second: 15 threads are enough up to 120 ms, 25 threads for 95 % of the requests at '
        '300 ms.'),
    Figure(
        'Figure 7', 'receiving by polling and by select', 'ingest',
        'polling takes up to 30 % less CPU time, and as much above 700 streams.',
        'with 1000 streams {1000; tick 2 ms; ns; .0f} ns a packet when all sockets are read every 2 ms, and '
        '{1000; recvmsg; ns; .0f} ns when each packet wakes the thread; with 100 streams '
        '{100; tick 2 ms; ns; .0f} and {100; recvmsg; ns; .0f} ns.',
        'epoll does not slow down with the number of sockets as select did, so more streams gain, too.',
        'ingest-the-cost-of-receiving'),
    Figure(
        'Figure 8', 'rounds and micro-rounds of sending', None,
        'micro-rounds take up to 30 % less CPU time than rounds of 15 ms, and carry a third more streams.'),
    Figure(
        'Figure 9', 'CPU time by number of streams and by packet rate', None,
        'at the same data rate, few large streams take less CPU time than many small ones.'),
    Figure(
        'Table 2', 'the largest number of streams', 'relay-paper',
        'V10 2060, V100 1580, V300 710, V1024 280, each with the CPU full.',
        'the same numbers take {2060, V10; rtsp-proxy; total; .0f}, {1580, V100; rtsp-proxy; total; .0f}, '
        '{710, V300; rtsp-proxy; total; .0f} and {280, V1024; rtsp-proxy; total; .0f} % of one processor.',
        '', 'relay-many-streams'),
    Figure(
        'Figure 10', 'packet and frame gaps with 5 clients a second', None,
        'mean frame gap 66.67 ms, at most 144.07 ms; a buffer of 52 ms is enough; start-up 4.18 s.'),
    Figure(
        'Section 5.2', 'interval caching', 'interval',
        'with an interval of 20 s, 13 upstream sessions instead of 600, 5.83 % of the CPU instead of 56.88, '
        'start-up 0.43 s instead of 4.16.',
        ('{5/s x 120 s; 20 s; upstreams; .0f} upstream sessions instead of {5/s x 120 s; none; upstreams; .0f}, '
         '{5/s x 120 s; 20 s; cpu; .1f} % of a processor instead of {5/s x 120 s; none; cpu; .1f}, '
         'start-up {5/s x 120 s; 20 s; start; .0f} ms instead of {5/s x 120 s; none; start; .0f}.',
         '2 clients a second for 30 s, interval of 5 s: {2/s x 30 s; 5 s; upstreams; .0f} upstream sessions '
         'instead of {2/s x 30 s; none; upstreams; .0f}, {2/s x 30 s; 5 s; cpu; .1f} % of a processor instead '
         'of {2/s x 30 s; none; cpu; .1f}, start-up {2/s x 30 s; 5 s; start; .0f} ms instead of '
         '{2/s x 30 s; none; start; .0f}.'),
        'the paper\'s server and proxy begin to send one and two seconds after a request; here nobody waits.',
        'interval-a-stored-titles-upstream-sessions'),
))

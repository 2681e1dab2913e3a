# SPDX-License-Identifier: LGPL-2.1-or-later
"""The figures of the proxy for scalable video, and the benches that repeat them."""

from papers import Figure, Paper

SECTION = 'svcproxy-the-experiments-of-a-proxy-for-scalable-video'

PAPER = Paper('SVC proxy', '''B. Snoksrud, "Implementation of an Adaptive Stream Scaling Media Proxy with the data path in the Linux
Kernel", Master thesis, University of Oslo, 2009. The proxy was a Pentium 4 of 3.0 GHz on a network of
100 Mb/s; its path in user space is in Python.''', (
    Figure(
        'Figures 2.6 and 5.1', 'the rate of each layer over time', None,
        'the rate of a stream, and of each of its layers, changes by the moment.'),
    Figure(
        'Figures 6.1 and 6.2', 'CPU time by number of readers, in user space and in the kernel', None,
        'the path in the kernel takes about a fortieth of the CPU time, and would serve 4800 readers '
        'instead of 840.'),
    Figure(
        'Table 6.1', 'context switches a second at 90 readers', None,
        '502 in user space, 108 in the kernel.'),
    Figure(
        'Figures 6.3 and 6.4', 'packet loss by load, in user space and in the kernel', 'svcproxy-bursts',
        'the kernel sends the copies of a packet in a burst, and loses more than user space at the same load.',
        'behind a switch with a queue of 256 packets, {256; 0 ms; lost; .1f} % of the bytes are lost, and '
        '{256; 30 ms; lost; .1f} % if frames are spread over 30 ms; with 1024 packets {1024; 0 ms; lost; .1f} '
        'and {1024; 30 ms; lost; .1f} %.',
        'user space only.', SECTION),
    Figure(
        'Figures 6.5 and 6.6', 'what is delivered by number of readers', 'adapt',
        'adaptation lowers the rate of each reader as readers come, but at 160 readers the proxy sends 40 % '
        'more than the line carries.', '', 'one number of readers, not a curve.',
        'adapt-a-line-too-narrow-for-all-layers'),
    Figure(
        'Section 5.2', 'what layers cost', 'svcproxy-layers', 'not measured.',
        'all readers choose the same layers, 160 readers: {2.2; kernel=off; cpu; .1f} % of a processor for all '
        'layers and {0.0; kernel=off; cpu; .1f} % for the base layer in user space, {2.2; kernel=on; cpu; .1f} '
        'and {0.0; kernel=on; cpu; .1f} % in the kernel.', '', SECTION),
))

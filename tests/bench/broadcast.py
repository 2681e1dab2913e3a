# SPDX-License-Identifier: LGPL-2.1-or-later
"""Periodic broadcast and patching: one table for each experiment of the paper, by simulation and over
a network."""

import broadcast_network as network
import broadcast_parts as parts
import broadcast_pictures as pictures
import broadcast_segments as segments
import broadcast_server as server

NAME = 'broadcast'
PARTS = (parts.Bandwidth, parts.Histogram, parts.Cache, parts.Crossing, parts.Patching, parts.Stagger,
         network.Service, network.Losses, network.Patched, network.Later, network.Router, pictures.Throughput, pictures.Gaps,
         pictures.Answers, server.Disk, server.Threads, server.Signalling,
         segments.Segments)

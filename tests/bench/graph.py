# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shared presentations, and pipelines that change under readers: one table for each bench."""

import graph_failover
import graph_mounts
import graph_share
import graph_swap

NAME = 'graph'
PARTS = graph_share, graph_swap, graph_failover, graph_mounts

# SPDX-License-Identifier: LGPL-2.1-or-later
"""Presentations that share, and pipelines that change while people watch: a table for each."""

import graph_failover
import graph_mounts
import graph_share
import graph_swap

NAME = 'graph'
PARTS = graph_share, graph_swap, graph_failover, graph_mounts

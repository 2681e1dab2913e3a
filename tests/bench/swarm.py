# SPDX-License-Identifier: LGPL-2.1-or-later
"""Viewers who help an origin, by simulation: one table for each experiment of the paper."""

import swarm_parts as parts

NAME = 'swarm'
PARTS = parts.Upload, parts.Window, parts.Leaving, parts.Storage, parts.Arrivals, parts.Choking, parts.Seed

# SPDX-License-Identifier: LGPL-2.1-or-later
"""Periodic broadcast and patching by simulation: one table for each experiment of the paper."""

import broadcast_parts as parts

NAME = 'broadcast'
PARTS = parts.Bandwidth, parts.Histogram, parts.Cache, parts.Crossing, parts.Patching, parts.Stagger

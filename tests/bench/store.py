# SPDX-License-Identifier: LGPL-2.1-or-later
"""The experiments of a dissertation about storage servers on the block store: one table for
each."""

import store_at_once
import store_contention
import store_failure
import store_http
import store_model
import store_overload
import store_policies
import store_sata300
import store_stutter

NAME = 'store'
PARTS = (store_model, store_policies, store_at_once, store_overload, store_stutter,
         store_failure, store_sata300, store_sata300.Sizing, store_contention, store_http)

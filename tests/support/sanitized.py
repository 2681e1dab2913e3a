# SPDX-License-Identifier: LGPL-2.1-or-later
"""GStreamer's own programs with plugins that may be sanitized."""

import os


def environment():
    """A program that isn't sanitized loads a plugin that is only after the runtime."""
    runtime = os.environ.get('WEIR_SANITIZER_RUNTIME')
    if not runtime:
        return None
    return {**os.environ, 'LD_PRELOAD': runtime, 'ASAN_OPTIONS': 'detect_leaks=0'}

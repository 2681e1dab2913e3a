# SPDX-License-Identifier: LGPL-2.1-or-later
"""GStreamer's tools with the plugins just built."""

import os


def environment():
    """A tool that isn't sanitized loads a plugin that is only after the runtime."""
    runtime = os.environ.get('WEIR_SANITIZER_RUNTIME')
    if not runtime:
        return None
    return {**os.environ, 'LD_PRELOAD': runtime, 'ASAN_OPTIONS': 'detect_leaks=0'}

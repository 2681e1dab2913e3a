# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs GStreamer's own programs with plugins that may be sanitized."""

import os


def environment():
    """Returns an environment that preloads the sanitizer's runtime, which a program that is not
    sanitized needs to load a sanitized plugin. None if nothing is sanitized."""
    runtime = os.environ.get('WEIR_SANITIZER_RUNTIME')
    if not runtime:
        return None
    # AddressSanitizer looks for libstdc++ once, before a plugin brings it.
    preload = f'{runtime} libstdc++.so.6'
    return {**os.environ, 'LD_PRELOAD': preload, 'ASAN_OPTIONS': 'detect_leaks=0'}


def sees_threads():
    """Reports whether this is ThreadSanitizer, which sees only half of what libraries that are not built with it
    do in threads of theirs, such as libtorrent and the decoders."""
    return 'tsan' in os.environ.get('WEIR_SANITIZER_RUNTIME', '')


def stock_environment():
    """Returns an environment for a program that uses GStreamer's own plugins only, which needs no
    sanitizer. None if nothing is sanitized."""
    if not os.environ.get('WEIR_SANITIZER_RUNTIME'):
        return None
    kept = {name: value for name, value in os.environ.items() if name != 'GST_PLUGIN_PATH'}
    return {**kept, 'GST_REGISTRY': os.environ['GST_REGISTRY'] + '-stock'}

# SPDX-License-Identifier: LGPL-2.1-or-later
"""Network namespaces without names, and the tools that set them up.

File descriptors of this process and the processes inside keep a namespace alive, so it goes when
this process and its children end, however they end (proc.py kills children whose parent is gone).
"""

import ctypes
import os
import subprocess
import threading

CLONE_NEWNET = 0x40000000
TOOLS = ('ip', 'ss', 'nft', 'tc', 'ethtool', 'nsenter')

_libc = ctypes.CDLL(None, use_errno=True)


class NoRig(Exception):
    """Says why a network cannot be set up here."""


def _add_to_path(*folders):
    """Adds folders of the tools, which some users' PATH lacks."""
    path = os.environ.get('PATH', '').split(':')
    os.environ['PATH'] = ':'.join(path + [folder for folder in folders if folder not in path])


def tool(*words):
    """Runs a tool in the network of this process. Raises NoRig if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoRig(f'{" ".join(words)}: {done.stderr.strip()}')


def leave_network():
    """Gives this process a network of its own, with the loopback device only."""
    if _libc.unshare(CLONE_NEWNET) != 0:
        raise NoRig(f'no network namespace: {os.strerror(ctypes.get_errno())}')
    tool('ip', 'link', 'set', 'lo', 'up')


class Namespace:
    """`words` are the words to put before a command to run it inside; `path` names the
    namespace to `ip` while this process runs."""

    def __init__(self):
        _add_to_path('/usr/sbin', '/sbin')
        self.descriptor = _new_descriptor()
        self.path = f'/proc/{os.getpid()}/fd/{self.descriptor}'
        self.words = ['nsenter', f'--net={self.path}', '--']

    def run(self, *words, text=None):
        """Runs a tool inside, and returns its output. Raises NoRig if it fails."""
        try:
            done = subprocess.run([*self.words, *map(str, words)], input=text, capture_output=True,
                                  text=True, check=False)
        except FileNotFoundError as missing:
            raise NoRig(f'{missing.filename} is not installed (the rig takes {", ".join(TOOLS)})')
        if done.returncode != 0:
            raise NoRig(f'{" ".join(map(str, words))}: {done.stderr.strip() or done.returncode}')
        return done.stdout

    def close(self):
        os.close(self.descriptor)


def _new_descriptor():
    """Returns a descriptor of a new network namespace. Only the thread that makes it ever enters
    it."""
    result = []

    def make():
        if _libc.unshare(CLONE_NEWNET) == 0:
            result.append(os.open('/proc/thread-self/ns/net', os.O_RDONLY | os.O_CLOEXEC))
        else:
            result.append(-ctypes.get_errno())

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if result[0] < 0:
        raise NoRig(f'no network namespace: {os.strerror(-result[0])}'
                    + ('' if os.geteuid() == 0 else '; it needs root'))
    return result[0]

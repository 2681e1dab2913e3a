# SPDX-License-Identifier: LGPL-2.1-or-later
"""A proxy with readers that must lose nothing, whatever happens to its other mounts."""

import collections
import re
import threading

from control import Controlled
from faulty import Source
from good import Good
from proxy import wait_until


class Bench:
    """A proxy with the mount /good, and the readers that must lose nothing."""

    def __init__(self, mounts=None, env=None, good=None, **top):
        self.source = Source()
        settings = {'upstream': self.source.url, 'transport': 'tcp', **(good or {})}
        self.proxy = Controlled({'/good': settings, **(mounts or {})}, env=env, **top)
        self.proxy.over = threading.Event()
        self.goods = []

    def __enter__(self):
        try:
            self.goods = [Good(self.proxy, udp) for udp in (False, True, False, True)]
            for each in self.goods:
                each.start()
        except BaseException:
            self.proxy.kill()
            raise
        return self

    def check(self):
        assert self.proxy.running(), f'the proxy has ended: {self.proxy.output()[-3000:]}'
        wrong = [each.wrong for each in self.goods if each.wrong]
        assert not wrong, wrong

    def check_sums(self):
        """In all mounts, each packet due to a reader was sent or dropped for a reason."""
        sums = collections.defaultdict(lambda: [0, 0])
        text = self.proxy.get('/metrics').decode()
        for name, labels, value in re.findall(r'^weir_(\w+)_packets_total\{(.*)\} (\d+)', text, re.M):
            mount = re.search(r'mount="([^"]*)"', labels)[1]
            if name == 'due':
                sums[mount][0] += int(value)
            elif name in ('sent', 'socket_lost', 'left_out'):
                sums[mount][1] += int(value)
        return all(due == told for due, told in sums.values()) and sums

    def __exit__(self, kind, *_):
        if not kind:
            self.check()
        self.proxy.over.set()
        for each in self.goods:
            each.join(30)
        try:
            if not kind:
                self.check()
                assert all(each.packets > 0 for each in self.goods)
                # The counts of a running stream move while they are read.
                wait_until(self.check_sums, 10, 'the sums hold')
                assert self.proxy.stop() == 0, self.proxy.output()[-3000:]
        finally:
            if self.proxy.running():
                self.proxy.kill()
            if kind:
                self.proxy.dump()
            self.source.__exit__()

# SPDX-License-Identifier: LGPL-2.1-or-later
"""Child processes, ports and a raw RTSP client for end-to-end tests.

Time limits of waits are for an idle machine; a wait ends after SLOWER times its limit.

No child outlives the test: each is in a context manager, and dies with this process.
"""

import atexit
import contextlib
import ctypes
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from tap import SLOWER, Skip, note_fault

PR_SET_PDEATHSIG = 1
TERMINATE_WAIT = 20
FIRST_PORT = 10000 # of those for tests
CRITICAL = 'CRITICAL **: ' # GLib's words for a fault of the program

_libc = ctypes.CDLL(None)
_known = () # of known_criticals()
_children = []
_marks = [] # sockets that tell other tests of the ports of this one


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _kill_all():
    for child in list(_children):
        child.kill()


def _on_sigterm(_signal, _frame):
    _kill_all()
    sys.exit(128 + signal.SIGTERM)


atexit.register(_kill_all)
signal.signal(signal.SIGTERM, _on_sigterm)


@contextlib.contextmanager
def known_criticals(*regexes):
    """Programs that start meanwhile may print these critical warnings, and go on: faults of other
    libraries that harm nobody. Name the library and its version where this is used."""
    global _known
    before, _known, ends = _known, regexes, os.environ.pop('G_DEBUG', None)
    try:
        yield
    finally:
        _known = before
        if ends is not None:
            os.environ['G_DEBUG'] = ends


class Proc:
    """A child process. `.lines` holds its output, stdout and stderr together, line by line.

    `.times` holds the arrival time of each line (time.monotonic()).

    A critical warning of GLib in the output, of the child or of one of its own, lets the test fail.
    """

    def __init__(self, *command, env=None, cwd=None):
        self.command = [str(word) for word in command]
        self.lines = []
        self.times = []
        self._known = _known
        self._changed = threading.Condition()
        self._ended = False
        self._child = subprocess.Popen(
            self.command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors='replace',
            preexec_fn=_die_with_parent,
        )
        _children.append(self)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, _error, _trace):
        self.stop()
        if kind:
            self.dump()

    @property
    def pid(self):
        return self._child.pid

    def _read(self):
        for line in self._child.stdout:
            if CRITICAL in line and not any(re.search(regex, line) for regex in self._known):
                note_fault(f'{self.command[0]}: {line.strip()}')
            with self._changed:
                self.lines.append(line.rstrip('\n'))
                self.times.append(time.monotonic())
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def output(self):
        with self._changed:
            return '\n'.join(self.lines)

    def dump(self):
        """Prints the output as TAP diagnostics."""
        print(f'# {" ".join(self.command)}: exit status {self._child.returncode}')
        for line in self.output().splitlines():
            print(f'#   {line}')

    def wait_for_line(self, regex, timeout=10, start=0):
        """Returns the match in the first line, from line number `start` on, that matches."""
        pattern = re.compile(regex)
        deadline = time.monotonic() + SLOWER * timeout
        seen = start
        with self._changed:
            while True:
                for line in self.lines[seen:]:
                    if match := pattern.search(line):
                        return match
                seen = max(seen, len(self.lines))
                left = deadline - time.monotonic()
                if self._ended:
                    raise AssertionError(f'{self.command[0]} ended without a line like {regex!r}; '
                                         f'its last lines: {self.lines[-3:]}')
                if left <= 0:
                    raise AssertionError(
                        f'{self.command[0]} printed no line like {regex!r} in {SLOWER * timeout} s'
                    )
                self._changed.wait(left)

    def running(self):
        return self._child.poll() is None

    def wait(self, timeout=10):
        """Waits until the child exits. Returns its exit status (-N for signal N)."""
        try:
            status = self._child.wait(SLOWER * timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f'{self.command[0]} still runs after {SLOWER * timeout} s') from None
        self._finish()
        return status

    def signal(self, number):
        self._child.send_signal(number)

    def stop(self):
        """Sends SIGTERM, then SIGKILL if the child does not exit. Returns its exit status."""
        if self.running():
            self._child.terminate()
            try:
                self._child.wait(TERMINATE_WAIT)
            except subprocess.TimeoutExpired:
                self._child.kill()
        status = self._child.wait()
        self._finish()
        return status

    def kill(self):
        if self.running():
            self._child.kill()
        self._child.wait()
        self._finish()

    def _finish(self):
        # A grandchild can hold the pipe open, so do not wait for the end of the output.
        self._reader.join(1)
        if self in _children:
            _children.remove(self)


def read_threads(pid, name):
    """Returns {id: text of the file} for the threads of a process that do not end meanwhile."""
    texts = {}
    for thread in os.listdir(f'/proc/{pid}/task'):
        # The first is for a file that is gone, the second for one that is open.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), \
                open(f'/proc/{pid}/task/{thread}/{name}', encoding='utf-8') as file:
            texts[int(thread)] = file.read()
    return texts


def open_files(pid):
    """Yields what the descriptors of a process name. It may close some meanwhile."""
    for fd in os.listdir(f'/proc/{pid}/fd'):
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(f'/proc/{pid}/fd/{fd}')


def thread_names(pid):
    """Returns {id: name} of the threads of a process."""
    return {thread: text.rstrip('\n') for thread, text in read_threads(pid, 'comm').items()}


def interop():
    """Returns the path of the program in tests/interop. Skips the test if it could not be built."""
    program = os.environ.get('WEIR_INTEROP')
    if not program:
        raise Skip('WEIR_INTEROP is not set')
    if not os.access(program, os.X_OK):
        with open(program, encoding='utf-8') as file:
            raise Skip(file.read())
    return program


def _bind(kind, address, port):
    bound = socket.socket(socket.AF_INET, kind)
    try:
        bound.bind((address, port))
    except OSError:
        bound.close()
        raise
    return bound


def free_port():
    """Returns a free even port for TCP and UDP, after which the next one is free, too.

    They stay free until this process uses them: no other test gets them while it runs, and they are
    not among those that the kernel gives to sockets without a port of their own.
    """
    with open('/proc/sys/net/ipv4/ip_local_port_range', encoding='ascii') as file:
        end = max(int(file.read().split()[0]), FIRST_PORT + 1000)
    for _ in range(1000):
        port = random.randrange(FIRST_PORT, end - 1, 2)
        mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            mark.bind(f'\0weir-test-port-{port}')
            for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
                _bind(kind, '', port).close()
                _bind(kind, '', port + 1).close()
        except OSError:
            mark.close()
            continue
        _marks.append(mark)
        return port
    raise AssertionError('no free port')


def free_udp_pair(address='127.0.0.1'):
    """Returns two bound UDP sockets of an address, on an even port and the next one."""
    port = free_port()
    return _bind(socket.SOCK_DGRAM, address, port), _bind(socket.SOCK_DGRAM, address, port + 1)


# An RTCP receiver report without blocks. The proxy ends the session of a reader over UDP from whose
# ports it hears nothing for 5 s.
SIGN_OF_LIFE = b'\x80\xc9\0\1\0\0\0\7'


class Rtsp:
    """An RTSP client that sends any request, valid or not.

    `kernel` is the size of its receive buffer. Once the client is connected, a smaller one makes
    the kernel drop what it has announced room for.
    """

    def __init__(self, port, host='127.0.0.1', timeout=30, kernel=None):
        self.socket = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)
        if kernel:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, kernel)
        self.socket.settimeout(timeout)
        self.socket.connect((host, port))
        self.cseq = 0
        self.session = None
        self.frames = []
        self._buffer = b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def request(self, method, url, headers=None, body=b''):
        """Sends a request and returns its answer as (status, headers, body).

        Header names are returned in lower case. Adds CSeq, and Session after a SETUP, unless
        `headers` has them. Interleaved frames that arrive first go to `.frames`.
        """
        self.cseq += 1
        fields = {'CSeq': self.cseq}
        if self.session:
            fields['Session'] = self.session
        if body:
            fields['Content-Length'] = len(body)
        fields.update(headers or {})
        head = ''.join(f'{name}: {value}\r\n' for name, value in fields.items())
        self.send(f'{method} {url} RTSP/1.0\r\n{head}\r\n'.encode() + body)
        answer = self.answer()
        if 'session' in answer[1]:
            self.session = answer[1]['session'].split(';')[0].strip()
        return answer

    def answer(self):
        """Reads the next answer. Keeps interleaved frames that arrive before it in `.frames`."""
        while self._peek(1) == b'$':
            self.frames.append(self._read_frame())
        lines = self._read_until(b'\r\n\r\n').decode('utf-8', 'replace').split('\r\n')
        status = int(lines[0].split()[1])
        headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(':')
            if colon:
                headers[name.strip().lower()] = value.strip()
        return status, headers, self._take(int(headers.get('content-length', 0)))

    def frame(self):
        """Returns the next interleaved frame as (channel, payload)."""
        if self.frames:
            return self.frames.pop(0)
        if self._peek(1) != b'$':
            raise AssertionError(f'not an interleaved frame: {self._buffer[:40]!r}')
        return self._read_frame()

    def send_frame(self, channel, payload):
        self.send(struct.pack('>cBH', b'$', channel, len(payload)) + payload)

    def closed(self):
        """Reads until the server closes the connection. Returns False if it does not in time."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        except TimeoutError:
            return False
        return True

    def _read_frame(self):
        _, channel, size = struct.unpack('>cBH', self._take(4))
        return channel, self._take(size)

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError(f'connection closed; unread: {self._buffer[:80]!r}')
        self._buffer += data

    def _peek(self, size):
        while len(self._buffer) < size:
            self._more()
        return self._buffer[:size]

    def _take(self, size):
        data = self._peek(size)
        self._buffer = self._buffer[size:]
        return data

    def _read_until(self, end):
        while end not in self._buffer:
            self._more()
        data, _, self._buffer = self._buffer.partition(end)
        return data

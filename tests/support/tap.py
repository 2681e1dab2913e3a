# SPDX-License-Identifier: LGPL-2.1-or-later
"""A small TAP producer for end-to-end tests.

    from tap import Skip, run, test

    @test
    def a_reader_gets_the_stream():
        ...

    if __name__ == '__main__':
        run()

A test passes by returning, fails by raising and is skipped by raising Skip('reason'). Its name is
the first line of its docstring or the name of the function.
Arguments on the command line select the tests whose name or function contains one of them. An
argument -FUNCTION leaves that test out.
A test that fails as a program refused a feature that its build does not have is skipped.
A test is given up after SLOWER times its time limit. It also fails if a fault is noted meanwhile.
"""

import contextlib
import ctypes
import os
import re
import signal
import sys
import tempfile
import time
import traceback

# A sanitized program is several times slower than a plain one.
TIMEOUT = 240 if os.environ.get('WEIR_SANITIZER_RUNTIME') else 60

# So much slower may a machine be that has other work.
SLOWER = 3

PR_SET_PDEATHSIG = 1

_tests = []
_faults = []


class Skip(Exception):
    pass


class TimedOut(BaseException):
    """Not an Exception, so that a test's own 'except Exception' cannot catch it."""


def test(function=None, *, timeout=TIMEOUT):
    def add(function):
        doc = (function.__doc__ or '').strip()
        name = doc.splitlines()[0] if doc else function.__name__.replace('_', ' ')
        _tests.append((name.replace('#', ''), function, timeout))
        return function

    return add(function) if function else add


def note_fault(text):
    """Lets the present test fail, from any thread."""
    _faults.append(text)


def _alarm(_signal, _frame):
    raise TimedOut('timed out')


def _find_lack(text):
    """Returns the refusal of a feature that this build does not have, or None."""
    present = os.environ.get('WEIR_FEATURES')
    for found in re.finditer(r'this build has no [^;]*; build it with -D(\w+)=enabled', text):
        if present is not None and found[1] not in present.split():
            return found[0]
    return None


def _one(function, timeout):
    """Returns (ok, directive)."""
    _faults.clear()
    signal.alarm(SLOWER * timeout)
    try:
        function()
        assert not _faults, _faults
        return True, ''
    except Skip as skip:
        return True, f' # SKIP {skip}'
    except (Exception, TimedOut):
        text = traceback.format_exc()
        if lack := _find_lack(text):
            return True, f' # SKIP {lack}'
        for line in text.splitlines():
            print(f'# {line}')
        return False, ''
    finally:
        signal.alarm(0)


def _timed(test):
    """Runs a test, and prints its fault and its duration. Returns (ok, directive)."""
    start = time.monotonic()
    result = _one(*test[1:])
    print(f'# {time.monotonic() - start:.1f} s', flush=True)
    return result


def _run_as_child(test, parent, folder):
    """Runs a test in this child of `parent`, which then ends. Writes its output and what _timed()
    returns into the folder, which is also for its temporary files."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            tempfile.tempdir = os.path.join(folder, 't')
            os.mkdir(tempfile.tempdir)
            with open(os.path.join(folder, 'output'), 'wb') as output:
                os.dup2(output.fileno(), 1)
            ok, directive = _timed(test)
            with open(os.path.join(folder, 'result'), 'w', encoding='utf-8') as result:
                result.write(f'{ok:d}{directive}')
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)  # what would be cleaned up is the parent's, or in the folder


def _read(folder, name):
    try:
        with open(os.path.join(folder, name), encoding='utf-8', errors='replace') as file:
            return file.read()
    except FileNotFoundError:
        return ''


def _at_once(tests, most):
    """Runs tests in processes, `most` of them at the same time. Yields (ok, directive) in order."""
    waiting, running, ended = list(enumerate(tests)), {}, {}
    for number in range(len(tests)):
        while number not in ended:
            while waiting and len(running) < most:
                place, test = waiting.pop(0)
                folder, parent = tempfile.TemporaryDirectory(ignore_cleanup_errors=True), os.getpid()
                child = os.fork()
                if child == 0:
                    _run_as_child(test, parent, folder.name)
                running[child] = place, folder
            child, status = os.wait()
            place, folder = running.pop(child)
            ended[place] = folder, os.waitstatus_to_exitcode(status)
        folder, status = ended.pop(number)
        with folder as name:
            result, output = _read(name, 'result'), _read(name, 'output')
        print(output, end='' if output.endswith('\n') or not output else '\n')
        if not result:
            print(f'# its process ended without a result: exit status {status}')
        yield result[:1] == '1', result[1:]


def run(filters=None, at_once=1, shared=()):
    """Runs the tests and exits. `filters` defaults to the command line's arguments.

    They run in order. With `at_once`, so many run at the same time, each in a process of its own. That
    is for programs whose tests mostly wait. What cached functions return is then made for each test
    anew, but for that of the functions in `shared`, which are called before.
    """
    words = sys.argv[1:] if filters is None else filters
    filters = [word for word in words if not word.startswith('-')]
    left_out = {word[1:] for word in words if word.startswith('-')}
    texts = [f'{name}\n{function.__name__}' for name, function, _ in _tests]
    unknown = [word for word in filters if not any(word in text for text in texts)]
    unknown += left_out - {function.__name__ for _, function, _ in _tests}
    assert not unknown, f'no such tests: {unknown}'
    chosen = [
        test
        for test, text in zip(_tests, texts)
        if test[1].__name__ not in left_out
        and (not filters or any(word in text for word in filters))
    ]
    signal.signal(signal.SIGALRM, _alarm)
    failed = 0
    print(f'1..{len(chosen)}', flush=True)
    for function in shared if at_once > 1 else ():
        with contextlib.suppress(Skip):  # the tests skip themselves, too
            function()
    results = _at_once(chosen, at_once) if at_once > 1 else map(_timed, chosen)
    for number, ((name, _, _), (ok, directive)) in enumerate(zip(chosen, results), 1):
        failed += not ok
        print(f'{"ok" if ok else "not ok"} {number} - {name}{directive}', flush=True)
    sys.exit(1 if failed else 0)

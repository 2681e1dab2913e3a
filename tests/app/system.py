# SPDX-License-Identifier: LGPL-2.1-or-later
"""rtsp-proxy --check-system on this machine, with limits that the test sets, and next to what a
running proxy takes."""

import os
import re
import resource
import shutil
import subprocess
import tempfile
from contextlib import ExitStack

from control import CLIP_URI, Controlled, config
from loads import Load
from proxy import environment, program, wait_for_readers
from tap import SLOWER, Skip, run, test

MOUNTS = 8
CAMERA = ['--mount', '/cam=rtsp://192.0.2.7/a']


def check(*words, before=(), script=None):
    """Runs the check; `script` has it as "$@". Returns the output, the errors and the status."""
    command = [program(), *words, '--check-system']
    if script:
        command = ['sh', '-c', script, 'sh', *command]
    done = subprocess.run([*before, *command], env=environment(), capture_output=True, text=True,
                          timeout=30 * SLOWER, check=False)
    return done.stdout, done.stderr, done.returncode


def section(text, heading):
    """Returns {name: lines} of the findings below a heading."""
    part = re.search(rf'^{heading}.*\n((?:  .*\n)+)', text, re.M)
    found = re.findall(r'^  (\S.*?): (.*\n(?:    .*\n)*)', part[1] if part else '', re.M)
    return dict(found)


def binding(text):
    return section(text, r'\d+ limits? (?:is|are) too low\. As root:')


def namespaces():
    if not shutil.which('unshare') or subprocess.run(
            ['unshare', '-rn', 'true'], capture_output=True, check=False).returncode != 0:
        raise Skip('unshare -rn is not allowed here')
    return ['unshare', '-rn']


@test
def each_limit_is_said_with_what_the_configuration_needs():
    out, err, status = check(*CAMERA, '--expect', '12k,3')
    assert not err and status in (0, 1), (err, status)
    assert out.startswith('Checked for 1 mount of 0.012 Mb/s, each with a video and a sound track, '
                          'and for 3 readers;'), out
    assert status == bool(binding(out)), (status, out)
    every = {**binding(out), **section(out, 'Good'), **section(out, 'Cannot be read here')}
    for name in 'open files (RLIMIT_NOFILE)', 'net.core.rmem_max', 'net.ipv4.udp_mem', 'memory':
        assert name in every, (name, out)


@test
def a_wrong_expectation_is_refused():
    for wrong in 'fast', '8M,many', '':
        out, err, status = check(*CAMERA, f'--expect={wrong}')
        assert (out, status) == ('', 2), (out, status)
        assert err.startswith(f'rtsp-proxy: --expect: "{wrong}" is not RATE or RATE,READERS: '), err
    done = subprocess.run([program(), *CAMERA, '--expect', '8M'], env=environment(),
                          capture_output=True, text=True, timeout=30 * SLOWER, check=False)
    assert done.returncode == 2 and 'is for --check-system' in done.stderr, done
    out, err, status = check('--mount', '/cam=rtsp:')
    assert (out, status) == ('', 2) and err.startswith('rtsp-proxy: --mount: /cam: '), err


def with_few_files():
    """Returns what the check says about open files under a limit of 100."""
    out, _, status = check(*CAMERA, script='ulimit -n 100; "$@"')
    assert status == 1, out
    return binding(out)['open files (RLIMIT_NOFILE)']


@test
def too_few_open_files_bind():
    found = with_few_files()
    assert re.match(r'is 100, should be at least \d{3,}\n', found), found


@test
def the_limit_of_open_files_is_mended():
    """the command that is printed mends the limit of open files"""
    found = with_few_files()
    mend = re.search('now: +(.*)', found)[1]
    out, err, _ = check(*CAMERA, script=f'ulimit -n 100; {mend}\n"$@"')
    if 'not permitted' in err:
        raise Skip('this user cannot raise the limit')
    assert 'open files (RLIMIT_NOFILE)' not in binding(out), out
    assert '65536, at least' in section(out, 'Good')['open files (RLIMIT_NOFILE)'], out


@test
def sysctls_of_a_network_bind():
    """sysctls that are too small bind, and the commands that are printed mend them"""
    before = namespaces()
    if not shutil.which('sysctl'):
        raise Skip('needs sysctl')
    sysctls = {'net.core.somaxconn': '100', 'net.ipv4.tcp_max_syn_backlog': '100',
               'net.ipv4.ip_local_port_range': '40000 40003'}
    script = ''.join(f"sysctl -q -w '{key}={value}' || exit 9\n" for key, value in sysctls.items())
    out, err, status = check(*CAMERA, before=before, script=script + '"$@"')
    assert status == 1 and not err, (status, err)
    assert set(sysctls) <= set(binding(out)), out
    mend = [re.search('now: +(.*)', binding(out)[key])[1] for key in sysctls]
    out, err, _ = check(*CAMERA, before=before,
                        script=script + '\n'.join(mend) + ' || exit 9\n"$@"')
    assert not err and not set(sysctls) & set(binding(out)), (out, err)
    assert set(sysctls) <= set(section(out, 'Good')), out


@test
def a_container_hides_sysctls():
    """what a network namespace hides is named, and the check does not fail"""
    out, err, status = check(*CAMERA, before=namespaces())
    assert not err and status == bool(binding(out)), (out, err, status)
    hidden = [key for key in ('net.ipv4.udp_mem', 'net.core.netdev_max_backlog')
              if not os.path.exists('/proc/sys/' + key.replace('.', '/'))
              or key in section(out, 'Cannot be read here')]
    assert hidden, out


def limit_of(proxy):
    with open(f'/proc/{proxy.pid}/limits', encoding='utf-8') as file:
        limits = re.search(r'Max open files +(\d+) +(\d+)', file.read())
    return [int(word) for word in limits.groups()]


@test
def the_proxy_raises_its_limit_of_open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 300), hard))
    try:
        with Controlled({'/cam': {'upstream': CLIP_URI}}) as proxy:
            assert limit_of(proxy) == [hard, hard], limit_of(proxy)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def needed(text, name):
    """Returns the number that the configuration needs of a limit."""
    line = {**binding(text), **section(text, 'Good')}[name]
    return int(re.findall(r'\d+', line.splitlines()[0])[-1])


@test
def a_running_proxy_takes_what_the_check_says():
    """a running proxy takes no more files, threads and mappings than the check says, and a quarter
    of them at least"""
    with ExitStack() as stack:
        origin = stack.enter_context(
            Controlled({f'/s{n}': {'upstream': CLIP_URI} for n in range(MOUNTS)}))
        for client in 'light', 'rtspsrc':
            mounts = {f'/c{n}': {'upstream': origin.url(f'/s{n}'), 'client': client}
                      for n in range(MOUNTS)}
            with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
                file.write(config(mounts))
                file.flush()
                text = check('--config', file.name, '--expect', f'1M,{MOUNTS}')[0]
            with Controlled(mounts) as proxy, \
                    Load('--readers', MOUNTS, '--transport', 'udp', '--duration', 60,
                         *[proxy.url(path) for path in mounts]):
                wait_for_readers(proxy, MOUNTS, timeout=30)
                taken = {'open files (RLIMIT_NOFILE)': len(os.listdir(f'/proc/{proxy.pid}/fd')),
                         'kernel.threads-max': len(os.listdir(f'/proc/{proxy.pid}/task'))}
                if not os.environ.get('WEIR_SANITIZER_RUNTIME'):  # which has mappings of its own
                    with open(f'/proc/{proxy.pid}/maps', encoding='utf-8') as file:
                        taken['vm.max_map_count'] = len(file.readlines())
                for name, number in taken.items():
                    most = needed(text, name)
                    assert most / 4 <= number <= most, (client, name, number, most)


if __name__ == '__main__':
    run()

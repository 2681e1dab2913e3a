# SPDX-License-Identifier: LGPL-2.1-or-later
"""The proxy's configuration and arguments: every mistake is reported with its place before the
proxy listens."""

import os
import re
import subprocess
import tempfile

from tap import SLOWER, run, test

PROXY = os.environ['WEIR_RTSP_PROXY']
PAGE = os.path.join(os.environ['WEIR_DATA'], '../../docs/configuration.md')
CLIP = os.path.realpath(os.path.join(os.environ['WEIR_DATA'], 'bigbuckbunny.mp4'))
URI = 'rtsp://192.0.2.7/x'
MOUNT = f'mounts:\n  /cam:\n    upstream: {URI}\n'
WITH_UNIT = 'write it with a unit, such as 10s or 500ms'
NO_TIME = f'is not a time from 0s to 24h; {WITH_UNIT}'
NO_TIMEOUT = f'is not a time from 100ms to 24h; {WITH_UNIT}'
NO_CACHE_TIME = f'is not a time from 1s to 23h; {WITH_UNIT}'
BAD_URI = ('not a valid URI like rtsp://HOST:PORT/PATH; in a password, write @ as %40 and / as '
           '%2F')
NO_URI = f'upstream: {BAD_URI}'
NO_TEXT = 'expected a single value'
NO_SIZE = 'is not a size from {} to {}; write it in K, M, G or T, such as 64M'
NO_RATE = 'is not a rate from 64k to 100G bits a second; write it in k, M or G, such as 6M'
NO_STAGE = ('there is no stage "no-such"; known stages: aac, caption, cross-fade, cross-fade-sound, decode, decode-audio, '
            'late, layers, mix, opus, overlay, pace, picture-in-picture, pull, restamp, transcode')


def proxy(*args, **more):
    """Runs the program until it exits, with more environment variables. Returns its outputs and its exit status."""
    env = {k: v for k, v in os.environ.items() if k != 'WEIR_TEST_UNSET'} | more
    done = subprocess.run([PROXY, *args], capture_output=True, timeout=20 * SLOWER, env=env,
                          stdin=subprocess.DEVNULL)
    return done.stdout.decode(), done.stderr.decode(errors='replace'), done.returncode


def load(content, *args, **more):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'c.yaml')
        with open(path, 'wb') as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        out, err, status = proxy('--config', path, *args, **more)
        return out, err.replace(path, 'FILE'), status


# A mount that only lacks something of this machine is an error of the check, and of no start.
CHECK = ('--check-config',)


def refused(cases, args=CHECK):
    wrong = []
    for content, expected in cases:
        got = load(content, *args)
        if got != ('', f'rtsp-proxy: {expected}\n', 2):
            wrong.append(f'{content[:200]!r}: {got}, expected {expected!r}')
    assert not wrong, '\n'.join(wrong)


def mount(lines):
    return f'{MOUNT}    {lines}\n'


def upstream(uri):
    return f'mounts:\n  /cam:\n    upstream: {uri}\n'


@test
def wrong_keys_are_named():
    twice = '"{}" appears twice'
    refused([
        ('listne: 1\n', 'FILE:1:1: unknown key "listne"; the nearest known one is "listen"'),
        (mount('transprot: tcp'),
         'FILE:4:5: /cam: unknown key "transprot"; the nearest known one is "transport"'),
        (mount('linger: 1s\n    linger: 2s'), 'FILE:5:5: /cam: ' + twice.format('linger')),
        ('listen: :0\nlisten: :1\n', 'FILE:2:1: ' + twice.format('listen')),
        (MOUNT + f'  /cam:\n    upstream: {URI}\n', 'FILE:4:3: /cam: ' + twice.format('/cam')),
        ('mounts:\n  /cam:\n    transport: tcp\n',
         'FILE:2:3: /cam: the upstream is missing; add upstream: URI'),
    ])


def told(content):
    """Returns all messages, without the name of the program."""
    out, err, status = load(content, '--check-config')
    assert (out, status) == ('', 2), (out, status)
    lines = err.splitlines()
    assert all(line.startswith('rtsp-proxy: ') for line in lines), err
    return [line.removeprefix('rtsp-proxy: ') for line in lines]


@test
def all_mistakes_are_named():
    """mistakes are reported together, in the order of the file, up to twenty"""
    assert told(f"""listne: 1
api: x
mounts:
  /a:
    upstream: {URI}
    priority: 9
    linger: 10
  b: {{upstream: {URI}}}
  /c:
    upstreams: [h]
    transprot: tcp
    cache: {{time: 5, size: 1M}}
""") == [
        'FILE:1:1: unknown key "listne"; the nearest known one is "listen"',
        'FILE:2:6: api: "x" is not ADDR:PORT; write it like 0.0.0.0:8554',
        'FILE:6:15: priority: "9" is not a number from 0 to 7',
        f'FILE:7:13: linger: "10" {NO_TIME.format(0)}',
        'FILE:8:3: b: "b" is not a valid path; write it like /cam',
        'FILE:10:17: upstreams: unsupported URI scheme; use rtsp://, rtsps://, rtsp-schedule://, udp://, '
        'rtp://, sdp://, file://, store://, swarm://, https://, http://, srt://, rtmp://, publish or launch:',
        'FILE:11:5: /c: unknown key "transprot"; the nearest known one is "transport"',
        f'FILE:12:19: time: "5" {NO_CACHE_TIME}',
        'FILE:12:22: cache: unknown key "size"; known: time, bytes, spill']
    many = told('mounts:\n' + ''.join(f'  /{n}:\n    upstream: {URI}\n    priority: 9\n'
                                      for n in range(50)))
    assert len(many) == 21 and many[-1] == 'FILE: and 30 more', many
    assert [int(line.split(':')[1]) for line in many[:20]] == [4 + 3 * n for n in range(20)], many
    assert told('"a\\nb": 1\nmounts:\n  /cam: {upstream: rtsp://192.0.2.7/x}\n') == [
        'FILE:1:1: unknown key "a?b"; rtsp-proxy --help lists the known ones']


@test
def all_mistakes_of_a_mount_are_named():
    """one mistake hides no other, and none is reported that another one causes"""
    assert told(f"""mounts:
  /a:
    upstream: {URI}
    standby: warm
    cache: {{bytes: 64M}}
    swarm: {{}}
    takeover: yes
    pipeline: [no-such]
    broadcast: {{groups: 239.1.1.1, ttl: 0}}
  /b:
    upstream: h
    standby: warm
    swarm: {{}}
    takeover: yes
    pipeline: [no-such]
  /c:
    linger: 5
    pipeline: [pull: {{a: b}}, no-such, transcode: {{sise: 1, rate: fast}}]
  /d:
    upstream: {URI}
    tls-verify: maybe
    record: {{folder: x, part: 1}}
    interval: x
    broadcast: {{groups: 239.1.1.1}}
    choices: [a]
    takeover: yes
""") == [
        'FILE:4:14: standby: warm needs a second upstream; set upstreams: [URI, URI]',
        'FILE:5:12: cache: expected {time: TIME}, such as {time: 60s, bytes: 64M}',
        'FILE:6:12: swarm: this mount has no folder of torrents; set upstream: swarm:///DIR/',
        'FILE:7:15: takeover: nobody publishes to this mount; set upstream: publish',
        f'FILE:8:16: pipeline: {NO_STAGE}',
        'FILE:9:41: ttl: with 0 no packet leaves this machine; set at least 1, or iface: lo',
        'FILE:11:15: upstream: unsupported URI scheme; use rtsp://, rtsps://, rtsp-schedule://, udp://, '
        'rtp://, sdp://, file://, store://, swarm://, https://, http://, srt://, rtmp://, publish or launch:',
        f'FILE:15:16: pipeline: {NO_STAGE}',
        'FILE:16:3: /c: the upstream is missing; add upstream: URI',
        f'FILE:17:13: linger: "5" {NO_TIME}',
        'FILE:18:26: pipeline: pull takes no parameters here; set upstream and transport of the mount',
        f'FILE:18:30: pipeline: {NO_STAGE}',
        'FILE:18:57: pipeline: transcode has no parameter "sise"; known parameters: encoder, keys, rate, size',
        'FILE:18:66: pipeline: rate: "fast" is not a bitrate from 32k to 50M; the default is 600k',
        'FILE:21:17: tls-verify: "maybe" is not yes or no',
        'FILE:22:22: folder: the path of the folder x must begin with a slash',
        f'FILE:22:31: part: "1" {NO_TIMEOUT}',
        f'FILE:23:15: interval: "x" {NO_TIME}',
        'FILE:25:14: choices: expected stages with lists of parameters: {STAGE: [PARAMETER, ...]}',
        'FILE:26:15: takeover: nobody publishes to this mount; set upstream: publish']


@test
def what_a_person_meant_is_named():
    """a key that is near, a value that is missing, a blank that is missing, characters of word processors"""
    none = 'rtsp-proxy --help lists the known ones'
    lines = 'expected "key: value" lines'
    missing = 'the value is missing; a text that begins with #, & or ! needs quotes'
    curly = '; it has a curly quote (U+201C): write "'
    listen = 'is not ADDR:PORT; write it like 0.0.0.0:8554'
    refused([
        *((f'{wrong}: x\n{MOUNT}', f'FILE:1:1: unknown key "{wrong}"; the nearest known one is "{near}"')
          for wrong, near in (('Listn', 'listen'), ('USER', 'users'), ('trusted_networks', 'trusted-networks'),
                              ('strictQueries', 'strict-queries'), ('mount', 'mounts'), ('hsl', 'hls'))),
        *((f'{wrong}: x\n{MOUNT}', f'FILE:1:1: unknown key "{wrong}"; {none}')
          for wrong in ('port', 'x', 'address', 'log', 'linger')),
        *((mount(f'{wrong}: x'), f'FILE:4:5: /cam: unknown key "{wrong}"; the nearest known one is "{near}"')
          for wrong, near in (('read_timeout', 'read-timeout'), ('readTimeout', 'read-timeout'),
                              ('on-demnad', 'on-demand'), ('pasword', 'password'))),
        *((mount(f'{wrong}: x'), f'FILE:4:5: /cam: unknown key "{wrong}"; {none}')
          for wrong in ('url', 'source', 'uri', 'id')),
        (f'listen:\n{MOUNT}', f'FILE:1:8: listen: {missing}'),
        ('mounts:\n', f'FILE:1:8: mounts: {missing}'),
        (mount('password: #abc'), f'FILE:4:14: password: {missing}'),
        (mount('password: &abc'), f'FILE:4:15: password: {missing}'),
        (mount('cache:'), f'FILE:4:11: cache: {missing}'),
        ('mounts:\n  /cam:\n', f'FILE:2:8: /cam: {lines}'),
        ('mounts:\n  /cam:\n    linger:2s\n', f'FILE:3:5: /cam: {lines}; a space is missing after the colon'),
        ('listen:8554\n', f'FILE:1:1: {lines}; a space is missing after the colon'),
        (f'mounts:\n  /cam: {URI}\n', f'FILE:2:9: /cam: {lines}'),
        ('users:\n  - -name: x\n' + MOUNT,
         'FILE:2:5: users: unknown key "-name"; a space is missing after the dash'),
        (f'listen: \u201c:8554\u201d\n{MOUNT}', f'FILE:1:9: listen: "8554\u201d" is not a port from 0 to 65535{curly}'),
        (f'\u201clisten\u201d: ":8554"\n{MOUNT}',
         f'FILE:1:1: unknown key "\u201clisten\u201d"; {none}{curly}'),
        ('listen:\u00a0:8554\n', f'FILE:1:1: {lines}; a space is missing after the colon; it has a no-break space '
         '(U+00A0): write a plain one'),
        ('listen\uff1a :8554\n', f'FILE:1:1: {lines}; it has a wide colon (U+FF1A): write :'),
        (mount('linger: 5\u00a0s'), f'FILE:4:13: linger: "5\u00a0s" {NO_TIME}; it has a no-break space (U+00A0): write '
         'a plain one'),
        (mount('\u2013 linger: 5s'), f'FILE:4:5: /cam: unknown key "\u2013 linger"; {none}; it has a dash (U+2013): '
         'write -'),
        (b'\xef\xbb\xbflisten: x\r\n' + MOUNT.replace('\n', '\r\n').encode(),
         f'FILE:1:9: listen: "x" {listen}'),
        ('- listen: :8554\n', f'FILE:1:1: {lines}; this is a list'),
        (mount('cache: [60s]'), 'FILE:4:12: cache: expected {time: TIME}, such as {time: 60s, bytes: 64M}; '
         'this is a list'),
        *((mount(f'max-readers: {number}'), f'FILE:4:18: max-readers: "{number}" is not a number from 0 to 1000000')
          for number in ('10k', '1,000', '1_000', '1.0', '0x10', '10 readers', '-1', '1e3')),
    ])


@test
def wrong_users_are_named():
    """a user that would leave a door open, or could do nothing, is refused"""
    permissions = 'permissions: [{action: read}]'
    secret = 'hash: sha256:' + 64 * '0'

    def users(text):
        return f'users: [{text}]\n{MOUNT}'

    no_hash = 'expected $argon2id$... or sha256:HEX; rtsp-proxy hash-password makes one'
    no_digest = ('expected MD5:HEX or SHA-256:HEX; rtsp-proxy hash-password --user NAME makes them')
    no_name = 'a name contains no blank, colon, comma, quote, backslash or control character'
    costs = ('this hash costs too much to check: at most m=262144, t=16 and p=8 are allowed')
    useless = '; the user "a" could do nothing with this permission'
    refused([
        (f'users: x\n{MOUNT}', 'FILE:1:8: users: expected a list of users: [{name: NAME, ...}]'),
        (users('{}'), 'FILE:1:9: users: the name is missing; add name: NAME'),
        (users('x'), 'FILE:1:9: users: expected "key: value" lines'),
        (users(f'{{name: a, {permissions}}}'),
         'FILE:1:9: users: the user "a" has no secret; add password-file, hash or digest'),
        (users(f'{{name: any, {secret}, {permissions}}}'),
         'FILE:1:9: users: the user any is everybody and has no secret; remove it, or choose another '
         'name'),
        (users('{name: any}'),
         'FILE:1:9: users: the user "any" has no permissions; add permissions: [{action: read}]'),
        (users(f'{{name: a, {secret}, {permissions}}}, {{name: a, {secret}, {permissions}}}'),
         'FILE:1:130: users: the user "a" appears twice'),
        (users(f'{{name: a, pasword-file: x, {permissions}}}'),
         'FILE:1:19: users: unknown key "pasword-file"; the nearest known one is "password-file"'),
        (users(f'{{name: a b, {secret}, {permissions}}}'), f'FILE:1:16: name: {no_name}'),
        (users(f'{{name: "a:b", {secret}, {permissions}}}'), f'FILE:1:16: name: {no_name}'),
        (users(f'{{name: a, hash: x, {permissions}}}'), f'FILE:1:25: hash: {no_hash}'),
        (users(f'{{name: a, hash: sha256:00, {permissions}}}'), f'FILE:1:25: hash: {no_hash}'),
        (users(f'{{name: a, hash: "$argon2id$x", {permissions}}}'),
         'FILE:1:25: hash: not a hash of rtsp-proxy hash-password'),
        (users(f'{{name: a, hash: "$argon2id$v=19$m=9999999,t=2,p=1$c2FsdHNhbHQ$x", {permissions}}}'),
         f'FILE:1:25: hash: {costs}'),
        (users(f'{{name: a, digest: MD5:00, {permissions}}}'), f'FILE:1:27: digest: {no_digest}'),
        (users(f'{{name: a, digest: [MD5:{32 * "0"}, MD5:{32 * "1"}], {permissions}}}'),
         'FILE:1:66: digest: the same algorithm appears twice'),
        (users(f'{{name: any, networks: [10.0.0.0/33], {permissions}}}'),
         'FILE:1:32: networks: "10.0.0.0/33" is not a network; write it like 192.0.2.0/24'),
        (users(f'{{name: any, networks: [], {permissions}}}'),
         'FILE:1:31: networks: expected a list of networks, such as [192.0.2.0/24]'),
        (users('{name: any, permissions: [{action: raed}]}'),
         'FILE:1:44: action: "raed" is not one of read, publish, playback, api, metrics'),
        (users('{name: any, permissions: [{path: /cam}]}'),
         'FILE:1:35: permissions: the action is missing; add action: read'),
        (users('{name: any, permissions: [{action: api, path: /cam}]}'),
         'FILE:1:55: path: the actions api and metrics have no path'),
        (users('{name: any, permissions: [{action: read, path: cam}]}'),
         'FILE:1:56: path: expected a path like /cam, or a pattern like /cam/*'),
        (users(f'{{name: a, {secret}, permissions: [{{action: read, path: /camm}}]}}'),
         f'FILE:1:133: path: no mount serves "/camm"{useless}'),
        (users(f'{{name: a, {secret}, permissions: [{{action: read, path: /cam/*}}]}}'),
         f'FILE:1:133: path: no mount serves "/cam/*"{useless}'),
        (f'users: []\nusers-file: x\n{MOUNT}',
         'FILE:2:13: users-file: set users or users-file, not both\n'
         'rtsp-proxy: FILE:2:13: users-file: cannot read x: No such file or directory'),
    ])
    for path in '/cam', '/cam*', '*', '/c*':
        out, err, status = load(
            users(f'{{name: a, digest: MD5:{32 * "0"}, permissions: [{{action: read, path: "{path}"}}]}}'),
            '--check-config')
        assert (err, status) == ('', 0), (path, err)


@test
def a_user_who_can_never_log_in_is_named():
    digest, hashed = f'digest: MD5:{32 * "0"}', f'hash: sha256:{64 * "0"}'
    argon2 = 'hash: "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$x"'

    def users(*texts, more=''):
        return f'users: [{", ".join(texts)}]\n{more}{MOUNT}'

    def user(name, secret, *actions):
        permissions = ', '.join(f'{{action: {action}}}' for action in actions)
        return f'{{name: {name}, {secret}, permissions: [{permissions}]}}'

    never = ('users: the user "b" can never log in: a hash needs basic authentication, which is taken over TLS '
             'only; add digest (rtsp-proxy hash-password --user b prints it), or set tls, or basic-without-tls: yes')
    first = user('a', digest, 'read')
    texts = [users(first, user('b', secret, action)) for secret in (hashed, argon2)
             for action in ('read', 'playback', 'publish')]
    refused([(text, f'FILE:1:{text.rindex("{action") + 1}: {never}') for text in texts])
    with tempfile.TemporaryDirectory() as directory:
        pem = os.path.join(directory, 'proxy.pem')
        assert proxy('make-certificate', pem)[2] == 0
        for text in (users(user('b', f'{hashed}, {digest}', 'read')),
                     users(user('b', hashed, 'api')), users(user('b', hashed, 'metrics', 'read')),
                     users(user('b', hashed, 'read'), more='basic-without-tls: yes\n'),
                     users(user('b', hashed, 'read'), more='http: {listen: 127.0.0.1:0, tls-in-front: yes}\n'),
                     users(user('b', hashed, 'read'), more=f'tls: {{listen: 127.0.0.1:0, certificate: {pem}}}\n')):
            out, err, status = load(text, '--check-config')
            assert (err, status) == ('', 0), (text, err)
    refused([(f'http: {{listen: 127.0.0.1:0, tls-in-front: yes}}\n{MOUNT}',
              'FILE:1:7: http: tls-in-front: without users, everybody who reaches the reverse proxy would count as a '
              'client on this machine and might read; add users')])


@test
def files_with_secrets_must_be_private():
    user = 'permissions: [{action: read}]'
    with tempfile.TemporaryDirectory() as directory:
        secret, users = os.path.join(directory, 'secret'), os.path.join(directory, 'users.yaml')
        inline = f'users: [{{name: a, password-file: {secret}, {user}}}]\n{MOUNT}'
        other = f'users-file: {users}\n{MOUNT}'
        place = 'FILE:1:34: password-file: '

        def write(path, text, mode=0o600):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
            os.chmod(path, mode)

        def check(text, expected):
            out, err, status = load(text, '--check-config')
            assert err == (f'rtsp-proxy: {expected}\n' if expected else ''), (err, expected)
            assert status == (2 if expected else 0)

        check(inline, f'{place}cannot read {secret}: No such file or directory')
        write(secret, 'pw\n', 0o644)
        check(inline, f'{place}every user of this machine can read {secret}; run chmod o-rwx on it')
        write(secret, '\npw\n')
        check(inline, f'{place}the first line of {secret} must be a password of at most 1024 bytes')
        write(secret, 'pw\n', 0o640)
        check(inline, None)
        check(inline.replace(secret, directory), f'{place}{directory} is not a file')
        write(users, f'- {{name: a, password-file: {secret}, {user}}}\n', 0o644)
        check(other, f'FILE:1:13: users-file: every user of this machine can read {users}; run chmod '
              'o-rwx on it')
        os.chmod(users, 0o600)
        check(other, None)
        write(users, f'- {{name: a, {user}}}\n- {{name: b, {user}}}\n')
        lack = 'has no secret; add password-file, hash or digest'
        check(other, f'{users}:1:3: users: the user "a" {lack}\n'
              f'rtsp-proxy: {users}:2:3: users: the user "b" {lack}')
        write(users, f'- {{name: any, permissions: [{{action: read, path: /x}}]}}\n')
        check(other, f'{users}:1:50: path: no mount serves "/x"; the user "any" could do nothing with '
              'this permission')
        write(users, '')
        check(other, f'{users}: the file has no users')


@test
def huge_files_are_refused_at_once():
    """neither a deep nor a long file takes long to check"""
    deep = 'FILE:1:{}: nested too deeply: at most 32 levels are allowed'
    refused([
        ('a: ' + '[' * 100000, deep.format(4 + 31)),
        ('[' * 30000 + ']' * 30000, deep.format(33)),
        ('{a: ' * 100000, deep.format(129)),
        ('mounts: &a\n  /cam: *a\n', 'FILE:2:3: /cam: unknown key "/cam"; rtsp-proxy --help '
         'lists the known ones'),
        (MOUNT + '---\n' + MOUNT,
         'FILE:4:1: a second YAML document begins here; put everything into one'),
        (mount('pipeline: [pull, {transcode: {' + ', '.join(f'p{n}: x' for n in range(9000)) + '}}]'),
         'FILE:4:537: pipeline: too many parameters: at most 64 are allowed'),
    ])
    out, err, status = load('mounts:\n' + ''.join(
        f'  /mount-with-a-long-name-{n}: {{upstream: {URI}}}\n' for n in range(5000)),
        '--check-config')
    assert (err, status) == ('', 0), (err, status)


@test
def wrong_clips_are_named():
    """the key insert needs a folder that is there, and names in it"""
    folder = os.path.dirname(CLIP)
    refused([(f'{MOUNT}    insert: {text}\n', f'FILE:{place}: {wrong}') for text, place, wrong in [
        ('clips', '4:13', 'insert: expected {folder: FOLDER}, such as {folder: /srv/clips, on-cue: ad.mp4}'),
        ('{on-cue: a.mp4}', '4:13', 'insert: the folder of the clips is missing; add folder: FOLDER'),
        ('{folder: clips}', '4:22', 'folder: the path of the folder clips must begin with a slash'),
        ('{folder: /none}', '4:22', 'folder: no such folder: /none'),
        (f'{{folder: {folder}, on-cue: ../a.mp4}}', f'4:{32 + len(folder)}',
         'on-cue: "../a.mp4" is not a file in the mount\'s folder of clips; write it like ad.mp4'),
    ]])
    refused([(f'mounts:\n  /vod:\n    upstream: file://{folder}/\n    insert: {{folder: {folder}}}\n',
              'FILE:4:13: insert: this mount has no live stream: it serves stored titles'),
             (f'mounts:\n  /a/insert:\n    upstream: {URI}\n',
              'FILE:2:3: /a/insert: /insert behind a path is an operation of the API; choose another path')])


@test
def wrong_paths_are_named():
    cases = [(f'mounts:\n  "{p}":\n    upstream: {URI}\n',
              f'FILE:2:3: {p}: "{p}" is not a valid path; write it like /cam')
             for p in ('cam', '/', '/a/', '//a')]
    cases += [(f'mounts:\n  "{p}":\n    upstream: {URI}\n',
               f'FILE:2:3: {p}: "{p}" contains a character other than A-Z a-z 0-9 / - _ . ~')
              for p in ('/a b', '/a?b', '/a%20b', '/stream=0')]
    cases += [(f'mounts:\n  {p}:\n    upstream: {URI}\n',
               'FILE:2:3: expected the path of a mount, such as /cam')
              for p in ('""', '{a: b}')]
    refused(cases)


@test
def wrong_addresses_are_named():
    refused([(f'listen: {text}\n{MOUNT}', f'FILE:1:9: listen: {wrong}') for text, wrong in [
        ('127.0.0.1', '"127.0.0.1" is not ADDR:PORT; write it like 0.0.0.0:8554'),
        ('127.0.0.1:x', '"x" is not a port from 0 to 65535'),
        ('127.0.0.1:70000', '"70000" is not a port from 0 to 65535'),
        ('127.0.0.1:-1', '"-1" is not a port from 0 to 65535'),
        ('host:80', '"host" is not an IP address'),
        ('999.1.1.1:80', '"999.1.1.1" is not an IP address'),
        ('[a]', 'expected ADDR:PORT or off'),
        ('off', 'with `off` there is nowhere to connect; set tls'),
    ]])


@test
def wrong_upstreams_are_named():
    kind = ('upstream: unsupported URI scheme; use rtsp://, rtsps://, rtsp-schedule://, udp://, rtp://, '
            'sdp://, file://, store://, swarm://, https://, http://, srt://, rtmp://, publish or launch:')
    cases = [(upstream(uri), f'FILE:3:15: {NO_URI}') for uri in (
        'rtsp://', 'rtsp://:554/x', 'rtsp://u:p@ss@h/x', 'rtsp://u:p/w@h/x', 'rtsp://h:99999/x',
        'rtsp://h:x/y', 'rtsp://h:0/y', 'rtsp://[::1/x', 'rtsp://u@h/x', '"rtsp://h/a b"',
        '"rtsp://h/a\\r\\nb"')]
    cases += [(upstream(uri), f'FILE:3:15: {kind}') for uri in ('ftp://h/x', 'h', '/clip.mp4')]
    cases += [
        (upstream('file:///no/such.mp4'), 'FILE:3:15: upstream: no such file: /no/such.mp4'),
        (upstream('file:x'), 'FILE:3:15: upstream: not a file URI like file:///dir/clip.mp4'),
        (upstream('[a]'), f'FILE:3:15: upstream: {NO_TEXT}'),
    ]
    refused(cases)


@test
def wrong_values_are_named():
    cases = [(mount(f'linger: "{t}"'), f'FILE:4:13: linger: "{t}" {NO_TIME}') for t in (
        'x', '0', '10', '1.5', '-1s', '25h', '1441m', '0x10s', '1e3s', '.5s', '10 s', '9' * 400, 'nan')]
    cases += [(mount(f'read-timeout: {t}'), f'FILE:4:19: read-timeout: "{t}" {NO_TIMEOUT}')
              for t in ('0', '99ms')]
    cases += [
        (mount('transport: sctp'), 'FILE:4:16: transport: "sctp" is not one of auto, udp, tcp'),
        (mount('join: late'), 'FILE:4:11: join: "late" is not one of keyframe, live'),
        (mount('catch-up: soon'), 'FILE:4:15: catch-up: "soon" is not one of live, delay'),
        (mount('priority: 8'), 'FILE:4:15: priority: "8" is not a number from 0 to 7'),
        (mount('class: 3'), 'FILE:4:5: /cam: unknown key "class"; it is called "priority" now'),
        (mount('max-presentations: 0'),
         'FILE:4:24: max-presentations: "0" is not a number from 1 to 256'),
        (mount('switch-timeout: 1ms'), f'FILE:4:21: switch-timeout: "1ms" {NO_TIMEOUT}'),
        (mount('slate: /no/such'), 'FILE:4:12: slate: no such file: /no/such'),
        (mount('standby: hot'), 'FILE:4:14: standby: "hot" is not one of cold, warm'),
        (mount('standby: warm'),
         'FILE:4:14: standby: warm needs a second upstream; set upstreams: [URI, URI]'),
        (mount('takeover: yes'), 'FILE:4:15: takeover: nobody publishes to this mount; set upstream: publish'),
        (mount('on-demand: maybe'), 'FILE:4:16: on-demand: "maybe" is not yes or no'),
        (mount('on-demand: [no]'), f'FILE:4:16: on-demand: {NO_TEXT}'),
        (mount('password: a\n    password-env: PATH'), 'FILE:5:19: password-env: set only one of '
         'password, password-file and password-env'),
        (mount('password-env: WEIR_TEST_UNSET'),
         'FILE:4:19: password-env: the environment variable WEIR_TEST_UNSET is not set'),
        (mount('password-file: /no/such'), 'FILE:4:20: password-file: '
         'Failed to open file \u201c/no/such\u201d: No such file or directory'),
    ]
    refused(cases)


@test
def wrong_lists_of_upstreams_are_named():
    one = 'set upstream or upstreams, not both'
    list_of = 'mounts:\n  /cam:\n    upstreams: {}\n'.format
    cases = [(list_of(text), f'FILE:3:16: upstreams: expected a list of URIs: [URI, ...]')
             for text in (URI, '[]', '{a: b}')]
    cases += [
        (list_of(f'[{URI}, h]'), 'FILE:3:37: upstreams: unsupported URI scheme; use '
         'rtsp://, rtsps://, rtsp-schedule://, udp://, rtp://, sdp://, file://, store://, swarm://, https://, http://, srt://, rtmp://, publish or launch:'),
        (list_of(f'[{URI}, [a]]'), f'FILE:3:37: upstreams: {NO_TEXT}'),
        (list_of('[' + ', '.join([URI] * 9) + ']'),
         'FILE:3:177: upstreams: too many upstreams: at most 8 are allowed'),
        (mount(f'upstreams: [{URI}]'), f'FILE:4:16: upstreams: {one}'),
    ]
    refused(cases)


@test
def wrong_pipelines_are_named():
    stage = 'expected a stage: NAME or {NAME: {PARAMETER: VALUE}}'
    params = 'expected a stage with a list of parameters: STAGE: [PARAMETER, ...]'
    refused([
        (mount('pipeline: pull'),
         'FILE:4:15: pipeline: expected a list of stages, such as [pull, restamp]'),
        (mount('pipeline: [[a]]'), f'FILE:4:16: pipeline: {stage}'),
        (mount('pipeline: [{a: {b: c}, d: {}}]'), f'FILE:4:16: pipeline: {stage}'),
        (mount('pipeline: [{}]'), f'FILE:4:16: pipeline: {stage}'),
        (mount('pipeline: [{a: b}]'),
         'FILE:4:20: pipeline: expected parameters with values: {PARAMETER: VALUE}'),
        (mount('pipeline: [{a: {b: [c]}}]'), 'FILE:4:24: pipeline: expected a single value'),
        (mount('pipeline: [{a: {b: c, b: d}}]'), 'FILE:4:27: pipeline: "b" appears twice'),
        (mount('pipeline: [' + 'pull, ' * 33 + ']'),
         'FILE:4:208: pipeline: too many stages: at most 32 are allowed'),
        (mount('pipeline:\n      - pull\n      - no-such'),
         f'FILE:6:9: pipeline: {NO_STAGE}'),
        (mount('cache: 60s'),
         'FILE:4:12: cache: expected {time: TIME}, such as {time: 60s, bytes: 64M}'),
        (mount('cache: {bytes: 64M}'),
         'FILE:4:12: cache: expected {time: TIME}, such as {time: 60s, bytes: 64M}'),
        (mount('cache: {time: 60s, size: 1M}'),
         'FILE:4:24: cache: unknown key "size"; known: time, bytes, spill'),
        (mount('cache: {time: 1ms}'),
         f'FILE:4:19: time: "1ms" {NO_CACHE_TIME}'),
        (mount('cache: {time: 60}'),
         f'FILE:4:19: time: "60" {NO_CACHE_TIME}'),
        (mount('cache: {time: 24h}'), f'FILE:4:19: time: "24h" {NO_CACHE_TIME}'),
        (mount('cache: {time: 1m, bytes: 9K}'), f'FILE:4:30: bytes: "9K" {NO_SIZE.format("1M", "1T")}'),
        (mount('cache: {time: 1m, bytes: 2T}'), f'FILE:4:30: bytes: "2T" {NO_SIZE.format("1M", "1T")}'),
        (mount('cache: {time: 1m, bytes: 16777217T}'),
         f'FILE:4:30: bytes: "16777217T" {NO_SIZE.format("1M", "1T")}'),
        (mount('cache: {time: 1m, bytes: 3G}'),
         'FILE:4:12: cache: more than 2G of bytes needs a file on disk; add spill: FOLDER'),
        (mount('cache: {time: 1m, spill: /nowhere}'),
         'FILE:4:30: spill: cannot write to the folder /nowhere: it does not exist or is not '
         'writable'),
        (mount('cache: {time: 1m, bytes: 5MB}'), f'FILE:4:30: bytes: "5MB" {NO_SIZE.format("1M", "1T")}'),
        (mount('choices: [a]'),
         'FILE:4:14: choices: expected stages with lists of parameters: {STAGE: [PARAMETER, ...]}'),
        (mount('choices: {a: b}'), f'FILE:4:18: choices: {params}'),
        (mount('choices: {a: [b], a: [c]}'), 'FILE:4:23: choices: "a" appears twice'),
        (mount('choices: {a: [[b]]}'), 'FILE:4:19: choices: expected the name of a parameter'),
    ])


@test
def mounts_that_read_from_each_other_are_named():
    itself = 'the mount reads from itself: '
    cases = []
    for listen, host in [('127.0.0.1:7', 'localhost:7'), (':7', '127.0.0.2:7'),
                         ('"[::1]:554"', '[::1]'), ('192.0.2.1:7', '192.0.2.1:7')]:
        cases += [
            (f'listen: {listen}\nmounts:\n  /a: {{upstream: "rtsp://u:p@{host}/a/?x=1"}}\n',
             f'FILE:3:3: /a: {itself}/a, /a'),
            (f'listen: {listen}\nmounts:\n  /a: {{upstream: "{URI}"}}\n'
             f'  /b: {{upstreams: ["{URI}", "rtsp://{host}/a", "rtsp://{host}/c"]}}\n'
             f'  /c: {{upstream: "rtsp://{host}/b"}}\n', f'FILE:4:3: /b: {itself}/b, /c, /b'),
        ]
    refused(cases)
    for upstream_of_a in ('rtsp://127.0.0.1:8/a', 'rtsp://192.0.2.1:7/a', 'rtsp://127.0.0.1:7/b'):
        text = (f'listen: 127.0.0.1:7\nmounts:\n  /a: {{upstream: "{upstream_of_a}"}}\n'
                f'  /b: {{upstream: "{URI}"}}\n')
        assert load(text, '--check-config')[2] == 0, text
    assert load(MOUNT, '--listen', '127.0.0.1:7', '--mount', '/x=rtsp://127.0.0.1:7/x')[1:] == (
        f'rtsp-proxy: --mount: /x: {itself}/x, /x\n', 2)


def torrents(lines):
    return f'mounts:\n  /t:\n    upstream: swarm:///tmp/\n    swarm: {{{lines}}}\n'


@test
def wrong_swarms_are_named():
    """a swarm that could not work is refused, with the place of what is wrong"""
    endpoints = 'expected addresses with ports such as 10.0.0.7:6881,[::1]:0'
    networks = 'expected networks such as 10.0.0.0/8,192.168.1.0/24'
    storage = 'expected a size of at least 1M, or 1% to 100% of a title'
    upload = 'expected at least 64k bits a second, such as 6M'
    origin = 'expected a URL such as http://10.0.0.1/films/'
    refused([(torrents(f'{key}: "{value}"'), f'FILE:4:{15 + len(key)}: {key}: {wrong}')
             for key, value, wrong in (
                 ('origin', 'ftp://h/', origin), ('origin', 'films', origin),
                 ('upload', '1k', upload), ('upload', '6Mb', upload), ('upload', '-1', upload),
                 ('upload', '99999999999999999999G', upload),
                 ('storage', '1K', storage), ('storage', '0%', storage),
                 ('storage', '101%', storage), ('storage', '%', storage),
                 ('storage', '50%%', storage), ('storage', '', 'expected a single value'),
                 ('folder', '/nowhere', 'cannot write to the folder /nowhere: it must exist and be '
                  'writable'),
                 ('peers', 'h:1', endpoints), ('peers', '10.0.0.1', endpoints),
                 ('peers', '10.0.0.1:65536', endpoints), ('peers', '::1:6', endpoints),
                 ('peers', '10.0.0.1:1,', endpoints), ('listen', '[10.0.0.1]:1', endpoints),
                 ('networks', '10.0.0.1/8', networks), ('networks', '10.0.0.0/8,', networks),
                 ('networks', 'lan', networks))] + [
        (torrents('picker: best'), 'FILE:4:21: picker: "best" is not one of rarest, in-order, beta, '
         'hybrid, adaptive'),
        *((torrents(f'{keys}dht: yes'), f'FILE:4:{18 + len(keys)}: dht: the nodes of the hash table '
           'are anywhere: set networks to 0.0.0.0/0,::/0, or dht to no')
          for keys in ('', 'networks: 10.0.0.0/8, ', 'networks: 0.0.0.0/0, ')),
        (torrents('titles: 0'), 'FILE:4:21: titles: "0" is not a number from 1 to 1024'),
        (torrents('sead: 1'), 'FILE:4:13: swarm: unknown key "sead"; known: origin, upload, storage, '
         'folder, picker, window, leave, titles, choking, peers, networks, listen, trackers, exchange, dht, '
         'local-discovery'),
        (torrents('upload: 6M').replace('{upload: 6M}', '6M'),
         'FILE:4:12: swarm: expected {KEY: VALUE, ...}, such as {upload: 6M}'),
        (mount('swarm: {upload: 6M}'), 'FILE:4:12: swarm: this mount has no folder of torrents; '
         'set upstream: swarm:///DIR/'),
        ('mounts:\n  /t: {upstream: "swarm:///tmp"}\n', 'FILE:2:18: upstream: not the URI of a '
         'folder of torrents like swarm:///srv/torrents/'),
        ('mounts:\n  /t: {upstream: "swarm:///nowhere/"}\n',
         'FILE:2:18: upstream: no such folder: /nowhere/'),
    ])
    for good in ('', 'upload: 6M, storage: 50%, folder: /tmp, picker: adaptive, window: 9m',
                 'peers: "10.0.0.7:6881,[fe80::1]:1", networks: "10.0.0.0/8,fe80::/10"',
                 'leave: stream, titles: 4, choking: rate-blind, listen: "0.0.0.0:6881"',
                 'origin: "https://h/films/", dht: yes, networks: "0.0.0.0/0,::/0", '
                 'local-discovery: yes, trackers: no, exchange: no'):
        assert load(torrents(good), '--check-config')[1:] == ('', 0), good


def films(lines):
    return f'mounts:\n  /films:\n    upstream: file:///tmp/\n    broadcast: {lines}\n'


@test
def wrong_broadcasts_are_named():
    """a broadcast that could not be sent, or would meet another one, is refused"""
    groups = 'expected an IPv4 multicast address, or a range such as 239.1.1.0/28'
    multicast = 'not a multicast address; take one of 239.0.0.0/8'
    none = 'the scheme {} has none; remove this key'
    port = 'expected an even number from 1024 to 65520, such as 5004'
    threshold = f'is not auto or a time from 1ms to 24h; {WITH_UNIT}'
    needs = 'needs at least 2 groups, as each segment of a title has its own'
    ok = 'groups: 239.1.1.0/28'
    at = len('    broadcast: {' + ok) + 3
    refused([
        (films('x'), 'FILE:4:16: broadcast: expected {groups: ADDRESS/BITS}, such as '
                     '{groups: 239.1.1.0/28, scheme: gdb}'),
        (films('{scheme: gdb}'),
         'FILE:4:16: broadcast: the groups are missing; add groups: ADDRESS/BITS'),
        (films('{groups: [a]}'), f'FILE:4:25: groups: {NO_TEXT}'),
        (films('{groups: 239.1.1}'), f'FILE:4:25: groups: {groups}'),
        (films('{groups: 239.1.1.0/33}'), f'FILE:4:25: groups: {groups}'),
        (films('{groups: "ff0e::1"}'), f'FILE:4:25: groups: {groups}'),
        (films('{groups: 192.0.2.0/28}'), f'FILE:4:25: groups: {multicast}'),
        (films('{groups: 240.0.0.0}'), f'FILE:4:25: groups: {multicast}'),
        (films('{groups: 224.0.0.0/24}'),
         'FILE:4:25: groups: 224.0.0.0 to 224.0.0.255 are reserved for protocols of routers; take '
         'addresses of 239.0.0.0/8'),
        (films('{groups: 239.0.0.0/15}'),
         'FILE:4:25: groups: the range is too large; it has at most 65536 addresses (/16)'),
        (films('{groups: 239.1.1.5/28}'),
         'FILE:4:25: groups: a range of 16 addresses does not begin there; write 239.1.1.0/28'),
        (films('{groups: 239.1.1.0/28, port: 5005}'), f'FILE:4:{at + 6}: port: {port}'),
        (films('{groups: 239.1.1.0/28, port: 1022}'), f'FILE:4:{at + 6}: port: {port}'),
        (films('{groups: 239.1.1.0/28, port: 65522}'), f'FILE:4:{at + 6}: port: {port}'),
        (films('{groups: 239.1.1.0/28, scheme: gbd}'),
         f'FILE:4:{at + 8}: scheme: "gbd" is not one of gdb, greedy, skyscraper, staggered, '
         'batching, patching, auto'),
        (films('{groups: 239.1.1.0/28, first: 0s}'), f'FILE:4:{at + 7}: first: "0s" {NO_TIMEOUT}'),
        (films('{groups: 239.1.1.0/28, first: 10}'), f'FILE:4:{at + 7}: first: "10" {NO_TIMEOUT}'),
        (films('{groups: 239.1.1.0/28, threshold: 0s}'),
         f'FILE:4:{at + 11}: threshold: "0s" {threshold}'),
        (films('{groups: 239.1.1.0/28, threshold: 60s, scheme: gdb}'),
         f'FILE:4:{at + 11}: threshold: {none.format("gdb")}'),
        (films('{groups: 239.1.1.0/28, first: 10s, scheme: patching}'),
         f'FILE:4:{at + 7}: first: {none.format("patching")}'),
        (films('{groups: 239.1.1.1, scheme: gdb}'),
         f'FILE:4:25: groups: the scheme gdb {needs}'),
        (films('{groups: 239.1.1.1}'), f'FILE:4:25: groups: the scheme auto {needs}'),
        (films('{groups: 239.1.1.0/28, ttl: 256}'),
         f'FILE:4:{at + 5}: ttl: "256" is not a number from 0 to 255'),
        (films('{groups: 239.1.1.0/28, ttl: 0}'),
         f'FILE:4:{at + 5}: ttl: with 0 no packet leaves this machine; set at least 1, or iface: lo'),
        (films('{groups: 239.1.1.0/28, iface: nosuch0}'),
         f'FILE:4:{at + 7}: iface: no such network interface: nosuch0; `ip link` lists them'),
        (films('{groups: 239.1.1.0/28, rate: 63k}'), f'FILE:4:{at + 6}: rate: "63k" {NO_RATE}'),
        (films('{groups: 239.1.1.0/28, rate: 101G}'), f'FILE:4:{at + 6}: rate: "101G" {NO_RATE}'),
        (films('{groups: 239.1.1.0/28, rate: 99999999999G}'), f'FILE:4:{at + 6}: rate: "99999999999G" {NO_RATE}'),
        (films('{groups: 239.1.1.0/28, cache: 3G}'),
         f'FILE:4:{at + 7}: cache: "3G" {NO_SIZE.format("1M", "2G")}'),
        (mount('broadcast: {groups: 239.1.1.0/28}'),
         'FILE:4:25: groups: the upstream is a stream, which needs one group; write one address'),
        (mount('broadcast: {groups: 239.1.1.1}'),
         'FILE:4:16: broadcast: the group gets the stream all the time; add on-demand: no to the '
         'mount'),
        (mount('interval: 1s\n    broadcast: {groups: 239.1.1.1}'),
         'FILE:5:16: broadcast: with interval, each session plays the upstream anew; remove one of '
         'both keys'),
        *((mount(f'broadcast: {{groups: 239.1.1.1, {key}: {value}}}'),
           f'FILE:4:{38 + len(key)}: {key}: this key is for stored titles; remove it, as the '
           'upstream is a stream')
          for key, value in (('scheme', 'gdb'), ('first', '10s'), ('threshold', 'auto'),
                             ('rate', '1M'), ('cache', '1M'))),
    ])
    for lines in ('{groups: 239.1.1.0/28}', '{groups: 239.1.1.1, scheme: patching, threshold: 1ms}',
                  '{groups: 239.1.1.1, scheme: batching, first: 100ms}',
                  '{groups: 239.1.0.0/16, ttl: 0, iface: lo, rate: 64k, cache: 1M, port: 65520}'):
        assert load(films(lines), '--check-config')[2] == 0, lines
    live = 'on-demand: no\n    broadcast: {groups: 239.1.1.1, port: 6000, ttl: 3, iface: lo}'
    assert load(mount(live), '--check-config')[2] == 0


@test
def broadcasts_of_two_mounts_on_the_same_groups_are_named():
    def two(one, other):
        return films(one) + films(other).replace('mounts:\n', '').replace('/films:', '/more:')

    for one, other, shown in [
            ('{groups: 239.1.1.0/28}', '{groups: 239.1.1.0/29}', '239.1.1.0/29'),
            ('{groups: 239.1.1.0/28}', '{groups: 239.1.1.8/29, iface: lo}', '239.1.1.8/29'),
            ('{groups: 239.1.1.0/28, port: 6000}', '{groups: 239.1.1.0/28, port: 6014}',
             '239.1.1.0/28')]:
        port = int(other[-5:-1]) if 'port' in other else 5004
        refused([(two(one, other),
                  f'FILE:2:3: /films: /more sends on {shown}, port {port} to {port + 15}, too; '
                  'choose other groups or a port that is 16 away')])
    for one, other in [('{groups: 239.1.1.0/28}', '{groups: 239.1.1.16/28}'),
                       ('{groups: 239.1.1.0/28, port: 6000}', '{groups: 239.1.1.0/28, port: 6016}')]:
        assert load(two(one, other), '--check-config')[2] == 0, (one, other)


@test
def wrong_api_keys_are_named():
    one = 'set only one of api-token, api-token-file and api-token-env'
    reach = ('other machines can reach this address: set a token (api-token-file: FILE), or add a '
             'user with the action api')
    refused([
        (f'api: x\n{MOUNT}', 'FILE:1:6: api: "x" is not ADDR:PORT; write it like 0.0.0.0:8554'),
        (f'api: [x]\n{MOUNT}', 'FILE:1:6: api: expected ADDR:PORT or off'),
        (f'api: :0\n{MOUNT}', f'FILE:1:6: api: {reach}'),
        (f'api: "[::]:0"\n{MOUNT}', f'FILE:1:6: api: {reach}'),
        (f'api: 192.0.2.1:80\n{MOUNT}', f'FILE:1:6: api: {reach}'),
        (f'api-token: a\napi-token-env: PATH\n{MOUNT}', f'FILE:2:16: api-token-env: {one}'),
        (f'api-token: a\napi-token-file: /dev/null\n{MOUNT}', f'FILE:2:17: api-token-file: {one}'),
        (f'api-token-file: /dev/null\n{MOUNT}', 'FILE:1:1: api-token: the token is empty'),
        (f'stages: /no/such\n{MOUNT}', 'FILE:1:9: stages: no such folder: /no/such'),
    ])


@test
def wrong_keys_of_tokens_and_checks_are_named():
    url = 'expected a URL, such as https://auth.example.org/check'
    missing = 'cannot read /no/keys: No such file or directory'
    refused([
        (f'jwt: x\n{MOUNT}', 'FILE:1:6: jwt: expected "key: value" lines'),
        (f'jwt: {{issuer: x}}\n{MOUNT}', 'FILE:1:6: jwt: the keys that sign tokens are missing; '
         'add jwks: FILE or jwks: URL'),
        (f'jwt: {{jwks: /no/keys}}\n{MOUNT}', f'FILE:1:13: jwks: {missing}'),
        (f'jwt: {{jwks: /dev/null}}\n{MOUNT}',
         'FILE:1:13: jwks: cannot read /dev/null: not a regular file'),
        (f'jwt: {{jwks: "https://"}}\n{MOUNT}', f'FILE:1:13: jwks: {url}'),
        (f'jwt: {{jwks: "https://a:b@c/"}}\n{MOUNT}',
         'FILE:1:13: jwks: the URL must not contain a user or a password'),
        (f'external-auth: {{}}\n{MOUNT}', 'FILE:1:16: external-auth: the server to ask is missing; '
         'add url: https://HOST/PATH'),
        (f'external-auth: {{url: auth.example.org}}\n{MOUNT}', f'FILE:1:22: url: {url}'),
        (f'external-auth: {{url: "ftp://a/"}}\n{MOUNT}', f'FILE:1:22: url: {url}'),
        (f'external-auth: {{url: "http://a/", timeout: 5}}\n{MOUNT}', 'FILE:1:44: timeout: "5" is '
         'not a time from 100ms to 60s; write it with a unit, such as 10s or 500ms'),
        (f'external-auth: {{url: "http://a/", exclude: [read, write]}}\n{MOUNT}',
         'FILE:1:51: exclude: not an action; expected read, publish, playback, api or metrics'),
    ])


@test
def wrong_keys_of_srt_are_named():
    refused([
        (f'srt: 7\n{MOUNT}', 'FILE:1:6: srt: expected {listen: ADDR:PORT}'),
        (f'srt: {{latency: 1s}}\n{MOUNT}', 'FILE:1:6: srt: listen is missing; write it like {listen: 0.0.0.0:8890}'),
        (f'srt: {{listen: x}}\n{MOUNT}', 'FILE:1:15: listen: "x" is not ADDR:PORT; write it like 0.0.0.0:8554'),
        (f'srt: {{listen: ":1", passphrase: short}}\n{MOUNT}',
         'FILE:1:6: srt: an SRT passphrase has 10 to 79 bytes'),
        (f'srt: {{listen: ":1", latency: 2m}}\n{MOUNT}', 'FILE:1:6: srt: the latency is 60s at most'),
    ])


@test
def wrong_keys_of_rtmp_are_named():
    refused([
        (f'rtmp: :1935\n{MOUNT}', 'FILE:1:7: rtmp: expected {listen: ADDR:PORT}'),
        (f'rtmp: {{}}\n{MOUNT}', 'FILE:1:7: rtmp: listen is missing; write it like {listen: 0.0.0.0:1935}'),
        (f'rtmp: {{tls-listen: "127.0.0.1:0"}}\n{MOUNT}', 'FILE:1:7: rtmp: tls-listen needs a certificate; set tls'),
        (f'rtmp: {{listen: x}}\n{MOUNT}', 'FILE:1:16: listen: "x" is not ADDR:PORT; write it like 0.0.0.0:8554'),
    ])


@test
def wrong_keys_of_webrtc_are_named():
    rest = f'http: {{listen: "127.0.0.1:0"}}\n{MOUNT}'
    refused([
        (f'webrtc: 8189\n{rest}', 'FILE:1:9: webrtc: expected {listen: ADDR:PORT}'),
        (f'webrtc: {{tcp: no}}\n{rest}', 'FILE:1:9: webrtc: listen is missing; write it like {listen: 0.0.0.0:8189}'),
        (f'webrtc: {{listen: ":1"}}\n{MOUNT}', 'FILE:1:9: webrtc: browsers ask for media over HTTP; set http, such as '
         '{listen: 0.0.0.0:8888}'),
        (f'webrtc: {{listen: ":1", additional-hosts: [example.org]}}\n{rest}', 'FILE:1:43: additional-hosts: '
         '"example.org" is not an IP address: some browsers take no names'),
        (f'webrtc: {{listen: ":1", stun-servers: ["http://x"]}}\n{rest}', 'FILE:1:39: stun-servers: "http://x" is not '
         'the URI of a STUN server; write it like stun:stun.example.org:3478'),
    ])


@test
def wrong_keys_of_hls_are_named():
    refused([
        (f'hls: 7\n{MOUNT}', 'FILE:1:6: hls: expected {KEY: VALUE}, such as {part: 300ms}'),
        (f'hls: {{part: 2s}}\n{MOUNT}', 'FILE:1:6: hls: a part cannot be longer than a segment'),
        (f'hls: {{segment: 2m}}\n{MOUNT}', 'FILE:1:6: hls: a segment is 60s long at most, and a part 5s'),
        (f'hls: {{segmnt: 2s}}\n{MOUNT}',
         'FILE:1:7: hls: unknown key "segmnt"; the nearest known one is "segment"'),
        (f'hls: {{part: 100ms}}\n{MOUNT}', 'FILE:1:6: hls: HLS is served over HTTP; set http: {listen: ADDR:PORT}'),
        (f'hls: {{segments: 2}}\n{MOUNT}', 'FILE:1:17: segments: "2" is not a number from 3 to 100'),
    ])


@test
def a_wrong_receive_tick_is_named():
    wrong = 'receive-tick: expected a time from 0ms to 100ms, such as 2ms or 0.5ms'
    refused([(f'receive-tick: {value}\n{MOUNT}', f'FILE:1:15: {wrong}')
             for value in ('2', '-1ms', '101ms', '1s', 'x', '[2ms]', '""')])


@test
def the_page_shows_every_key():
    """docs/configuration.md has the tables that the program prints"""
    out, _, status = proxy('--print-config-docs')
    tables = out.split('\n\n')
    assert status == 0 and len(tables) == 22, out
    with open(PAGE, encoding='utf-8') as file:
        page = file.read()
    for table in tables:
        lines = [line for line in table.strip().split('\n') if line not in page.split('\n')]
        assert table.strip() in page, f'not in {PAGE}: {lines}'


@test
def the_examples_of_the_page_are_valid():
    """each example in docs/configuration.md is valid"""
    with open(PAGE, encoding='utf-8') as file:
        examples = re.findall(r'^```yaml\n(.*?)^```', file.read(), re.S | re.M)
    assert len(examples) >= 3, examples
    for example in examples:
        with tempfile.NamedTemporaryFile('w', suffix='.password') as password:
            password.write('secret\n')
            password.flush()
            example = re.sub(r'/etc/rtsp-proxy/\S+', password.name, example)
            example = example.replace('/srv/films/', os.path.dirname(CLIP) + '/')
            example = example.replace('/srv/soon.mp4', CLIP).replace('/srv/logo.png', CLIP)
            example = example.replace('/srv/clips', os.path.dirname(CLIP))
            example = example.replace('/srv/recordings', os.path.dirname(password.name))
            out, err, status = load(example, '--check-config')
        assert status == 0 and out.startswith('The configuration is good'), (example, err)


@test
def files_that_are_not_a_configuration_are_named():
    lines = 'expected "key: value" lines'
    paths = 'mounts: expected paths with their keys: {/PATH: {upstream: URI}}'
    refused([
        ('', 'FILE: no mounts; add at least one /PATH under mounts'),
        ('# nothing\n', 'FILE: no mounts; add at least one /PATH under mounts'),
        ('mounts: {}\n', 'FILE: no mounts; add at least one /PATH under mounts'),
        ('mounts:\n\t/cam: x\n', 'FILE:2:1: a tab indents this line; YAML allows spaces only'),
        ("listen: 'abc\n", "FILE:1:9: the quote (') that begins this text has no end"),
        (b'\x00\x01\x02', 'FILE:1:1: a NUL byte; save the file as text in UTF-8'),
        (b'listen: x\na: \xff\n', 'FILE:2:4: this is not UTF-8; save the file in UTF-8'),
        ('- a\n', f'FILE:1:1: {lines}; this is a list'),
        ('mounts: [a]\n', f'FILE:1:9: {paths}'),
        ('mounts:\n  /cam: [a]\n', f'FILE:2:9: /cam: {lines}; this is a list'),
        ('mounts: *a\n', 'FILE:1:9: a text that begins with * needs quotes'),
        ('- ' * 100000, 'FILE:1:65: nested too deeply: at most 32 levels are allowed'),
        ('k' * (1 << 20) + ': x\n',
         'FILE:1:1048577: a key has at most 1024 characters'),
        ('? ' + 'k' * (1 << 20) + '\n: x\n', f'FILE:1:3: unknown key "{"k" * 64}"; '
         'rtsp-proxy --help lists the known ones'),
    ])
    _, err, status = load('[' * 5000)
    assert status == 2 and err.startswith('rtsp-proxy: FILE:'), (err, status)


@test
def a_missing_file_is_named():
    assert proxy('--config', '/no/such.yaml') == ('', 'rtsp-proxy: Failed to open file '
        '\u201c/no/such.yaml\u201d: No such file or directory\n', 2)


@test
def valid_configurations_pass():
    good = 'The configuration is good: 1 mount.\n'
    for content in (MOUNT, 'listen: "[::1]:8554"\n' + MOUNT, 'listen: :0\n' + MOUNT,
                    mount('linger: 24h'), mount('linger: 1.5s'), mount('linger: 0s'),
                    mount('user: a\n    password: b\n    transport: udp\n    on-demand: no'),
                    mount('pipeline: [pull]\n    choices: {}\n    max-presentations: 1'),
                    f'mounts:\n  /cam:\n    upstreams: [{URI}, rtsp://h/b]\n',
                    'api: off\n' + MOUNT, 'api: :0\napi-token: secret\n' + MOUNT,
                    'api: "[::1]:0"\n' + MOUNT, 'receive-tick: 0ms\n' + MOUNT,
                    'receive-tick: 0.5ms\n' + MOUNT, 'receive-tick: 0.1s\n' + MOUNT,
                    upstream('rtsps://u:p%40w@[::1]:322/x?a=b:c'), upstream('rtsp://h:554')):
        got = load(content, '--check-config')
        assert got == (good, '', 0), (content, got)


def says(content, expected, **more):
    """Checks the first line that --check-config says of a file with these environment variables."""
    out, err, status = load(content, '--check-config', **more)
    got = out.split('\n')[0] if status == 0 else err.split('\n')[0].removeprefix('rtsp-proxy: ')
    assert got == expected, (content, more, out, err)


@test
def values_come_from_the_environment():
    good = 'The configuration is good: 1 mount.'
    wrong = ('expected ${NAME} or ${NAME:-TEXT}, the value of an environment variable; write $${ for a ${ of the '
             'text itself')
    unset = 'the environment variable WEIR_TEST_UNSET is not set; set it, or give a default: ${WEIR_TEST_UNSET:-TEXT}'
    says(mount('linger: ${A}'), good, A='7s')
    says(mount('linger: ${A}s'), good, A='7')
    says(mount('linger: "${A}${_B2}"'), good, A='7', _B2='s')
    says(mount('linger: ${WEIR_TEST_UNSET:-7s}'), good)
    says(mount('linger: ${A:-7s}'), good, A='')
    says(mount('linger: ${A:-x}'), good, A='7s')
    says(mount('user: ${WEIR_TEST_UNSET:-}x'), good)
    says(mount('linger: ${WEIR_TEST_UNSET}'), f'FILE:4:13: linger: {unset}')
    says(f'hosts: [a, "${{WEIR_TEST_UNSET}}"]\n{MOUNT}', f'FILE:1:12: hosts: {unset}')
    for text in '${}', '${', '${A', '${9}', '${A-x}', '${A:x}', '${A b}', '${A:-${B}}', 'x${A$}':
        says(mount(f"linger: '{text}'"), f'FILE:4:13: linger: {wrong}', A='7s', B='8s')
    # What is no variable stays, and so does what the value of one says.
    for text, is_said in (('$A', '$A'), ('$${A}', '${A}'), ('$$${A}', '$${A}'), ('${B}', '${'), ('$', '$'), ('{A}', '{A}')):
        says(mount(f"linger: '{text}'"), f'FILE:4:13: linger: "{is_said}" {NO_TIME}', A='7s', B='${')


@test
def the_environment_changes_no_structure():
    """the value of a variable is one text, and none of a key; errors do not show it"""
    text = 'FILE:4:13: linger: "{}" ' + NO_TIME
    for value in '1s\n    user: x', '{a: b}', '[a, b]', '*x 1s', '&x 1s', '# 1s', 'secret and long', '1s, 2s':
        says(mount('linger: ${A}'), text.format('${A}'), A=value)
    for value in '~', 'nul', 'no', '-1s':
        says(mount('linger: ${A}'), text.format(value), A=value)
    says(mount('linger: ${A}'), 'FILE:4:13: linger: expected a single value', A='')
    says(mount('slate: ${A}'), 'FILE:4:12: slate: no such file: ${A}', A='null')
    says(mount('${A}: 7s'), 'FILE:4:5: /cam: unknown key "${A}"; rtsp-proxy --help lists the known ones', A='linger')
    says(mount('linger: "${A}${A}"'), 'FILE:4:13: linger: the value is longer than 64 KiB with its environment '
         'variables', A='x' * 40000)
    says(mount('linger: ${A}'), 'FILE:4:13: linger: the environment variable A is not text in UTF-8', A=b'\xff')


@test
def variables_set_keys_of_the_file():
    """WEIR_LISTEN and the like stand in place of what the file says, and an argument in place of them"""
    good = 'The configuration is good: 1 mount.'
    says(f'listen: x\n{MOUNT}', good, WEIR_LISTEN=':0')
    says(MOUNT, 'WEIR_LISTEN: listen: "x" is not ADDR:PORT; write it like 0.0.0.0:8554', WEIR_LISTEN='x')
    says(f'listen: :0\n{MOUNT}', good, WEIR_LISTEN='')
    says(MOUNT, 'WEIR_RECEIVE_TICK: receive-tick: expected a time from 0ms to 100ms, such as 2ms or 0.5ms',
         WEIR_RECEIVE_TICK='1s')
    says(MOUNT, 'WEIR_STAGES: stages: no such folder: /no/such', WEIR_STAGES='/no/such')
    says(f'api-token: a\n{MOUNT}', 'WEIR_API_TOKEN_ENV: api-token-env: set only one of api-token, api-token-file and '
         'api-token-env', WEIR_API_TOKEN_ENV='HOME')
    says(f'api: 0.0.0.0:0\n{MOUNT}', good, WEIR_API_TOKEN='secret')
    says(f'isolate: x\n{MOUNT}', good, WEIR_ISOLATE='no')
    says('- a\n', 'FILE:1:1: expected "key: value" lines; this is a list', WEIR_LISTEN=':0')
    says(MOUNT, good, WEIR_MOUNTS='x', WEIR_HOSTS='x', WEIR_TLS='x', WEIR_LIMITS='x')
    for args in (['-m', f'/a={URI}'], ['-m', f'/a={URI}', '--config', '/dev/null']):
        out, err, status = proxy(*args, '--check-config', WEIR_LISTEN='x')
        assert (out, status) == ('', 2) and 'WEIR_LISTEN: listen: "x" is not' in err, err
    out, err, status = load(MOUNT, '--listen', '192.0.2.1:9', WEIR_LISTEN='127.0.0.1:0', WEIR_API='off')
    assert status == 1 and 'cannot listen on 192.0.2.1 port 9' in err, (out, err, status)
    assert 'WEIR_RECEIVE_TICK' in proxy('--help')[0]


@test
def merge_keys_work():
    """YAML's merge key takes over pairs, those of the mapping itself first; x-... keys are for them"""
    good = 'The configuration is good: 1 mount.'
    cam = f'mounts:\n  /cam:\n    upstream: {URI}\n'
    says(f'x-a: &a {{linger: 7s}}\n{cam}    <<: *a\n', good)
    wrong = f'is not a time from 0s to 24h; {WITH_UNIT}'
    says(f'x-a: &a {{linger: 7}}\n{cam}    <<: *a\n', f'FILE:1:18: linger: "7" {wrong}')
    says(f'x-a: &a {{linger: 7}}\n{cam}    <<: *a\n    linger: 7s\n', good)
    says(f'x-a: &a {{linger: 7}}\n{cam}    linger: 7s\n    <<: *a\n', good)
    says(f'x-a: &a {{linger: 7}}\nx-b: &b {{linger: 8}}\n{cam}    <<: [*b, *a]\n', f'FILE:2:18: linger: "8" {wrong}')
    says(f'x-a: &a {{linger: 7}}\nx-b: &b {{<<: *a}}\n{cam}    <<: *b\n', f'FILE:1:18: linger: "7" {wrong}')
    says(f'{cam}    <<: {{linger: 7}}\n', f'FILE:4:18: linger: "7" {wrong}')
    says(f'x-a: &a {{lingre: 7s}}\n{cam}    <<: *a\n',
         'FILE:1:10: /cam: unknown key "lingre"; the nearest known one is "linger"')
    says(f'{cam}    cache: &c {{time: 60s}}\n  /b: {{upstream: {URI}, cache: {{<<: *c, bytes: 1G}}}}\n',
         'The configuration is good: 2 mounts.')
    mapping = '<<: expected a mapping, or a list of mappings, such as *NAME'
    for text in 'x', '[x]', '~', '[[]]':
        says(f'{cam}    <<: {text}\n', f'FILE:4:9: {mapping}')
    says(f'{cam}    <<: {{a: 1}}\n    <<: {{b: 1}}\n', 'FILE:5:5: <<: appears twice; write <<: [*A, *B]')
    says(f'x-a: &a {{<<: *a}}\n{cam}', 'FILE:1:6: <<: this mapping takes over itself')
    says(f'x-a: &a {{b: {{<<: *a}}}}\n{cam}', good)
    says(f'{cam}    "<<": {{linger: 7s}}\n', 'FILE:4:5: /cam: unknown key "<<"; rtsp-proxy --help lists the known ones')
    says(f'y-a: 1\n{MOUNT}', 'FILE:1:1: unknown key "y-a"; rtsp-proxy --help lists the known ones')
    says(mount('x-a: 1'), 'FILE:4:5: /cam: unknown key "x-a"; rtsp-proxy --help lists the known ones')
    # Neither a long chain nor a large product takes long.
    chain = ''.join(f'  - &a{i} {{<<: *a{i - 1}, k{i}: 1}}\n' for i in range(1, 2000))
    says(f'x-a:\n  - &a0 {{k0: 1}}\n{chain}{MOUNT}', 'FILE:448:5: <<: the merge keys of this file add more than 100000 '
         'pairs')
    chain = ''.join(f'  - &a{i} {{<<: *a{i - 1}}}\n' for i in range(1, 20000))
    says(f'x-a:\n  - &a0 {{k0: 1}}\n{chain}{MOUNT}', good)


def shares(text, expected, *lines):
    """Checks what is said of a file with these keys and these mounts."""
    says(text + 'mounts:\n' + ''.join(f'  {line}\n' for line in lines), expected)


@test
def defaults_and_templates_work():
    """a mount has the keys of its template and of the defaults, unless it sets them; errors name their places"""
    one, two = (f'The configuration is good: {n}.' for n in ('1 mount', '2 mounts'))
    cam = f'/cam: {{upstream: {URI}}}'
    wrong = f'is not a time from 0s to 24h; {WITH_UNIT}'
    shares('defaults: {linger: 7s}\n', two, cam, cam.replace('cam', 'b'))
    shares(f'templates: {{a: {{upstream: {URI}}}}}\n', two, '/a: {template: a}', '/b: {template: a}')
    # One mistake in the defaults is one line, however many mounts have them.
    _, err, _ = load(f'defaults: {{linger: 7}}\nmounts:\n  {cam}\n  {cam.replace("cam", "b")}\n', '--check-config')
    assert err == f'rtsp-proxy: FILE:1:20: linger: "7" {wrong}\n', err
    _, err, _ = load(f'defaults: {{lingre: 7s}}\nmounts:\n  {cam}\n  {cam.replace("cam", "b")}\n', '--check-config')
    assert err == ('rtsp-proxy: FILE:1:12: defaults: unknown key "lingre"; the nearest known one is "linger"\n'), err
    shares('templates: {a: {linger: 7}}\n', f'FILE:1:25: linger: "7" {wrong}', cam)
    shares('templates: {a: {takeover: yes}}\n', 'FILE:1:27: takeover: nobody publishes to this mount; set upstream: publish',
           f'/cam: {{upstream: {URI}, template: a}}')
    shares('defaults: {slate: /no/such}\n', 'FILE:1:19: slate: no such file: /no/such', cam)
    shares('templates: {a: {slate: /no/such}}\n', one, cam)
    # The mount is first, then its template, then the defaults.
    shares('defaults: {slate: /no/d}\ntemplates: {a: {slate: /no/t}}\n', 'FILE:2:24: slate: no such file: /no/t',
           f'/cam: {{upstream: {URI}, template: a}}')
    shares('defaults: {slate: /no/d}\ntemplates: {a: {slate: /no/t}}\n', one,
           f'/cam: {{upstream: {URI}, template: a, slate: {CLIP}}}')
    # A null says that a mount has no such key, and so does another key for the same.
    for null in '~', 'null':
        shares('defaults: {slate: /no/d}\ntemplates: {a: {slate: /no/t}}\n', one,
               f'/cam: {{upstream: {URI}, template: a, slate: {null}}}')
        shares(f'defaults: {{slate: /no/d}}\ntemplates: {{a: {{slate: {CLIP}}}}}\n', one,
               f'/cam: &a {{upstream: {URI}, slate: {null}}}')
    shares('defaults: {slate: /no/d}\n', two, f'/cam: &a {{upstream: {URI}, slate: ~}}', '/b: *a')
    shares('defaults: {password-env: HOME}\n', one, f'/cam: {{upstream: {URI}, password: a}}')
    shares(f'templates: {{a: {{upstreams: [{URI}, rtsp://h/b]}}}}\n', one, f'/cam: {{upstream: {URI}, template: a}}')
    shares('', 'FILE:2:50: template: there is no template "a"; add it under templates: {NAME: {KEY: ...}}',
           f'/cam: {{upstream: {URI}, template: a}}')
    shares('templates: {b: {}, c: {}}\n', 'FILE:3:50: template: there is no template "a"; known: b, c',
           f'/cam: {{upstream: {URI}, template: a}}')
    shares('', 'FILE:2:50: template: expected the name of a template', f'/cam: {{upstream: {URI}, template: [a]}}')
    only = "only a mount names a template; YAML's merge key takes over the keys of another mapping: <<: *NAME"
    shares('templates: {a: {}, b: {template: a}}\n', f'FILE:1:34: template: {only}', cam)
    shares('templates: {a: {}}\ndefaults: {template: a}\n', f'FILE:2:22: template: {only}', cam)
    shares('templates: {a: {}, a: {}}\n', 'FILE:1:20: templates: "a" appears twice', cam)
    shares('templates: [a]\n', 'FILE:1:12: expected names with keys of a mount: {NAME: {linger: 30s}}; this is a list'
           .replace('expected', 'templates: expected'), cam)
    shares('templates: {a: b}\n', 'FILE:1:16: a: expected "key: value" lines', cam)
    shares('templates: {[a]: {}}\n', 'FILE:1:13: templates: expected names with keys of a mount: {NAME: {linger: 30s}}', cam)
    shares('defaults: 7s\n', 'FILE:1:11: defaults: expected keys of a mount: {linger: 30s}', cam)
    shares('defaults: {linger: 7s}\n', 'FILE:3:9: /cam: expected "key: value" lines', '/cam: x')


@test
def wrong_paths_with_variables_are_named():
    """a variable is a whole segment, and cannot change the scheme, the user, the port, or a host that is not listed"""
    one = 'The configuration is good: 1 mount.'
    place = 'FILE:2:3: '
    for path, upstream in (('/live/{key}', 'publish'), ('/{a}', 'rtsp://h/{a}?x={a}'), ('/x/{a*}', 'rtsp://h/{a}'),
                           ('/{a}/{b}', 'srt://h:1?streamid={a}/{b}'), ('/{a}', 'file:///no/such/{a}.mp4'), ('/{a}', 'rtsp://u:p@h/{a}')):
        shares('', one, f'{path}: {{upstream: "{upstream}"}}')
    shares('', one, '/{a}: {upstream: "rtsp://{a}/x", hosts: [h, 192.0.2.7]}')
    shares('', one, '/{a}: {upstream: "rtsp://{a}.example:5554/x", hosts: [h.example], max-instances: 3}')
    segment = 'is no variable; between two slashes, write {NAME} with A-Z a-z 0-9 - _ and nothing else'
    for path, wrong in (('/{a', f'"{{a" {segment}'), ('/a}', f'"a}}" {segment}'), ('/x{a}', f'"x{{a}}" {segment}'),
                        ('/{a}{b}', f'"{{a}}{{b}}" {segment}'), ('/{}', f'"{{}}" {segment}'), ('/{*}', f'"{{*}}" {segment}'),
                        ('/{a b}', f'"{{a b}}" {segment}'), ('/{a*}/b', '"{a*}" stands for all segments to the end; nothing follows it'),
                        ('/{a}/{a}', 'the variable {a} appears twice'), ('/{a}/', '"/x/" is not a valid path; write it like /cam'),
                        ('{a}', '"{a}" is not a valid path; write it like /{cam}')):
        shares('', f'{place}{path}: {wrong}', f"'{path}': {{upstream: publish}}")
    where = 'upstream: a variable may not stand in the scheme, the user, the password or the port'
    for uri in '{a}://h/x', 'rtsp://{a}@h/x', 'rtsp://u:{a}@h/x', 'rtsp://h:{a}/x', 'rtsp://u:p@h:5{a}/x':
        shares('', f'FILE:2:20: {where}', f'/{{a}}: {{upstream: "{uri}"}}')
    shares('', 'FILE:2:20: upstream: there is no variable {b} in the path /{a}', '/{a}: {upstream: "rtsp://h/{b}"}')
    shares('', 'FILE:2:20: upstream: a variable is written {NAME}', '/{a}: {upstream: "rtsp://h/{a"}')
    shares('', 'FILE:2:3: hosts: a variable is in the host of the upstream: list the whole hosts that it may lead to, such as '
           '[cam1.example.org]', '/{a}: {upstream: "rtsp://{a}/x"}')
    shares('', 'FILE:2:43: hosts: no upstream has a variable in its host', '/{a}: {upstream: "rtsp://h/{a}", hosts: [a]}')
    shares('', f'FILE:2:{len("  /a: {upstream: , max-instances: 3") + len(URI)}: max-instances: this is for a path with variables, such as /live/{{key}}',
           f'/a: {{upstream: {URI}, max-instances: 3}}')
    shares('', 'FILE:2:20: upstream: a pattern serves no folder; a folder serves many titles already',
           f'/{{a}}: {{upstream: "file://{os.path.dirname(CLIP)}/"}}')
    shares('listen: 127.0.0.1:7554\n', 'FILE:3:3: /{a}: a path with variables may not read from this proxy: it could read from itself',
           '/{a}: {upstream: "rtsp://127.0.0.1:7554/{a}x"}')
    shares('', 'FILE:3:3: /{a}: "/{a}" appears twice', '/{a}: {upstream: publish}', '/{a}: {upstream: publish}')


@test
def arguments_override_the_file():
    # --listen is checked after the file's own; if it is wrong, it is an error.
    assert load(MOUNT, '--listen', 'x')[1:] == (
        'rtsp-proxy: --listen: "x" is not ADDR:PORT; write it like 0.0.0.0:8554\n', 2)
    # No machine has 192.0.2.1: the address in the error shows which one the proxy used.
    out, err, status = load(f'listen: 127.0.0.1:0\n{MOUNT}', '--listen', '192.0.2.1:9')
    assert status == 1 and "cannot listen on 192.0.2.1 port 9" in err, (out, err, status)
    assert load(MOUNT, '--mount', f'/b={URI}', '--check-config')[0].endswith('2 mounts.\n')


@test
def wrong_mounts_are_named():
    for args, wrong in [
            (['x'], 'expected /PATH=URI, such as /cam=rtsp://192.0.2.7/stream'),
            ([f'a={URI}'], 'expected /PATH=URI, such as /cam=rtsp://192.0.2.7/stream'),
            (['rtsp://u:secret@h/s?x=1'], 'expected /PATH=URI, such as /cam=rtsp://192.0.2.7/stream'),
            ([f'/a/={URI}'], '/a/: "/a/" is not a valid path; write it like /cam'),
            (['/a=rtsp://'], f'/a: {BAD_URI}'),
            ([f'/a={URI}', f'/a={URI}'], '/a: "/a" appears twice')]:
        got = proxy(*[f'--mount={a}' for a in args])
        assert got == ('', f'rtsp-proxy: --mount: {wrong}\n', 2), (args, got)
    _, err, status = proxy('--mount=/a=rtsp://u:secret@h/x', '--check-config')
    assert status == 0 and 'warning: ps shows' in err and 'secret' not in err, err


@test
def without_arguments_it_prints_how_to_start():
    for args in ([], ['--listen', '127.0.0.1:0'], ['--check-config']):
        out, err, status = proxy(*args)
        assert status == 2 and not out and 'To start it:\n  rtsp-proxy --mount' in err, (out, err)


@test
def wrong_arguments_are_named():
    for args, wrong in [(['--bogus'], 'Unknown option --bogus; see rtsp-proxy --help'),
                        (['--listen'], 'Missing argument for --listen; see rtsp-proxy --help'),
                        (['-m', f'/a={URI}', 'stray'],
                         'unexpected argument "stray"; see rtsp-proxy --help')]:
        assert proxy(*args) == ('', f'rtsp-proxy: {wrong}\n', 2), args


@test
def version_and_help_are_printed():
    out, err, status = proxy('--version')
    assert status == 0 and not err and out.startswith('rtsp-proxy '), (out, err)
    out, err, status = proxy('--help')
    for part in '--check-config', '--help-gst', 'Examples:', 'upstream: URI', 'udp://ADDR:PORT':
        assert part in out, (part, out)
    assert status == 0 and not err, err


if __name__ == '__main__':
    run()

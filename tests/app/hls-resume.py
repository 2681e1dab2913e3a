# SPDX-License-Identifier: LGPL-2.1-or-later
"""Players over HLS that are silent for a while, as on a locked telephone, and go on with their own URLs."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from chromium import Chromium
from hlsweb import Web, check_live, film
from proxy import wait_until
from tap import run, test
from webserver import WebServer

SILENCE = 40 # s at most, in which a silent player's session ends: 10 s and three segments


def is_silent(proxy, readers=0):
    wait_until(lambda: len(proxy.get('/v1/readers')['readers']) == readers, SILENCE, 'the silent players have left')


def newest(text):
    return int(re.findall(r'^seg(\d+)\.mp4', text, re.M)[-1])


def date(text):
    return datetime.fromisoformat(re.findall(r'DATE-TIME:(.*)Z\n', text)[-1])


def asks_on(proxy, folder, before):
    """Goes on as a player of low latency does that has this playlist. Returns the next one."""
    status, _, body = proxy.fetch(f'{folder}/live.m3u8?_HLS_msn={newest(before) + 1}&_HLS_part=0&_HLS_skip=YES')
    assert status == 200, (status, body)
    return body.decode()


def check_next(proxy, folder, before, after):
    """Checks that a playlist follows one of the same session, with numbers that the player has not seen."""
    assert newest(after) > newest(before) and date(after) > date(before), (before, after)
    counts = [int(re.search(r'DISCONTINUITY-SEQUENCE:(\d+)', text)[1]) for text in (before, after)]
    part = [int(re.findall(r'part(\d+)\.mp4', text)[-1]) for text in (before, after)]
    assert counts[1] >= counts[0] and part[1] > part[0], (before, after)
    if '#EXT-X-MAP' in after:
        init = re.search(r'MAP:URI="(.*?)"', after)[1]
        assert proxy.fetch(f'{folder}/{init}')[2][4:8] == b'ftyp'
    status, _, body = proxy.fetch(f'{folder}/seg{newest(after)}.mp4')
    assert status == 200 and len(body) > 1000, (status, len(body))
    return counts


@test(timeout=120)
def a_silent_player_goes_on_with_its_own_urls():
    """a silent player goes on with its own URLs, when the stream has ended meanwhile, and again"""
    with Web(f'file://{film("aac", "aac")}') as proxy:
        names = [(*proxy.begin(), ''), (*proxy.begin('plain.m3u8'), '')]
        live, plain = names[0][0], names[1][0]
        last = [proxy.playlist(live), proxy.playlist(f'{live}-2'), proxy.playlist(plain, 'segments.m3u8')]
        for _ in range(2):
            is_silent(proxy)
            proxy.wait_for_line(r' mount /cam down: no readers', 10)
            # Neither begins it anew.
            assert proxy.fetch(f'{live}/seg{newest(last[0])}.mp4')[0] == 404
            assert proxy.fetch(f'{live}/live.m3u8', method='HEAD')[0] == 200
            is_silent(proxy)
            with ThreadPoolExecutor(3) as pool:
                asked = [pool.submit(asks_on, proxy, live, last[0]), pool.submit(asks_on, proxy, f'{live}-2', last[1]),
                         pool.submit(proxy.fetch, f'{plain}/segments.m3u8')]
                now = [asked[0].result(), asked[1].result(), asked[2].result()[2].decode()]
            for folder, before, after in zip((live, f'{live}-2', plain), last, now):
                assert '_HLS_' not in after
                counts = check_next(proxy, folder, before, after) if 'PART' in after else [0, 1]
                assert counts[1] > counts[0], counts
            assert newest(now[2]) > newest(last[2]), (now[2], last[2])
            check_live(proxy.playlist(live))
            assert sorted(each['transport'] for each in proxy.get('/v1/readers')['readers']) == ['HLS', 'HLS']
            last = now


@test(timeout=90)
def a_silent_player_comes_back_to_the_stream_that_others_watch():
    with Web() as proxy:
        folder, _ = proxy.begin()
        other, _ = proxy.begin()
        before = text = proxy.playlist(folder)
        while len(proxy.get('/v1/readers')['readers']) > 1:
            text = proxy.playlist(other, query=f'?_HLS_msn={newest(text) + 1}')
        after = asks_on(proxy, folder, before)
        counts = check_next(proxy, folder, before, after)
        # It is the same stream.
        assert counts[0] == counts[1] and newest(after) <= newest(proxy.playlist(other)) and '-MAP' not in after.split('seg', 1)[1]


@test(timeout=90)
def credentials_are_checked_again():
    good = {'a', 'b', 'c'}

    def answer(_path, asked):
        return (200 if asked['token'] in good or asked['password'] in good else 401), ''

    with WebServer(answer) as server, Web(**{'external-auth': {'url': server.base, 'exclude': ['api', 'metrics']}, 'basic-without-tls': 'yes'}) as proxy:
        password = {'Authorization': 'Basic eDpj'} # x:c
        folders = {token: proxy.begin(f'index.m3u8?token={token}')[0] for token in 'ab'}
        status, _, body = proxy.fetch('/hls/cam/index.m3u8', password)
        assert status == 200, body
        folders['c'] = '/hls/cam/' + body.decode().splitlines()[-1].rsplit('/', 1)[0]
        is_silent(proxy)
        good.remove('b')
        server.requests.clear()
        assert proxy.fetch(f'{folders["a"]}/live.m3u8')[0] == 200
        assert [each['token'] for _, each in server.requests] == ['a'], server.requests
        for token in 'b', 'c':
            status, headers, _ = proxy.fetch(f'{folders[token]}/live.m3u8')
            assert status == 401 and 'www-authenticate' in headers, (token, status, headers)
        assert proxy.fetch(f'{folders["c"]}/live.m3u8', password)[0] == 200
        assert len(proxy.get('/v1/readers')['readers']) == 2
        assert 'token' not in proxy.output(), proxy.output()


@test(timeout=90)
def a_session_does_not_come_back_that_has_been_closed_or_has_no_room():
    """a session that has been closed does not come back, nor one for which there is no room or no mount"""
    with Web(mount={'max-readers': 2}) as proxy:
        closed, _ = proxy.begin()
        reader = proxy.get('/v1/readers')['readers'][0]['id']
        silent, _ = proxy.begin()
        assert proxy.http('DELETE', f'/v1/readers/{reader}')[0] == 200
        is_silent(proxy, 0)
        status, _, body = proxy.fetch(f'{closed}/live.m3u8')
        assert status == 404 and b'the session is over' in body, (status, body)
        for wrong in f'{silent}-9/live.m3u8', f'{silent[:-1]}7/live.m3u8', f'{silent}-1x/live.m3u8':
            assert proxy.fetch(wrong)[0] == 404, wrong
        assert not proxy.get('/v1/readers')['readers']
        others = [proxy.begin()[0] for _ in range(2)]
        assert proxy.fetch(f'{silent}/live.m3u8')[0] == 503
        readers = proxy.get('/v1/readers')['readers']
        assert len(readers) == len(others), readers
        assert proxy.http('DELETE', f'/v1/readers/{readers[0]["id"]}')[0] == 200
        wait_until(lambda: proxy.fetch(f'{silent}/live.m3u8')[0] == 200, 10, 'there is room')
        is_silent(proxy)
        assert proxy.http('DELETE', '/v1/mounts/cam')[0] == 200
        assert proxy.fetch(f'{silent}/live.m3u8')[0] == 404


@test(timeout=120)
def a_page_that_was_asleep_plays_on():
    with Web() as proxy, Chromium() as browser:
        browser.open(f'{proxy.web}/watch/cam')
        browser.wait('video.currentTime > 2', 40, 'it plays')
        browser.run('window.before = true')
        at = browser.run('video.currentTime')
        with browser.asleep():
            is_silent(proxy)
            proxy.wait_for_line(r' mount /cam down: no readers', 10)
        # It is in the present, not where it was.
        browser.wait(f'video.currentTime > {at} + 15 && problem.hidden', 60, 'it plays on')
        assert browser.run('window.before') is True, 'the page was not loaded again'
        assert len(proxy.get('/v1/readers')['readers']) == 1


if __name__ == '__main__':
    run(at_once=4)

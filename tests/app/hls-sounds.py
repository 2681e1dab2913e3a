# SPDX-License-Identifier: LGPL-2.1-or-later
"""HLS of streams with several tracks of sound: a player chooses one, and gets its frames and times."""

import re
import subprocess
import tempfile
from contextlib import contextmanager

from chromium import Chromium
from hlsweb import TONES, Web, attributes, check_live, check_page, check_times, film, frames
from proc import Proc
from proxy import wait_until
from tap import SLOWER, run, test


def master(proxy, name='index.m3u8'):
    """Returns the attributes of the variant and of its renditions of sound, and the folder of a new session."""
    status, _, body = proxy.fetch(f'/hls/cam/{name}')
    assert status == 200, (status, body)
    lines = body.decode().splitlines()
    variant = [attributes(line) for line in lines if line.startswith('#EXT-X-STREAM-INF:')]
    assert len(variant) == 1, lines
    assert lines[-1].startswith('~'), lines
    sounds = [attributes(line) for line in lines if line.startswith('#EXT-X-MEDIA:')]
    assert all(each['TYPE'] == 'AUDIO' and each['GROUP-ID'] == variant[0]['AUDIO'] for each in sounds), lines
    assert len({each['NAME'] for each in sounds}) == len(sounds), sounds
    return variant[0], sounds, '/hls/cam/' + lines[-1].rsplit('/', 2)[0]


def check_frames(path, name, source=None):
    """Checks that FFmpeg, which gives renditions numbers of its own, gets all tracks of a file, in sync."""
    with Web(f'file://{path}') as proxy:
        got = frames(f'{proxy.web}/hls/cam/{name}', '-frames:v', '100', '-frames:a', '180')
        source = frames(source or path)
        got = {max(source, key=lambda one, times=times: len(source[one].keys() & times.keys())): times for times in got.values()}
        assert got.keys() == source.keys(), (got.keys(), source.keys())
        check_times(got, source, 60)


@test(timeout=120)
def ffmpeg_gets_the_frames_of_two_sounds():
    check_frames(film('aac', 'aac'), 'plain.m3u8')


@test(timeout=120)
def ffmpeg_gets_the_frames_of_three_sounds_of_a_transport_stream():
    # In a transport stream, frames have heads.
    check_frames(film('aac', 'aac', 'aac', form='ts'), 'index.m3u8', film('aac', 'aac', 'aac'))


@test(timeout=120)
def ffmpeg_gets_the_frames_of_sounds_of_two_codecs():
    # Not in Matroska: FFmpeg 7 writes a CodecDelay for AAC there, which matroskademux takes no notice of.
    check_frames(film('aac', 'libopus'), 'plain.m3u8')


@test(timeout=120)
def ffmpeg_gets_the_frames_of_sounds_without_video():
    path = film('aac', 'aac', video=False)
    with Web(f'file://{path}') as proxy:
        variant, sounds, _ = master(proxy)
        assert variant['CODECS'] == '"mp4a.40.2"' and ['URI' in each for each in sounds] == [False, True], (variant, sounds)
    check_frames(path, 'plain.m3u8')


@test(timeout=60)
def a_master_playlist_lists_the_sounds():
    """a master playlist lists the sounds with their languages, channels and a default"""
    for form in 'mp4', 'ts':
        with Web(f'file://{film("aac", "aac", "aac", form=form)}') as proxy:
            variant, sounds, folder = master(proxy)
            assert re.fullmatch(r'"avc1\.[0-9a-f]{6},mp4a\.40\.2"', variant['CODECS']), variant
            assert int(variant['BANDWIDTH']) >= int(variant['AVERAGE-BANDWIDTH']) > 50000, variant
            assert [each['LANGUAGE'] for each in sounds] == ['"de"', '"en"', '"en"'], sounds
            assert [each['CHANNELS'] for each in sounds] == ['"1"', '"2"', '"1"'], sounds
            assert [each['DEFAULT'] for each in sounds] == ['YES', 'NO', 'NO'], sounds
            # A player could not choose between the last two by their language.
            assert [each['AUTOSELECT'] for each in sounds] == ['YES', 'YES', 'NO'], sounds
            assert [each['URI'].split('/', 1)[1] for each in sounds] == [f'0-{i + 1}/live.m3u8"' for i in range(3)], sounds
            assert [each['URI'].split('/', 1)[1] for each in master(proxy, 'plain.m3u8')[1]] == [
                f'0-{i + 1}/segments.m3u8"' for i in range(3)]
            for wrong in '0-8', '0-99', '1-1', '0-x', '0-', '-1':
                status = proxy.fetch(f'{folder}/{wrong}/part0.mp4')[0]
                assert status == 404, (wrong, status)
            assert proxy.get('/v1/readers')['readers'][0].get('left-out') is None


@test(timeout=60)
def an_unknown_language_is_not_named():
    with Web(f'file://{film("aac", "aac", languages=("und", "und"))}') as proxy:
        _, sounds, _ = master(proxy)
        assert [each.get('LANGUAGE') for each in sounds] == [None, None], sounds
        assert [each['AUTOSELECT'] for each in sounds] == ['YES', 'NO'], sounds


def numbers(text):
    """Returns {segment: (date, duration)} of the whole segments of a playlist."""
    found = re.findall(r'DATE-TIME:(.*)\n(?:#EXT-X-PART:.*\n)*#EXTINF:(.*),\n(seg\d+)\.mp4', text)
    return {name: (date, duration) for date, duration, name in found}


@test(timeout=60)
def playlists_of_sound_keep_the_rules_and_the_numbers_of_the_pictures():
    """playlists of sound keep the rules, and have the segments, dates and parts of the pictures"""
    with Web(f'file://{film("aac", "aac")}') as proxy:
        _, _, folder = master(proxy)
        texts = [proxy.playlist(f'{folder}/{n}') for n in ('0', '0-1', '0-2')]
        kept = set()
        for _ in range(9):
            last = int(re.findall(r'^seg(\d+)\.mp4', texts[0], re.M)[-1])
            texts = [proxy.playlist(f'{folder}/{n}', query=f'?_HLS_msn={last + 2}&_HLS_part=1') for n in ('0', '0-1', '0-2')]
            kept |= {check_live(text) for text in texts}
            assert all('#EXT-X-INDEPENDENT-SEGMENTS' in text for text in texts)
            both = [set(numbers(text).items()) for text in texts]
            assert len(both[0] & both[1] & both[2]) >= len(both[0]) - 1, both
            parts = re.findall(r'part\d+', texts[0])
            assert len(set(parts) & set(re.findall(r'part\d+', texts[1]))) >= len(parts) - 2, texts
            for own, text in enumerate(texts):
                reports = re.findall(r'REPORT:URI="\.\./([\d-]+)/live.m3u8",LAST-MSN=(\d+)', text)
                assert [uri for uri, _ in reports] == [each for i, each in enumerate(('0', '0-1', '0-2')) if i != own], text
        assert len(kept) == 1 and len(both[0]) == 7, (kept, both)


@test(timeout=60)
def each_sound_has_its_bytes_once():
    """pictures are packaged once, without sound"""
    with Web(f'file://{film("aac", "aac")}') as proxy:
        _, _, folder = master(proxy, 'plain.m3u8')
        for n, kinds in ('0', ['video']), ('0-1', ['audio']), ('0-2', ['audio']):
            text = proxy.playlist(f'{folder}/{n}', 'segments.m3u8')
            with tempfile.NamedTemporaryFile(suffix='.mp4') as file:
                for each in re.search('MAP:URI="(.*?)"', text)[1], re.findall(r'seg\d+\.mp4', text)[-1]:
                    file.write(proxy.fetch(f'{folder}/{n}/{each}')[2])
                file.flush()
                said = subprocess.run(['ffprobe', '-v', 'error', '-show_entries', 'stream=codec_type', '-of', 'csv=p=0', file.name],
                                      capture_output=True, text=True, timeout=30 * SLOWER, check=True).stdout.split()
            assert said == kinds, (n, said)
        sent = [each for each in proxy.get('/v1/readers')['readers'] if each['transport'] == 'HLS']
        assert len(sent) == 1 and sent[0]['bytes'] > 20000, sent


# ---- sounds that do not come ----

@contextmanager
def publish(proxy, *words):
    """Publishes the pictures and the first sound of a film, and its second sound by `words` about its input."""
    path = film('aac', 'aac')
    with tempfile.NamedTemporaryFile(suffix='.mp4') as made:
        subprocess.run(['ffmpeg', '-y', '-v', 'error', '-i', path, *words, '-i', path, '-map', '0:v', '-map', '0:a:0', '-map', '1:a:1',
                        '-c', 'copy', made.name], check=True, timeout=60 * SLOWER)
        with Proc('ffmpeg', '-nostdin', '-v', 'error', '-re', '-i', made.name, '-map', '0', '-c', 'copy', '-max_interleave_delta', '1000',
                  '-f', 'rtsp', '-rtsp_transport', 'tcp', proxy.url()):
            yield


@test(timeout=60)
def a_sound_that_never_comes_is_not_listed():
    with Web('publish') as proxy, publish(proxy, '-itsoffset', '35'):
        proxy.wait_for_line(' mount /cam up')
        variant, sounds, folder = master(proxy)
        assert re.fullmatch(r'"avc1\.[0-9a-f]{6},mp4a\.40\.2"', variant['CODECS']), variant
        assert len(sounds) == 1 and sounds[0]['DEFAULT'] == 'YES', sounds
        assert check_live(proxy.playlist(f'{folder}/0')) == check_live(proxy.playlist(f'{folder}/0-1'))


@test(timeout=60)
def a_sound_that_begins_late_is_listed_when_it_comes():
    """a sound that begins late is listed when it comes, and interrupts nothing"""
    with Web('publish') as proxy, publish(proxy, '-itsoffset', '8'):
        proxy.wait_for_line(' mount /cam up')
        _, sounds, folder = master(proxy)
        assert len(sounds) == 1, sounds
        wait_until(lambda: len(master(proxy)[1]) == 2, 30, 'the second sound is listed')
        text = proxy.playlist(f'{folder}/0-2')
        # What was before it is not there.
        assert '#EXT-X-GAP' in text and '#EXT-X-MAP:URI="init0.mp4"' in text, text
        assert numbers(text).items() <= numbers(proxy.playlist(f'{folder}/0')).items(), text
        assert all('#EXT-X-DISCONTINUITY\n' not in proxy.playlist(f'{folder}/{n}') for n in ('0', '0-1', '0-2'))
        got = subprocess.run(['ffmpeg', '-v', 'error', '-i', f'{proxy.web}/hls/cam/plain.m3u8', '-map', '0:a:1', '-frames:a', '90', '-f',
                              'framemd5', '-'], capture_output=True, text=True, timeout=40 * SLOWER, check=False)
        assert len(re.findall(r'^0, ', got.stdout, re.M)) == 90, got


@test(timeout=60)
def a_sound_that_stops_holds_up_nothing():
    """the playlist of a sound that stops goes on with gaps, as do pictures and the other sound"""
    with Web('publish') as proxy, publish(proxy, '-t', '6'):
        proxy.wait_for_line(' mount /cam up')
        _, sounds, folder = master(proxy)
        assert len(sounds) == 2, sounds
        wait_until(lambda: proxy.playlist(f'{folder}/0-2').count('GAP=YES') > 5, 30, 'the sound stops')
        last = int(re.findall(r'^seg(\d+)\.mp4', proxy.playlist(f'{folder}/0'), re.M)[-1])
        texts = [proxy.playlist(f'{folder}/{n}', query=f'?_HLS_msn={last + 2}') for n in ('0', '0-1', '0-2')]
        assert ['#EXT-X-GAP\n' in text for text in texts] == [False, False, True], texts
        assert len(numbers(texts[0]).keys() & numbers(texts[2]).keys()) > 1, texts
        assert len({re.search(r'DISCONTINUITY-SEQUENCE:(\d+)', text)[1] for text in texts}) == 1, texts
        part = re.search(r'URI="(part\d+\.mp4)",GAP=YES', texts[2])[1]
        assert proxy.fetch(f'{folder}/0-2/{part}')[0] == 404
        assert check_live(proxy.playlist(f'{folder}/0')) == check_live(proxy.playlist(f'{folder}/0-2'))
        wait_until(lambda: len(master(proxy)[1]) == 1, 30, 'the sound is no longer listed')


# ---- the browser ----

HEARD = """(() => {
  if (!window.analyser) {
    const context = new AudioContext();
    window.analyser = context.createAnalyser();
    analyser.fftSize = 4096;
    context.createMediaElementSource(video).connect(analyser);
    video.muted = false;
  }
  const bins = new Uint8Array(analyser.frequencyBinCount);
  analyser.getByteFrequencyData(bins);
  const top = Math.max(...bins);
  return top > 100 ? bins.indexOf(top) * analyser.context.sampleRate / analyser.fftSize : 0;
})()"""


def hears(browser, tone):
    wait_until(lambda: abs(browser.run(HEARD) - tone) < 40, 30, f'a tone of {tone} Hz, not {browser.run(HEARD)} Hz')


def check_sounds(path, n, video=True):
    """Checks that the page plays the sounds of a film, one after another."""
    with Chromium() as browser, Web(f'file://{path}') as proxy:
        if video:
            check_page(proxy, browser)
        else:
            browser.open(f'{proxy.web}/watch/cam')
            browser.wait('video.currentTime > 0', 40, 'it plays')
        assert browser.run('[...sound.options].map((each) => each.text)') == [f'Sound {i + 1} ({each})' for i, each in zip(range(n), ('de', 'en', 'en'))]
        hears(browser, TONES[0])
        for i in [*range(n - 1, 0, -1), 0]:
            browser.run(f'sound.selectedIndex = {i}; sound.dispatchEvent(new Event("change"))')
            hears(browser, TONES[i])
            at = browser.run('video.currentTime')
            browser.wait(f'video.currentTime > {at} + 2', 30, 'it goes on')
            assert browser.run('sound.selectedIndex') == i
        assert browser.run('problem.hidden') is True
        assert len(proxy.get('/v1/readers')['readers']) == 1


@test(timeout=90)
def the_page_plays_each_of_three_sounds():
    check_sounds(film('aac', 'aac', 'aac', form='ts'), 3)


@test(timeout=90)
def the_page_plays_sounds_of_two_codecs():
    check_sounds(film('aac', 'libopus', form='mkv'), 2)


@test(timeout=90)
def the_page_plays_sounds_without_video():
    check_sounds(film('aac', 'aac', video=False), 2, video=False)


if __name__ == '__main__':
    run(at_once=4)

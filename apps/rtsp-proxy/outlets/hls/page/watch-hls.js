// SPDX-License-Identifier: LGPL-2.1-or-later
// Plays /hls/PATH/index.m3u8, with low latency where the playlist has parts.
'use strict';

const LACK_MS = 15000; // after which the session of the try before has ended
const STOPPED = 3; // target durations without media
const LATE = 0.05; // seconds
const AHEAD = 0.3; // seconds of media that stay buffered while the page catches up
const SPEED_MAX = 1.3;
const SLACK_STEP = 0.2; // seconds further from the live edge after each stall
const SLACK_MAX = 2;
const STEP_MS = 60000; // in which a step is taken back
const NAMES = [[/^(hvc1|hev1)/, 'H.265'], [/^avc[13]/, 'H.264'], [/^vp09/, 'VP9'], [/^av01/, 'AV1'],
  [/^mp4a/, 'AAC'], [/^opus/i, 'Opus']];

const source = '/hls' + path + '/index.m3u8' + location.search;
let hls = null;
let better = ''; // why the stream does not come by WebRTC
let slack = 0;
let retry = 0;
let fresh = 0; // when media has come last; 0: not yet

function nameOf(codec) {
  const found = NAMES.find(([pattern]) => pattern.test(codec));
  return found ? found[1] : codec;
}

function plays(type) {
  const media = window.ManagedMediaSource || window.MediaSource; // some iPhones have neither
  return media ? media.isTypeSupported(type) : video.canPlayType(type) !== '';
}

// Returns the names of the codecs that this browser does not play.
function missing(codecs) {
  return codecs.split(',').filter((codec) => {
    const kind = /^(mp4a|opus)/i.test(codec) ? 'audio' : 'video';
    return !plays(`${kind}/mp4; codecs="${codec}"`);
  }).map(nameOf);
}

// Says in words that no variant can be played. `variants` has the codecs of each.
function lack(variants) {
  const lacks = variants.map(missing);
  return lacks.length > 0 && lacks.every((each) => each.length > 0)
    ? `This browser has no ${lacks[0].join(' and no ')}.` : '';
}

// Says in words what went wrong with a request of hls.js.
function failure(data) {
  const request = data.networkDetails;
  if (data.type !== 'networkError' || !request || /TimeOut$/.test(data.details)) return '';
  if (request.status === 0) return 'The server cannot be reached.';
  if (!(request.status >= 400)) return '';
  const body = request.response || '';
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
  return data.details === 'manifestLoadError' ? refusal(request.status, text) : text;
}

// Says in words why a browser without hls.js cannot play.
async function explain() {
  let answer;
  try {
    answer = await fetch(source, { cache: 'no-store' });
  } catch (error) {
    return 'The server cannot be reached.';
  }
  const text = await answer.text();
  if (!answer.ok) return refusal(answer.status, text);
  return lack([...text.matchAll(/CODECS="([^"]+)"/g)].map((found) => found[1]));
}

function restart(reason, wait) {
  hls.destroy();
  fresh = 0;
  tell(reason);
  clearTimeout(retry);
  retry = setTimeout(load, wait);
}

function load() {
  if (!window.Hls || !Hls.isSupported()) {
    video.addEventListener('error', async () => tell(await explain() || 'This browser cannot play the stream.'));
    video.src = source;
    return;
  }
  let variants = [];
  // With a tolerance of a part or more, hls.js leaves out the last part of a segment when it is late.
  hls = new Hls({ lowLatencyMode: true, backBufferLength: 10, maxFragLookUpTolerance: 0.1 });
  hls.on(Hls.Events.MANIFEST_LOADED, (event, data) => {
    variants = data.levels.map((level) => level.attrs.CODECS).filter((codecs) => codecs);
  });
  hls.on(Hls.Events.ERROR, (event, data) => {
    const failed = failure(data);
    const lacks = data.fatal && !failed ? lack(variants) : '';
    if (data.fatal) restart(failed || lacks || `Playback failed: ${data.details}.`, lacks ? LACK_MS : RETRY_MS);
    else if (failed) tell(failed);
  });
  hls.on(Hls.Events.FRAG_BUFFERED, () => {
    fresh = performance.now();
    tell('');
  });
  hls.on(Hls.Events.AUDIO_TRACKS_UPDATED, (event, data) => {
    sound.replaceChildren(...data.audioTracks.map((track) => new Option(track.name)));
    sound.hidden = data.audioTracks.length < 2;
  });
  hls.on(Hls.Events.AUDIO_TRACK_SWITCHING, (event, data) => { sound.selectedIndex = data.id; });
  hls.loadSource(source);
  hls.attachMedia(video);
}

// hls.js catches up only while more than a second is buffered, which is more than the whole latency
// here.
function keepUp() {
  if (!hls || !hls.targetLatency || video.paused || video.buffered.length === 0) return;
  const ahead = video.buffered.end(video.buffered.length - 1) - video.currentTime;
  slack = Math.max(slack - SLACK_STEP * TICK_MS / STEP_MS, 0);
  const late = hls.latency - hls.targetLatency - slack;
  video.playbackRate = late > LATE && ahead > AHEAD ? Math.min(1 + late, SPEED_MAX) : 1;
}

// A page that was asleep, as on a locked telephone, is at a time that the playlist no longer has. hls.js
// does not leave it if a request has failed meanwhile.
function wake() {
  const details = hls && fresh && !video.paused && hls.latestLevelDetails;
  if (details && hls.liveSyncPosition && video.currentTime < details.fragmentStart) video.currentTime = hls.liveSyncPosition;
}

// The playlist of a stream that has stopped can be had, and just does not grow.
function watchStream() {
  const details = hls && fresh && !video.paused && hls.latestLevelDetails;
  if (details && performance.now() - fresh > STOPPED * details.targetduration * 1000) tell('The stream has stopped.');
}

// The time of a picture at the proxy is in the playlist, so this is the whole way to the screen if
// both clocks are right.
function showHls() {
  const date = hls && hls.playingDate;
  if (!date || video.paused) return;
  showState('HLS', better, (Date.now() - date.getTime()) / 1000);
}

// Loads hls.js, which is large, for a page that needs it.
function loadLibrary() {
  return new Promise((resolve) => {
    const script = document.createElement('script');
    script.addEventListener('load', resolve);
    script.addEventListener('error', resolve);
    script.src = '/watch/~/hls.min.js';
    document.head.append(script);
  });
}

// `why` says why the stream does not come by WebRTC.
async function playByHls(why) {
  better = why;
  video.srcObject = null;
  await loadLibrary();
  video.addEventListener('waiting', () => {
    if (video.currentTime > 0) slack = Math.min(slack + SLACK_STEP, SLACK_MAX);
  });
  sound.addEventListener('change', () => { hls.audioTrack = sound.selectedIndex; });
  for (const job of [wake, keepUp, showHls, watchStream]) setInterval(job, TICK_MS);
  load();
}

// SPDX-License-Identifier: LGPL-2.1-or-later
// Plays the stream of the page's URL: /watch/cam plays /hls/cam/index.m3u8.
'use strict';

const RETRY_MS = 3000;
const TICK_MS = 100;
const LATE = 0.05; // seconds
const AHEAD = 0.3; // seconds of media that stay buffered while the page catches up
const SPEED_MAX = 1.3;
const SLACK_STEP = 0.2; // seconds further from the live edge after each stall
const SLACK_MAX = 2;
const NAMES = [[/^(hvc1|hev1)/, 'H.265'], [/^avc[13]/, 'H.264'], [/^vp09/, 'VP9'], [/^av01/, 'AV1'],
  [/^mp4a/, 'AAC'], [/^opus/i, 'Opus']];
const STATUSES = {
  401: 'This stream needs a password or a token.',
  403: 'You may not watch this stream.',
  404: 'There is no such stream.',
};

const path = location.pathname.replace(/^\/watch/, '').replace(/\/$/, '');
const source = '/hls' + path + '/index.m3u8' + location.search;
const video = document.getElementById('video');
const problem = document.getElementById('problem');
const state = document.getElementById('state');
let hls = null;
let slack = 0;
let retry = 0;

function tell(text) {
  problem.textContent = text;
  problem.hidden = !text;
}

function nameOf(codec) {
  const found = NAMES.find(([pattern]) => pattern.test(codec));
  return found ? found[1] : codec;
}

// Returns the names of the codecs that this browser does not play.
function missing(codecs) {
  const media = window.ManagedMediaSource || window.MediaSource;
  return codecs.split(',').filter((codec) => {
    const kind = /^(mp4a|opus)/i.test(codec) ? 'audio' : 'video';
    return !media.isTypeSupported(`${kind}/mp4; codecs="${codec}"`);
  }).map(nameOf);
}

// Says in words why the playlist cannot be had, or cannot be played.
async function explain() {
  let answer;
  try {
    answer = await fetch(source, { cache: 'no-store' });
  } catch (error) {
    return 'The server cannot be reached.';
  }
  const text = await answer.text();
  if (!answer.ok) return STATUSES[answer.status] || text;
  const codecs = [...text.matchAll(/CODECS="([^"]+)"/g)].map((found) => missing(found[1]));
  const lacks = codecs.length > 0 && codecs.every((each) => each.length > 0) ? codecs[0] : [];
  return lacks.length > 0 ? `This browser has no ${lacks.join(' and no ')}.` : '';
}

async function restart(reason) {
  hls.destroy();
  tell(await explain() || reason);
  clearTimeout(retry);
  retry = setTimeout(start, RETRY_MS);
}

function start() {
  if (!window.Hls || !Hls.isSupported()) {
    video.addEventListener('error', async () => tell(await explain() || 'This browser cannot play the stream.'));
    video.src = source;
    return;
  }
  hls = new Hls({ lowLatencyMode: true, backBufferLength: 10 });
  hls.on(Hls.Events.ERROR, (event, data) => {
    if (data.fatal) restart(`Playback failed: ${data.details}.`);
  });
  hls.on(Hls.Events.FRAG_BUFFERED, () => tell(''));
  hls.loadSource(source);
  hls.attachMedia(video);
}

// hls.js catches up only while more than a second is buffered, which is more than the whole latency
// here.
function keepUp() {
  if (!hls || !hls.targetLatency || video.paused || video.buffered.length === 0) return;
  const ahead = video.buffered.end(video.buffered.length - 1) - video.currentTime;
  const late = hls.latency - hls.targetLatency - slack;
  video.playbackRate = late > LATE && ahead > AHEAD ? Math.min(1 + late, SPEED_MAX) : 1;
}

// The time of a picture at the proxy is in the playlist, so this is the whole way to the screen if
// both clocks are right.
function showState() {
  const date = hls && hls.playingDate;
  if (!date || video.paused) return;
  const level = hls.levels[hls.currentLevel] || {};
  const size = level.height ? `, ${level.width}×${level.height}` : '';
  const latency = (Date.now() - date.getTime()) / 1000;
  state.textContent = `Latency ${latency.toFixed(2)} s${size}`;
  state.dataset.latency = latency.toFixed(3);
}

document.getElementById('name').textContent = decodeURIComponent(path);
document.title = decodeURIComponent(path);
video.addEventListener('waiting', () => {
  if (video.currentTime > 0) slack = Math.min(slack + SLACK_STEP, SLACK_MAX);
});
setInterval(keepUp, TICK_MS);
setInterval(showState, TICK_MS);
start();

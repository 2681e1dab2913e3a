// SPDX-License-Identifier: LGPL-2.1-or-later
// Plays the stream of the page's URL, such as /watch/cam: by WebRTC (watch-webrtc.js) where the server
// and the browser can, else by HLS (watch-hls.js).
'use strict';

const TICK_MS = 100;
const STATUSES = {
  401: 'This stream needs a password or a token.',
  403: 'You may not watch this stream.',
  404: 'There is no such stream.',
};

const sound = document.getElementById('sound');
const unmute = document.getElementById('unmute');

// Says in words why a stream cannot be had.
function refusal(status, text) {
  return STATUSES[status] || text;
}

// Shows by which way the stream comes, why by no better one, and how late in seconds; NaN: unknown.
function showState(way, why, latency) {
  const size = video.videoHeight ? `, ${video.videoWidth}×${video.videoHeight}` : '';
  const late = latency >= 0 ? `, latency ${latency.toFixed(2)} s` : '';
  state.textContent = `${way}${why ? ` (${why})` : ''}${late}${size}`;
  state.dataset.way = way;
  state.dataset.latency = latency.toFixed(3);
}

// Browsers start a page's video by itself only without sound.
function offerSound() {
  unmute.hidden = !video.muted || video.paused;
}

unmute.addEventListener('click', () => { video.muted = false; });
for (const event of ['volumechange', 'play', 'pause']) video.addEventListener(event, offerSound);
// All scripts are loaded.
document.addEventListener('DOMContentLoaded', async () => {
  playByHls(await playByWebRtc().catch((error) => `WebRTC fails: ${error.message}`));
});

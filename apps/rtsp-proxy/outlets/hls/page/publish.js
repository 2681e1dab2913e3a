// SPDX-License-Identifier: LGPL-2.1-or-later
// Publishes the camera or the screen to the stream of the page's URL, such as /publish/cam, by
// /PATH/whip (WHIP, RFC 9725).
'use strict';

const TICK_MS = 1000;
const PICTURE = { width: { ideal: 1280 }, height: { ideal: 720 } };
// The server takes all, or the first one.
const LAYERS = [{ rid: 'h' }, { rid: 'm', scaleResolutionDownBy: 2 }, { rid: 'l', scaleResolutionDownBy: 4 }];
const REFUSALS = {
  401: 'To publish here you need a password or a token.',
  403: 'You may not publish here.',
  404: 'Nobody can publish here.',
};
const BUSY = [409, 503]; // another attempt may do
const INSECURE = 'Browsers give a camera or a screen only to pages over HTTPS, and to those of the machine itself '
  + '(localhost). Open this page by a URL that begins with https://.';

const endpoint = path + '/whip' + location.search;
const camera = document.getElementById('camera');
const screenButton = document.getElementById('screen');
const stopButton = document.getElementById('stop');

// What is published: its `stream`, its `session` of the server, whether it was `published` at any time, and
// the `pause` in ms before the next attempt. undefined: nothing.
let job;

function showButtons(disabled) {
  stopButton.hidden = !job;
  camera.disabled = screenButton.disabled = disabled;
}

function showState(text) {
  state.textContent = text;
}

// ---- camera and screen ----

// Says in words why the browser gives no camera or screen.
function lack(error, what) {
  switch (error.name) {
    case 'NotAllowedError': return `You did not allow this page to use the ${what}, or the browser or the system does not.`;
    case 'NotFoundError': return `There is no ${what}.`;
    case 'NotReadableError': return `The ${what} cannot be used. Another program may use it.`;
    default: return `The ${what} cannot be used: ${error.message}`;
  }
}

async function openCamera() {
  const { mediaDevices } = navigator;

  try {
    return await mediaDevices.getUserMedia({ video: PICTURE, audio: true });
  } catch (error) {
    if (error.name !== 'NotFoundError') throw error;
    return mediaDevices.getUserMedia({ video: PICTURE }); // there is no microphone
  }
}

async function openScreen() {
  const stream = await navigator.mediaDevices.getDisplayMedia({ video: true, audio: true });

  for (const track of stream.getVideoTracks()) track.contentHint = 'detail';
  return stream;
}

// ---- publishing ----

function stop(why) {
  if (!job) return;
  for (const track of job.stream.getTracks()) track.stop();
  if (job.session) leave(job.session);
  job = undefined;
  video.srcObject = null;
  tell(why);
  showState('Not publishing');
  showButtons(false);
}

// The server says that it ends a session by the end of DTLS. A line that breaks ends without a word.
function isEnded(peer) {
  return peer.getSenders().some(({ transport }) => transport && transport.state === 'closed');
}

function isOpen(peer) {
  return ['connected', 'disconnected'].includes(peer.connectionState) && !isEnded(peer);
}

// Shows what leaves, until nothing can leave any more.
async function follow(own, peer) {
  let before = 0;

  while (job === own && isOpen(peer)) {
    const all = [...(await peer.getStats()).values()].filter((each) => each.type === 'outbound-rtp');
    const bytes = all.reduce((sum, each) => sum + each.bytesSent, 0);
    const sizes = all.filter((each) => each.kind === 'video' && each.frameWidth && each.framesPerSecond)
      .map(({ frameWidth: width, frameHeight: height }) => `, ${width}×${height}`).join('');

    if (job !== own) return;
    showState(`Publishing${sizes}, ${((bytes - before) * 8 / 1000 / TICK_MS).toFixed(1)} Mb/s`);
    before = bytes;
    await new Promise((resolve) => { setTimeout(resolve, TICK_MS); });
  }
}

// Publishes over a session that the server has made, until it ends.
async function send(own, peer) {
  if (!await connected(peer)) {
    tell('WebRTC finds no way through the network.');
    return;
  }
  own.published = true;
  own.pause = RETRY_MS;
  tell('');
  await follow(own, peer);
  if (job !== own) return;
  if (isEnded(peer)) stop('The server has ended this: another one publishes now, or somebody closed it.');
  else tell('The connection has broken.');
}

// Says why the server has made no session. Returns the ms that it asks to pause for.
function refused(own, answer) {
  if (!answer) {
    tell('The server cannot be reached.');
    return 0;
  }
  const text = REFUSALS[answer.status] ? `${REFUSALS[answer.status]} (${answer.text})` : answer.text;

  if (own.published && BUSY.includes(answer.status)) tell(text);
  else stop(text);
  return answer.pause;
}

// Makes one session, and publishes until it ends. Returns the ms that the server asks to pause for; 0: none.
async function attempt(own) {
  const session = { peer: new RTCPeerConnection() };
  let pause = 0;

  own.session = session;
  for (const track of own.stream.getTracks()) {
    session.peer.addTransceiver(track, { direction: 'sendonly',
      streams: [own.stream],
      sendEncodings: track.kind === 'video' ? LAYERS : [{}] });
  }
  try {
    const answer = await offer(session, endpoint);

    if (job === own && session.url) await send(own, session.peer);
    else if (job === own) pause = refused(own, answer);
  } finally {
    leave(session);
  }
  return pause;
}

// Publishes until that is of no use any more. Pauses grow as those of watch-webrtc.js.
async function publish(own) {
  while (job === own) {
    showState('Connecting');
    const asked = await attempt(own);

    if (job !== own) return;
    showState('Not publishing; the next attempt follows');
    await new Promise((resolve) => { setTimeout(resolve, asked || own.pause); });
    own.pause = Math.min(2 * own.pause, PAUSE_MAX_MS);
  }
}

async function start(open, what) {
  let stream;

  tell('');
  showButtons(true);
  try {
    stream = await open();
  } catch (error) {
    tell(lack(error, what));
    showButtons(false);
    return;
  }
  const own = { stream, published: false, pause: RETRY_MS };

  job = own;
  for (const track of stream.getVideoTracks()) {
    track.addEventListener('ended', () => { if (job === own) stop(`The ${what} has ended.`); });
  }
  video.srcObject = stream;
  showButtons(true);
  try {
    await publish(own);
  } catch (error) {
    if (job === own) stop(`WebRTC fails: ${error.message}`);
  }
}

camera.addEventListener('click', () => start(openCamera, 'camera'));
screenButton.addEventListener('click', () => start(openScreen, 'screen'));
stopButton.addEventListener('click', () => stop(''));
window.addEventListener('pagehide', () => stop(''));
if (!window.isSecureContext || !navigator.mediaDevices) {
  tell(window.isSecureContext ? 'This browser gives no camera to pages.' : INSECURE);
  showButtons(true);
} else {
  // Telephones have none.
  screenButton.hidden = !navigator.mediaDevices.getDisplayMedia;
}

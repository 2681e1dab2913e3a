// SPDX-License-Identifier: LGPL-2.1-or-later
// Plays /PATH/whep (WHEP, draft-ietf-wish-whep).
'use strict';

const CONNECT_MS = 8000;
const MISSING_MS = 4000; // without a packet, after which a new connection is tried
const GATHER_MS = 1000;
const RETRY_MAX_MS = 30000;
const NTP_MS = 2208988800000; // from 1900 to 1970

const endpoint = path + '/whep' + location.search;

// Waits until all local candidates are known; the server makes the connection with the first that works.
function gathered(peer) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, GATHER_MS);
    peer.addEventListener('icegatheringstatechange', () => {
      if (peer.iceGatheringState === 'complete') {
        clearTimeout(timer);
        resolve();
      }
    });
  });
}

// Reports whether the connection is made in time.
function connected(peer) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), CONNECT_MS);
    peer.addEventListener('connectionstatechange', () => {
      if (peer.connectionState === 'connected' || peer.connectionState === 'failed') {
        clearTimeout(timer);
        resolve(peer.connectionState === 'connected');
      }
    });
  });
}

function leave(session) {
  session.peer.close();
  if (session.url) fetch(session.url, { method: 'DELETE', keepalive: true }).catch(() => {});
}

// Makes a session. Returns it with `url` set; with `why` set if another way is to be tried; or with
// `wait` set to the ms after which this one is.
async function join() {
  const session = { peer: new RTCPeerConnection() };
  const { peer } = session;
  const stream = new MediaStream();

  for (const kind of ['video', 'audio']) peer.addTransceiver(kind, { direction: 'recvonly' });
  peer.addEventListener('track', ({ track, receiver }) => {
    receiver.playoutDelayHint = 0; // one clock, and no more delay than the line needs
    stream.addTrack(track);
    video.srcObject = stream;
  });
  await peer.setLocalDescription();
  await gathered(peer);
  let answer;
  try {
    answer = await fetch(endpoint, {
      method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body: peer.localDescription.sdp,
    });
  } catch (error) {
    tell('The server cannot be reached.');
    return { ...session, wait: RETRY_MS };
  }
  const text = await answer.text();
  if ([404, 405, 501].includes(answer.status)) return { ...session, why: '' };
  if (answer.status === 406) return { ...session, why: text.trim() };
  if (answer.status !== 201) {
    tell(refusal(answer.status, text.trim()));
    return { ...session, wait: (Number(answer.headers.get('Retry-After')) * 1000) || RETRY_MS };
  }
  session.url = new URL(answer.headers.get('Location'), location.href).href;
  await peer.setRemoteDescription({ type: 'answer', sdp: text });
  return session;
}

// Returns the statistics of what arrives.
async function arrived(peer) {
  const all = [...(await peer.getStats()).values()].filter((each) => each.type === 'inbound-rtp');
  return {
    packets: all.reduce((sum, each) => sum + each.packetsReceived, 0),
    picture: all.find((each) => each.kind === 'video') || all[0],
  };
}

// The server's reports say when it had the picture that is shown, so this is the whole way to the screen
// if both clocks are right. Chromium knows it only where there is sound as well.
function showWebRtc({ estimatedPlayoutTimestamp: shown }) {
  if (!video.paused) showState('WebRTC', '', shown > 0 ? Math.max(0, Date.now() + NTP_MS - shown) / 1000 : NaN);
}

// Returns when nothing comes any more.
async function follow(peer) {
  let packets = 0, last = performance.now();

  while (peer.connectionState === 'connected' || peer.connectionState === 'disconnected') {
    await new Promise((resolve) => { setTimeout(resolve, TICK_MS); });
    const now = performance.now(), stats = await arrived(peer);

    if (stats.packets > packets) {
      tell('');
      [packets, last] = [stats.packets, now];
    } else if (now - last > MISSING_MS) {
      tell('The stream has stopped.');
      if (peer.connectionState !== 'connected') return;
    }
    if (stats.picture) showWebRtc(stats.picture);
  }
}

// Plays until another way is to be tried, and returns why, in words; '' if the server has none.
async function playByWebRtc() {
  let wait = RETRY_MS;

  if (!window.RTCPeerConnection) return 'this browser has no WebRTC';
  for (;;) {
    const session = await join();

    if (session.why !== undefined) {
      leave(session);
      return session.why;
    }
    if (session.url) {
      if (!await connected(session.peer)) {
        leave(session);
        return 'WebRTC finds no way through the network';
      }
      window.onpagehide = () => leave(session);
      wait = RETRY_MS;
      await follow(session.peer);
    }
    leave(session);
    await new Promise((resolve) => { setTimeout(resolve, session.wait || wait); });
    wait = Math.min(2 * wait, RETRY_MAX_MS);
  }
}

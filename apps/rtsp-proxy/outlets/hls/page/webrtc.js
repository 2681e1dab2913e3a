// SPDX-License-Identifier: LGPL-2.1-or-later
// Sessions of WHEP (draft-ietf-wish-whep) and WHIP (RFC 9725): objects with a `peer` and, once the server
// has one, its `url`.
'use strict';

const CONNECT_MS = 8000;
const GATHER_MS = 1000;
const PAUSE_MAX_MS = 30000;

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
  session.url = undefined;
}

// Offers what the peer has to an endpoint. The session gets its `url` if the server takes the offer. Returns
// the server's answer, with the ms that it asks to pause for; undefined: it cannot be reached.
async function offer(session, endpoint) {
  const { peer } = session;

  await peer.setLocalDescription();
  await gathered(peer);
  let answer;
  let text;
  try {
    answer = await fetch(endpoint, {
      method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body: peer.localDescription.sdp,
    });
    text = await answer.text();
  } catch (error) {
    return undefined;
  }
  if (answer.status === 201) {
    session.url = new URL(answer.headers.get('Location'), location.href).href;
    await peer.setRemoteDescription({ type: 'answer', sdp: text });
  }
  return { status: answer.status, text: text.trim(), pause: Number(answer.headers.get('Retry-After')) * 1000 };
}

// SPDX-License-Identifier: LGPL-2.1-or-later
// Plays /PATH/whep (WHEP, draft-ietf-wish-whep).
'use strict';

const MISSING_MS = 4000; // without a packet, after which a new connection is tried
const NTP_MS = 2208988800000; // from 1900 to 1970

const endpoint = path + '/whep' + location.search;

// Makes a session of the server. Sets its `url`; or `why`, if another way is to be tried; or, if this
// way is, `pause`, the ms that the server asks for, 0: none.
async function join(session) {
  const { peer } = session;
  const stream = new MediaStream();

  for (const kind of ['video', 'audio']) peer.addTransceiver(kind, { direction: 'recvonly' });
  peer.addEventListener('track', ({ track, receiver }) => {
    receiver.playoutDelayHint = 0; // one clock, and no more delay than the line needs
    stream.addTrack(track);
    video.srcObject = stream;
  });
  const answer = await offer(session, endpoint);
  if (session.url) return;
  if (!answer) {
    tell('The server cannot be reached.');
  } else if ([404, 405, 501].includes(answer.status)) {
    session.why = '';
  } else if (answer.status === 406) {
    session.why = answer.text;
  } else {
    tell(refusal(answer.status, answer.text));
    session.pause = answer.pause;
  }
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

// Plays until another way is to be tried, and returns why, in words; '' if the server has none. Between
// two attempts it pauses for as long as the server asks; else for 3 s, after each attempt in a row that
// fails twice as long as before, up to 30 s; after a stream that was seen, for 3 s again.
async function playByWebRtc() {
  let pause = RETRY_MS;

  if (!window.RTCPeerConnection) return 'this browser has no WebRTC';
  for (;;) {
    const session = { peer: new RTCPeerConnection() };

    try {
      await join(session);
      if (session.why !== undefined) return session.why;
      if (session.url) {
        if (!await connected(session.peer)) return 'WebRTC finds no way through the network';
        window.onpagehide = () => leave(session);
        pause = RETRY_MS;
        await follow(session.peer);
      }
    } finally {
      leave(session);
    }
    await new Promise((resolve) => { setTimeout(resolve, session.pause || pause); });
    pause = Math.min(2 * pause, PAUSE_MAX_MS);
  }
}

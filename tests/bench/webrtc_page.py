# SPDX-License-Identifier: LGPL-2.1-or-later
"""Looks at a page that plays over WebRTC in Chromium, whichever server's it is."""

# Runs before the page's own scripts: notes the connections that the page makes, when it posts its
# offer, and when the first picture is shown.
HOOK = '''(() => {
  const Connection = window.RTCPeerConnection, get = window.fetch;
  window.connections = [];
  window.RTCPeerConnection = class extends Connection {
    constructor(...words) { super(...words); window.connections.push(this); }
  };
  window.fetch = (url, options) => {
    if (options && options.method === 'POST' && !window.posted) window.posted = performance.now();
    return get(url, options);
  };
  const look = setInterval(() => {
    const video = document.querySelector('video');
    if (!video) return;
    clearInterval(look);
    video.requestVideoFrameCallback(() => { window.shown = performance.now(); });
  }, 1);
})()'''

VIDEO = '''(async () => {
  for (const connection of window.connections)
    for (const each of (await connection.getStats()).values())
      if (each.type === 'inbound-rtp' && each.kind === 'video') return JSON.parse(JSON.stringify(each));
})()'''

START = 40  # s


def open_page(browser, url):
    """Opens a page, and waits for its first picture. Returns the ms from its offer to that."""
    browser.run('window.shown = 0')  # of the page before
    browser.open(url)
    return browser.wait('window.shown && window.shown - window.posted', START, 'a picture')


def look(browser):
    """Has all pages that come noted."""
    browser.call('Page.addScriptToEvaluateOnNewDocument', source=HOOK)


def video(browser):
    """Returns what getStats() says of the video that comes."""
    return browser.run(VIDEO)

// SPDX-License-Identifier: LGPL-2.1-or-later
// What the pages of a stream share, such as /watch/cam and /publish/cam.
'use strict';

const RETRY_MS = 3000;

const path = location.pathname.replace(/^\/(watch|publish)/, '').replace(/\/$/, '');
const video = document.getElementById('video');
const problem = document.getElementById('problem');
const state = document.getElementById('state');

function tell(text) {
  problem.textContent = text;
  problem.hidden = !text;
}

document.getElementById('name').textContent = decodeURIComponent(path);
document.title = decodeURIComponent(path);

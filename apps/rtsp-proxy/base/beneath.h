// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Files of a folder, and nothing else, whatever a path says.

// Opens a plain file for reading by its path in `folder`. Links are followed as long as they stay
// within, relative ones only. Anything that is no plain file is not even opened, so that a FIFO or
// a device notices nothing. Returns a descriptor, or -1 with errno: EXDEV leads out of the folder.
int beneath_open (const char *folder, const char *path);

// The same without openat2(), which may be missing: then no link is followed at all.
int beneath_walk (int folder, const char *path);

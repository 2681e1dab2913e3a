// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Opens files inside a folder by paths that are not trusted: no path leads out of the folder.

// Opens the regular file at `path`, relative to `folder`, for reading. Follows relative symbolic
// links that stay inside the folder. Does not open a FIFO, a device or a folder, so opening has no
// side effects. Returns a file descriptor that the caller owns, or -1 with errno (EXDEV: the path
// leads out of the folder).
int beneath_open (const char *folder, const char *path);

// Finds `path` below the open folder `folder` without openat2(), which old kernels lack, and
// without following links. Returns an O_PATH file descriptor that the caller owns, or -1 with
// errno.
int beneath_walk (int folder, const char *path);

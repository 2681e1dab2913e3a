// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Opens files inside a folder by paths that are not trusted: no path leads out of the folder.

// Opens the regular file at `path`, relative to `folder`, for reading. A symbolic link must be
// relative, and lead to something in or below the folder in which the link lies: then a permission
// for a folder is one for what is in it. Does not open a FIFO, a device or a folder, so opening has
// no side effects. Returns a file descriptor that the caller owns, or -1 with errno (EXDEV: a link
// or the path leads out of a folder).
int beneath_open (const char *folder, const char *path);

// The same below an open folder. The folder stays the caller's.
int beneath_open_at (int folder, const char *path);

// Opens `path` below the open folder `folder`, of any kind and with the flags of open(), to which
// O_CLOEXEC is added. Symbolic links may lead anywhere below the folder; without openat2(), which
// old kernels lack, they are not followed. Returns a file descriptor that the caller owns, or -1
// with errno (EXDEV: a link or the path leads out of the folder).
int beneath_open_any (int folder, const char *path, int flags);

// Finds `path` below the open folder `folder` without openat2(), which old kernels lack, and
// without following links. Returns an O_PATH file descriptor that the caller owns, or -1 with
// errno.
int beneath_walk (int folder, const char *path);

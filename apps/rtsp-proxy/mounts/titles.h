// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The titles of a mount: files of a store. Each title is opened for one reader and has its own read
// position. An outlet provides the functions that turn a file into media. Opening and seeking run
// in worker threads, so that no request blocks a thread. Reference counted; call from any thread.

#include <glib-object.h>

#include "stores/store.h"

typedef struct _Titles Titles;
typedef struct _Title Title;

// The functions of an outlet that serves titles. The media is an object that the outlet makes.
typedef struct {
  // Returns media (transfer full) for the open file `fd`. Takes ownership of `fd`. `label` is the
  // title's name in the log. Runs in a worker thread.
  GObject *(*make) (int fd, const gchar *label);
  // Reads the file until its tracks are known, which may block. Returns FALSE and an error of the
  // domain G_IO_ERROR if the file cannot be served. Runs in a worker thread.
  gboolean (*open) (GObject *media, GError **error);
  // Releases the hold on the media that a successful open() took.
  void (*release) (GObject *media);
  // Makes an open() or a TitleRunFunc that is working on the media fail soon.
  void (*give_up) (GObject *media);
  // Lets clients request the media by `path`, until withdraw(). The paths of titles are unique.
  void (*publish) (GObject *media, const gchar *path, GObject *data);
  void (*withdraw) (const gchar *path, GObject *data);
} TitleOutlet;

// Returns the titles of the mount at `mount_path`; none can be opened before titles_configure().
// `outlet` must stay valid. Keeps a reference to `data`, which is passed to the outlet's functions.
Titles *titles_new (const gchar *mount_path, const TitleOutlet *outlet, GObject *data);
Titles *titles_ref (Titles *self);
void titles_unref (Titles *self);

// Sets the store, the limit of titles that are open at once, and the time limit in ms for opening
// and seeking. Takes ownership of `store`; with NULL, no title can be opened. Open titles stay
// open.
void titles_configure (Titles *self, Store *store, guint max, guint start_timeout_ms);

// Returns the store, or NULL if no title can be opened. (transfer full)
Store *titles_dup_store (Titles *self);

// Unescapes `name`, the part of a URL after the mount's path and a slash. Returns NULL if no title
// can have that name. (transfer full)
gchar *title_decode_name (const gchar *escaped);

// Starts to open a title. `name` is the part of a URL after the mount's path and a slash, still
// escaped. Returns NULL and sets `error` if the name is not valid or there is no store
// (G_IO_ERROR_NOT_FOUND), or if the limit of open titles is reached or few files are left
// (G_IO_ERROR_BUSY).
Title *titles_open (Titles *self, const gchar *name, GError **error);
Title *title_ref (Title *self);
void title_unref (Title *self);

// Gives up the work in progress on the title, and drops a reference.
void title_leave (Title *self);

// Tells that media plays. If it is a title's, it has opened all its files, which were promised
// until now.
void titles_note_playing (GObject *media);

// Reports whether the title belongs to `titles` and has the name `name`, which is still escaped.
// The last part of the title's path counts as its name, too.
gboolean title_is (Title *self, Titles *titles, const gchar *name);

typedef enum { TITLE_OPENING, TITLE_READY, TITLE_FAILED } TitleState;

// Returns the state, and sets `error`, which may be NULL, if opening has failed:
// G_IO_ERROR_NOT_SUPPORTED if the file cannot be served.
TitleState title_ask (Title *self, GError **error);

typedef gint (*TitleRunFunc) (gpointer data);

// Runs `run` in a worker thread, then frees `data` with `free_data`. When the time limit is over,
// `media` is given up. Returns FALSE, and does not run it, if other work on the title is still in
// progress.
gboolean title_run (
    Title *self, GObject *media, TitleRunFunc run, gpointer data, GDestroyNotify free_data);

// Sets `result` to what the last `run` has returned. Returns FALSE if work is in progress.
gboolean title_get_result (Title *self, gint *result);

// Reports whether work, that is open() or a `run`, is in progress.
gboolean title_works (Title *self);

// Calls `done` once: when the work in progress has ended or is given up, or at once if there is
// none. Only one caller may wait at a time.
typedef void (*TitleDoneFunc) (gpointer data);
void title_wait (Title *self, TitleDoneFunc done, gpointer data);

// Releases the title's own hold on its media: the outlet holds it from now on.
void title_hand_over (Title *self);

const gchar *title_get_path (Title *self); // under which the outlet publishes it: "/films/=title7"
const gchar *title_get_mount_path (Title *self);
const gchar *title_get_label (Title *self); // for the log: "/films/a/b.mp4"

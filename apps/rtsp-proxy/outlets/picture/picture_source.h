// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The still pictures of presentations. While somebody asks for those of a presentation, its newest
// keyframe is kept; it is decoded when somebody asks. Call from any thread, unless the function
// says otherwise.

#include "mounts/presentation.h"

typedef struct _PictureSources PictureSources;
typedef struct _PictureSource PictureSource;

PictureSources *picture_sources_new (void);

// Ends the pictures of a presentation. Main thread only.
void picture_sources_close (PictureSources *self, Presentation *presentation);

// Call when nobody uses a source. Main thread only.
void picture_sources_free (PictureSources *self);

// Joins the source of a presentation, or makes it, which uses the presentation. `wake` is called
// when the answer of picture_source_ask() may be another, until picture_source_leave() with the
// same `data`; it must not block.
PictureSource *picture_sources_join (
    PictureSources *self, Presentation *presentation, void (*wake) (gpointer data), gpointer data);
void picture_source_leave (PictureSource *self, gpointer data);

typedef struct {
  GBytes *jpeg;   // NULL: none
  gchar *etag;    // with a picture
  gint64 taken_s; // when the keyframe came, in s since the epoch
  gchar *problem; // without a picture: why there is none; NULL: it has not come yet
  gboolean has_no_video;
} PictureAnswer;

// Asks for a picture that is `width` pixels wide at most; 0: of its own width. The presentation is
// ready. Free the contents of the answer with picture_answer_clear().
void picture_source_ask (PictureSource *self, guint width, PictureAnswer *answer);
void picture_answer_clear (PictureAnswer *self);

// Reports whether a keyframe has come.
gboolean picture_source_has_frame (PictureSource *self);

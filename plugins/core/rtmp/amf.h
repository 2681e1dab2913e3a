// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Reads and writes the values of Action Message Format 0 ("AMF 0 File Format Specification", 2007),
// in which RTMP has its commands. References and AMF 3 are not read: publishers do not send them.

#include "bits/bytes.h"
#include "mp4/box.h"

#define WEIR_AMF_DEPTH 8 // of objects in objects

typedef enum {
  WEIR_AMF_NUMBER,
  WEIR_AMF_BOOLEAN, // in `number`
  WEIR_AMF_STRING,  // also a long one
  WEIR_AMF_OBJECT,  // also a typed one, and an ECMA array
  WEIR_AMF_NULL,    // also undefined
  WEIR_AMF_OTHER,   // a date, a strict array, XML
} WeirAmfType;

typedef struct {
  WeirAmfType type;
  double number;
  const uint8_t *text; // of a string, which may have any bytes, and has no final zero
  size_t len;
  WeirBytes fields; // of an object, for weir_amf_find()
} WeirAmf;

// Reads a value and moves past it. Returns 0, or -EBADMSG if it is malformed, cut short, nested
// deeper than WEIR_AMF_DEPTH or of a type that is not read; then the cursor has failed. The value
// points into the bytes.
int weir_amf_read (WeirBytes *b, WeirAmf *out);

// Looks for a field of an object. Returns whether it is there; if not, `out` is a
// WEIR_AMF_NULL, as it is for values that are no object.
bool weir_amf_find (const WeirAmf *object, const char *name, WeirAmf *out);

// Reports whether the value is this text.
bool weir_amf_is (const WeirAmf *value, const char *text);

// Copies a text without zeros in it, with a final zero, to `out`, which has `max` + 1 bytes.
// Returns false if the value is no text, or a longer one.
bool weir_amf_copy_text (const WeirAmf *value, char *out, size_t max);

// Write values. A text may have 65,535 bytes.
void weir_amf_write_number (WeirBoxes *w, double number);
void weir_amf_write_text (WeirBoxes *w, const char *text);
void weir_amf_write_null (WeirBoxes *w);

// Write an object: its fields come between these two, each as a name and a value.
void weir_amf_begin_object (WeirBoxes *w);
void weir_amf_write_name (WeirBoxes *w, const char *name);
void weir_amf_end_object (WeirBoxes *w);

// Write the first two values of a command; a field that is a text; and the object that says how a
// command went, of whose `text` the first 256 bytes are sent.
void weir_amf_write_command (WeirBoxes *w, const char *name, double transaction);
void weir_amf_write_field (WeirBoxes *w, const char *name, const char *text);
void weir_amf_write_status (WeirBoxes *w, const char *level, const char *code, const char *text);

// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtmp/amf.h"

#include <errno.h>

#define STATUS_MAX 256

// The markers of section 2.1.
enum {
  MARKER_NUMBER = 0,
  MARKER_BOOLEAN = 1,
  MARKER_STRING = 2,
  MARKER_OBJECT = 3,
  MARKER_NULL = 5,
  MARKER_UNDEFINED = 6,
  MARKER_ECMA_ARRAY = 8,
  MARKER_OBJECT_END = 9,
  MARKER_STRICT_ARRAY = 10,
  MARKER_DATE = 11,
  MARKER_LONG_STRING = 12,
  MARKER_XML = 15,
  MARKER_TYPED_OBJECT = 16,
};

// ---- reading ----

static int read_value (WeirBytes *b, WeirAmf *out, unsigned depth);

static void
read_number (WeirBytes *b, WeirAmf *out)
{
  uint64_t bits;

  weir_bytes_u64 (b, &bits);
  memcpy (&out->number, &bits, sizeof bits);
}

static void
read_text (WeirBytes *b, WeirAmf *out, size_t size_of_len)
{
  uint64_t len;

  weir_bytes_number (b, size_of_len, &len);
  if (weir_bytes_take (b, len, &out->text))
    out->len = len;
}

// Moves to the value of the next field. Returns false at the end of the object, past which it has
// moved, and after a failure.
static bool
next_field (WeirBytes *b, WeirAmf *name)
{
  uint8_t marker;

  *name = (WeirAmf) { .type = WEIR_AMF_STRING };
  read_text (b, name, 2);
  if (b->failed || name->len > 0)
    return !b->failed;
  // An empty name may be that of a field, too.
  if (weir_bytes_left (b) > 0 && *b->at != MARKER_OBJECT_END)
    return true;
  weir_bytes_u8 (b, &marker);
  return false;
}

static void
read_object (WeirBytes *b, WeirAmf *out, unsigned depth)
{
  WeirAmf name, value;

  out->fields = *b;
  while (next_field (b, &name) && read_value (b, &value, depth + 1) == 0)
    ;
  if (!b->failed)
    out->fields.end = b->at;
}

static void
read_strict_array (WeirBytes *b, unsigned depth)
{
  WeirAmf value;
  uint32_t n;

  weir_bytes_u32 (b, &n);
  while (n-- > 0 && read_value (b, &value, depth + 1) == 0)
    ;
}

static WeirAmfType
read_content (WeirBytes *b, WeirAmf *out, uint8_t marker, unsigned depth)
{
  uint8_t boolean;

  switch (marker) {
    case MARKER_NUMBER:
      read_number (b, out);
      return WEIR_AMF_NUMBER;
    case MARKER_BOOLEAN:
      weir_bytes_u8 (b, &boolean);
      out->number = boolean;
      return WEIR_AMF_BOOLEAN;
    case MARKER_STRING:
    case MARKER_LONG_STRING:
      read_text (b, out, marker == MARKER_STRING ? 2 : 4);
      return WEIR_AMF_STRING;
    case MARKER_TYPED_OBJECT:
      read_text (b, out, 2);
      read_object (b, out, depth);
      return WEIR_AMF_OBJECT;
    case MARKER_ECMA_ARRAY:
      weir_bytes_skip (b, 4); // about how many fields it has
      read_object (b, out, depth);
      return WEIR_AMF_OBJECT;
    case MARKER_OBJECT:
      read_object (b, out, depth);
      return WEIR_AMF_OBJECT;
    case MARKER_NULL:
    case MARKER_UNDEFINED:
      return WEIR_AMF_NULL;
    case MARKER_STRICT_ARRAY:
      read_strict_array (b, depth);
      return WEIR_AMF_OTHER;
    case MARKER_DATE:
      weir_bytes_skip (b, 8 + 2);
      return WEIR_AMF_OTHER;
    case MARKER_XML:
      read_text (b, out, 4);
      return WEIR_AMF_OTHER;
    default:
      b->failed = true;
      return WEIR_AMF_NULL;
  }
}

static int
read_value (WeirBytes *b, WeirAmf *out, unsigned depth)
{
  uint8_t marker;

  *out = (WeirAmf) { .type = WEIR_AMF_NULL };
  if (depth > WEIR_AMF_DEPTH)
    b->failed = true;
  if (weir_bytes_u8 (b, &marker))
    out->type = read_content (b, out, marker, depth);
  if (!b->failed)
    return 0;
  *out = (WeirAmf) { .type = WEIR_AMF_NULL };
  return -EBADMSG;
}

int
weir_amf_read (WeirBytes *b, WeirAmf *out)
{
  return read_value (b, out, 0);
}

bool
weir_amf_find (const WeirAmf *object, const char *name, WeirAmf *out)
{
  WeirBytes b = object->fields;
  WeirAmf each;

  while (
      object->type == WEIR_AMF_OBJECT && next_field (&b, &each) && read_value (&b, out, 1) == 0) {
    if (weir_amf_is (&each, name))
      return true;
  }
  *out = (WeirAmf) { .type = WEIR_AMF_NULL };
  return false;
}

bool
weir_amf_is (const WeirAmf *value, const char *text)
{
  return value->type == WEIR_AMF_STRING && value->len == strlen (text)
         && memcmp (value->text, text, value->len) == 0;
}

bool
weir_amf_copy_text (const WeirAmf *value, char *out, size_t max)
{
  if (value->type != WEIR_AMF_STRING || value->len > max || memchr (value->text, 0, value->len))
    return false;
  memcpy (out, value->text, value->len);
  out[value->len] = '\0';
  return true;
}

// ---- writing ----

void
weir_amf_write_number (WeirBoxes *w, double number)
{
  uint64_t bits;

  memcpy (&bits, &number, sizeof bits);
  weir_boxes_u8 (w, MARKER_NUMBER);
  weir_boxes_u64 (w, bits);
}

void
weir_amf_write_name (WeirBoxes *w, const char *name)
{
  size_t len = strlen (name);

  weir_boxes_u16 (w, (uint16_t) len);
  weir_boxes_put (w, name, (uint16_t) len);
}

void
weir_amf_write_text (WeirBoxes *w, const char *text)
{
  weir_boxes_u8 (w, MARKER_STRING);
  weir_amf_write_name (w, text);
}

void
weir_amf_write_null (WeirBoxes *w)
{
  weir_boxes_u8 (w, MARKER_NULL);
}

void
weir_amf_begin_object (WeirBoxes *w)
{
  weir_boxes_u8 (w, MARKER_OBJECT);
}

void
weir_amf_end_object (WeirBoxes *w)
{
  weir_amf_write_name (w, "");
  weir_boxes_u8 (w, MARKER_OBJECT_END);
}

void
weir_amf_write_command (WeirBoxes *w, const char *name, double transaction)
{
  weir_amf_write_text (w, name);
  weir_amf_write_number (w, transaction);
}

void
weir_amf_write_field (WeirBoxes *w, const char *name, const char *text)
{
  weir_amf_write_name (w, name);
  weir_amf_write_text (w, text);
}

void
weir_amf_write_status (WeirBoxes *w, const char *level, const char *code, const char *text)
{
  char cut[STATUS_MAX + 1] = "";

  strncpy (cut, text, STATUS_MAX);
  weir_amf_begin_object (w);
  weir_amf_write_field (w, "level", level);
  weir_amf_write_field (w, "code", code);
  weir_amf_write_field (w, "description", cut);
  weir_amf_end_object (w);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rtmp/session.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rtmp/amf.h"
#include "rtmp/chunks.h"
#include "rtmp/flv.h"

#define VERSION 3
#define HANDSHAKE (8 + WEIR_RTMP_RANDOM)
#define CHUNK_OUT 4096   // bytes of a chunk to the client; no message to it is longer
#define WINDOW 2500000   // bytes between two acknowledgements
#define WINDOW_MIN 16384 // of those that a client asks for
#define CHUNK_MAX (16 << 20)
#define STREAM 1 // the number of the only message stream
#define NAME_MAX 1024

// Of messages (sections 5.4, 6.2 and 7.1).
enum {
  SET_CHUNK_SIZE = 1,
  ABORT = 2,
  USER_CONTROL = 4,
  WINDOW_SIZE = 5,
  PEER_BANDWIDTH = 6,
  ACKNOWLEDGEMENT = 3,
  AUDIO = 8,
  VIDEO = 9,
  DATA_AMF3 = 15,
  COMMAND_AMF3 = 17,
  DATA = 18,
  COMMAND = 20,
  AGGREGATE = 22,
};

enum { STREAM_BEGIN = 0, PING_REQUEST = 6, PING_RESPONSE = 7 }; // of user control
enum { CONTROL_CHUNKS = 2, COMMAND_CHUNKS = 3 };                // chunk streams to the client

typedef enum {
  STATE_HELLO,  // C0 and C1 are to come
  STATE_ANSWER, // C2
  STATE_OPEN,
  STATE_CONNECTED,
  STATE_ASKED, // to publish
  STATE_PUBLISHING,
  STATE_OVER, // refused, or a problem
} State;

struct _WeirRtmpSession {
  State state;
  uint8_t random[WEIR_RTMP_RANDOM];
  WeirRtmpChunks *chunks;
  const char *problem;
  char app[NAME_MAX + 1], name[NAME_MAX + 1];
  uint64_t received, acknowledged; // bytes
  uint32_t window;
  WeirBytes aggregate; // what is left of such a message, in the memory of `chunks`
  uint32_t shift;      // of the times in it
  uint8_t *output;
  size_t n_output, room;
};

WeirRtmpSession *
weir_rtmp_session_new (const uint8_t random[WEIR_RTMP_RANDOM])
{
  WeirRtmpSession *self = calloc (1, sizeof *self);

  if (!self)
    return NULL;
  self->chunks = weir_rtmp_chunks_new ();
  if (!self->chunks) {
    free (self);
    return NULL;
  }
  memcpy (self->random, random, WEIR_RTMP_RANDOM);
  self->window = WINDOW;
  weir_rtmp_chunks_set_limit (self->chunks, WEIR_RTMP_COMMAND_MAX);
  return self;
}

void
weir_rtmp_session_free (WeirRtmpSession *self)
{
  weir_rtmp_chunks_free (self->chunks);
  free (self->output);
  free (self);
}

static int
fail_session (WeirRtmpSession *self, const char *problem)
{
  self->state = STATE_OVER;
  self->problem = problem;
  return -1;
}

const char *
weir_rtmp_session_get_problem (const WeirRtmpSession *self)
{
  return self->problem;
}

// ---- bytes to send ----

static bool
put (WeirRtmpSession *self, const uint8_t *bytes, size_t len)
{
  size_t need = self->n_output + len;
  uint8_t *grown = need > self->room ? realloc (self->output, need) : self->output;

  if (!grown) {
    fail_session (self, "there is no memory left");
    return false;
  }
  self->output = grown;
  self->room = need > self->room ? need : self->room;
  memcpy (grown + self->n_output, bytes, len);
  self->n_output += len;
  return true;
}

const uint8_t *
weir_rtmp_session_get_output (const WeirRtmpSession *self, size_t *len)
{
  *len = self->n_output;
  return self->output;
}

void
weir_rtmp_session_drop_output (WeirRtmpSession *self, size_t len)
{
  if (len == 0) // there may be no buffer yet
    return;
  self->n_output -= len;
  memmove (self->output, self->output + len, self->n_output);
}

// Sends a message as one chunk.
static bool
send_message (
    WeirRtmpSession *self, unsigned chunks, uint8_t type, uint32_t stream, const WeirBoxes *body)
{
  uint8_t head[12];
  WeirBoxes w = { head, sizeof head, 0 };

  weir_boxes_u8 (&w, (uint8_t) chunks); // of format 0
  weir_boxes_number (&w, 3, 0);         // the timestamp
  weir_boxes_number (&w, 3, body->at);
  weir_boxes_u8 (&w, type);
  weir_boxes_u8 (&w, (uint8_t) stream); // the lowest byte comes first
  weir_boxes_zeros (&w, 3);
  return put (self, head, sizeof head) && put (self, body->data, body->at);
}

// Sends a control message of a number and, if `more` is not negative, a byte.
static bool
send_control (WeirRtmpSession *self, uint8_t type, uint32_t number, int more)
{
  uint8_t bytes[5];
  WeirBoxes w = { bytes, sizeof bytes, 0 };

  weir_boxes_u32 (&w, number);
  if (more >= 0)
    weir_boxes_u8 (&w, (uint8_t) more);
  return send_message (self, CONTROL_CHUNKS, type, 0, &w);
}

static bool
send_user_control (WeirRtmpSession *self, uint16_t event, uint32_t number)
{
  uint8_t bytes[6];
  WeirBoxes w = { bytes, sizeof bytes, 0 };

  weir_boxes_u16 (&w, event);
  weir_boxes_u32 (&w, number);
  return send_message (self, CONTROL_CHUNKS, USER_CONTROL, 0, &w);
}

#define BODY 1024 // bytes; more than any answer has

static bool
send_status (WeirRtmpSession *self, const char *level, const char *code, const char *text)
{
  uint8_t bytes[BODY];
  WeirBoxes w = { bytes, sizeof bytes, 0 };

  weir_amf_write_command (&w, "onStatus", 0);
  weir_amf_write_null (&w);
  weir_amf_write_status (&w, level, code, text);
  return send_message (self, COMMAND_CHUNKS, COMMAND, STREAM, &w);
}

// Answers a call whose result is a number, or nothing (NAN).
static bool
send_result (WeirRtmpSession *self, double transaction, double result)
{
  uint8_t bytes[BODY];
  WeirBoxes w = { bytes, sizeof bytes, 0 };

  weir_amf_write_command (&w, "_result", transaction);
  weir_amf_write_null (&w);
  if (isnan (result))
    weir_amf_write_null (&w);
  else
    weir_amf_write_number (&w, result);
  return send_message (self, COMMAND_CHUNKS, COMMAND, 0, &w);
}

static bool
send_error (WeirRtmpSession *self, double transaction, const char *code, const char *text)
{
  uint8_t bytes[BODY];
  WeirBoxes w = { bytes, sizeof bytes, 0 };

  weir_amf_write_command (&w, "_error", transaction);
  weir_amf_write_null (&w);
  weir_amf_write_status (&w, "error", code, text);
  return send_message (self, COMMAND_CHUNKS, COMMAND, 0, &w);
}

static bool
send_connected (WeirRtmpSession *self, double transaction)
{
  uint8_t bytes[BODY];
  WeirBoxes w = { bytes, sizeof bytes, 0 };

  weir_amf_write_command (&w, "_result", transaction);
  weir_amf_begin_object (&w);
  weir_amf_write_field (&w, "fmsVer", "FMS/3,0,1,123"); // some clients look for it
  weir_amf_write_name (&w, "capabilities");
  weir_amf_write_number (&w, 31);
  weir_amf_end_object (&w);
  weir_amf_write_status (&w, "status", "NetConnection.Connect.Success", "connected");
  return send_control (self, WINDOW_SIZE, WINDOW, -1)
         && send_control (self, PEER_BANDWIDTH, WINDOW, 2)
         && send_control (self, SET_CHUNK_SIZE, CHUNK_OUT, -1)
         && send_message (self, COMMAND_CHUNKS, COMMAND, 0, &w);
}

// ---- commands ----

static int
handle_connect (WeirRtmpSession *self, double transaction, const WeirAmf *object)
{
  WeirAmf app;

  if (self->state != STATE_OPEN)
    return fail_session (self, "it connects twice");
  weir_amf_find (object, "app", &app);
  if (!weir_amf_copy_text (&app, self->app, NAME_MAX)) {
    send_error (self, transaction, "NetConnection.Connect.Rejected",
        "the URL must be like rtmp://HOST/MOUNT");
    return fail_session (self, "its connect names no application");
  }
  self->state = STATE_CONNECTED;
  return send_connected (self, transaction) ? 0 : -1;
}

static int
handle_publish (WeirRtmpSession *self, WeirBytes *b, WeirRtmpEvent *event)
{
  WeirAmf name;

  if (self->state != STATE_CONNECTED)
    return fail_session (
        self, self->state == STATE_OPEN ? "it publishes before it connects" : "it publishes twice");
  // FFmpeg sends an empty name if the URL has only one segment, GStreamer none.
  if (weir_amf_read (b, &name) < 0 || name.type == WEIR_AMF_NULL)
    name = (WeirAmf) { .type = WEIR_AMF_STRING, .text = (const uint8_t *) "" };
  if (!weir_amf_copy_text (&name, self->name, NAME_MAX))
    return fail_session (
        self, "the name of its stream cannot be read, or has more than 1024 bytes");
  self->state = STATE_ASKED;
  *event = (WeirRtmpEvent) { .type = WEIR_RTMP_PUBLISH, .app = self->app, .name = self->name };
  return 1;
}

static int
handle_play (WeirRtmpSession *self)
{
  send_status (
      self, "error", "NetStream.Play.Failed", "streams can be published here, but not be played");
  return fail_session (self, "it asks to play, which is not offered over RTMP");
}

static int
handle_end (WeirRtmpSession *self, WeirRtmpEvent *event)
{
  if (self->state != STATE_PUBLISHING)
    return 0;
  self->state = STATE_OVER;
  self->problem = "it has ended the stream";
  *event = (WeirRtmpEvent) { .type = WEIR_RTMP_END };
  return 1;
}

static int
answer (WeirRtmpSession *self, const WeirAmf *name, double transaction)
{
  static const char *const quiet[] = { "releaseStream", "FCPublish", "_checkbw" };

  // A client that waits for no answer calls with 0.
  if (transaction == 0)
    return 0;
  if (weir_amf_is (name, "createStream"))
    return send_result (self, transaction, STREAM) ? 0 : -1;
  for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) {
    if (weir_amf_is (name, quiet[i]))
      return send_result (self, transaction, NAN) ? 0 : -1;
  }
  return send_error (self, transaction, "NetConnection.Call.Failed", "there is no such command")
             ? 0
             : -1;
}

static bool
is_answer (const WeirAmf *name)
{
  return weir_amf_is (name, "_result") || weir_amf_is (name, "_error")
         || weir_amf_is (name, "onStatus");
}

static bool
is_end (const WeirAmf *name)
{
  return weir_amf_is (name, "FCUnpublish") || weir_amf_is (name, "deleteStream")
         || weir_amf_is (name, "closeStream");
}

static int
handle_command (WeirRtmpSession *self, WeirBytes b, WeirRtmpEvent *event)
{
  WeirAmf name, transaction, object;

  if (weir_amf_read (&b, &name) < 0 || name.type != WEIR_AMF_STRING
      || weir_amf_read (&b, &transaction) < 0 || transaction.type != WEIR_AMF_NUMBER)
    return fail_session (self, "one of its commands is malformed");
  if (is_answer (&name))
    return 0;
  if (weir_amf_read (&b, &object) < 0 && weir_amf_is (&name, "connect"))
    return fail_session (self, "its connect is malformed");
  if (weir_amf_is (&name, "connect"))
    return handle_connect (self, transaction.number, &object);
  if (self->state == STATE_OPEN)
    return fail_session (self, "its first command is not connect");
  if (weir_amf_is (&name, "publish"))
    return handle_publish (self, &b, event);
  if (weir_amf_is (&name, "play"))
    return handle_play (self);
  return is_end (&name) ? handle_end (self, event) : answer (self, &name, transaction.number);
}

// ---- messages ----

static int
handle_data (WeirRtmpSession *self, WeirBytes b, WeirRtmpEvent *event)
{
  WeirAmf name;
  WeirBytes after = b;

  if (self->state != STATE_PUBLISHING)
    return 0;
  // Publishers prefix what a server shall keep.
  if (weir_amf_read (&after, &name) == 0 && weir_amf_is (&name, "@setDataFrame"))
    b = after;
  *event =
      (WeirRtmpEvent) { .type = WEIR_RTMP_METADATA, .data = b.at, .len = weir_bytes_left (&b) };
  return 1;
}

static int
handle_user_control (WeirRtmpSession *self, WeirBytes b)
{
  uint16_t event;
  uint32_t number;

  weir_bytes_u16 (&b, &event);
  if (weir_bytes_u32 (&b, &number) && event == PING_REQUEST)
    return send_user_control (self, PING_RESPONSE, number) ? 0 : -1;
  return 0;
}

static int
handle_control (WeirRtmpSession *self, uint8_t type, WeirBytes b)
{
  uint32_t number;

  if (!weir_bytes_u32 (&b, &number))
    return fail_session (self, "one of its control messages is too short");
  if (type == SET_CHUNK_SIZE && (number == 0 || number >> 31))
    return fail_session (self, "its chunk size is out of range");
  if (type == SET_CHUNK_SIZE)
    weir_rtmp_chunks_set_size (self->chunks, number < CHUNK_MAX ? number : CHUNK_MAX);
  else if (type == ABORT)
    weir_rtmp_chunks_abort (self->chunks, number);
  else if (type == WINDOW_SIZE)
    self->window = number > WINDOW_MIN ? number : WINDOW_MIN;
  return 0;
}

static int
handle_media (WeirRtmpSession *self, const WeirRtmpMessage *message, WeirRtmpEvent *event)
{
  if (self->state != STATE_PUBLISHING)
    return fail_session (self, "it sends media before it may publish");
  *event = (WeirRtmpEvent) { message->type == AUDIO ? WEIR_RTMP_AUDIO : WEIR_RTMP_VIDEO,
    message->timestamp, message->data, message->len, NULL, NULL };
  return 1;
}

// An aggregate message is a row of FLV tags; the first has the time of the message.
static int
handle_aggregate (WeirRtmpSession *self, const WeirRtmpMessage *message, WeirBytes b)
{
  WeirBytes ahead = b;
  WeirFlvTag first;

  if (self->state != STATE_PUBLISHING)
    return fail_session (self, "it sends media before it may publish");
  if (!weir_flv_read_tag (&ahead, &first))
    return fail_session (self, "one of its aggregate messages is malformed");
  self->aggregate = b;
  self->shift = message->timestamp - first.timestamp;
  return 0;
}

// Takes the next message out of an aggregate one. Returns 1, or -1 if it is cut short.
static int
take_apart (WeirRtmpSession *self, WeirRtmpMessage *message)
{
  WeirFlvTag tag;

  if (!weir_flv_read_tag (&self->aggregate, &tag))
    return fail_session (self, "one of its aggregate messages is malformed");
  // Nothing in it changes the session.
  if (tag.type != AUDIO && tag.type != VIDEO && tag.type != DATA)
    tag.type = 0;
  *message = (WeirRtmpMessage) { tag.type, STREAM, tag.timestamp + self->shift, tag.data, tag.len };
  return 1;
}

static int
handle (WeirRtmpSession *self, const WeirRtmpMessage *message, WeirRtmpEvent *event)
{
  WeirBytes b = weir_bytes (message->data, message->len);
  // AMF 3 messages of publishers are in AMF 0 behind a byte.
  bool skips = message->type == DATA_AMF3 || message->type == COMMAND_AMF3;

  if (skips && weir_bytes_left (&b) > 0)
    weir_bytes_skip (&b, 1);
  switch (message->type) {
    case SET_CHUNK_SIZE:
    case ABORT:
    case ACKNOWLEDGEMENT:
    case WINDOW_SIZE:
    case PEER_BANDWIDTH:
      return handle_control (self, message->type, b);
    case USER_CONTROL:
      return handle_user_control (self, b);
    case AUDIO:
    case VIDEO:
      return handle_media (self, message, event);
    case DATA:
    case DATA_AMF3:
      return handle_data (self, b, event);
    case COMMAND:
    case COMMAND_AMF3:
      return handle_command (self, b, event);
    case AGGREGATE:
      return handle_aggregate (self, message, b);
    default:
      return 0; // shared objects: nothing that publishers send
  }
}

// ---- the handshake; section 5.2 ----

static int
shake_hands (WeirRtmpSession *self, WeirBytes *b)
{
  const uint8_t zeros[8] = { 0 }, version = VERSION, *hello;

  if (*b->at != VERSION)
    return fail_session (self, "its first byte is not that of RTMP");
  weir_bytes_skip (b, 1);
  weir_bytes_take (b, HANDSHAKE, &hello);
  self->state = STATE_ANSWER;
  // S2 is the client's bytes again. Zeros in the version of S1 ask for the plain handshake.
  return put (self, &version, 1) && put (self, zeros, sizeof zeros)
                 && put (self, self->random, WEIR_RTMP_RANDOM) && put (self, hello, HANDSHAKE)
             ? 0
             : -1;
}

// Returns false if the bytes end before the next step.
static bool
read_handshake (WeirRtmpSession *self, WeirBytes *b)
{
  size_t need = self->state == STATE_HELLO ? 1 + HANDSHAKE : HANDSHAKE, left = weir_bytes_left (b);

  if (self->state == STATE_HELLO && left > 0 && (*b->at != VERSION || left >= need))
    return shake_hands (self, b) == 0;
  if (self->state == STATE_HELLO || left < need)
    return false;
  weir_bytes_skip (b, HANDSHAKE);
  self->state = STATE_OPEN;
  return true;
}

// ---- reading ----

static int
name_problem (WeirRtmpSession *self, int error)
{
  return fail_session (self, error == -EMSGSIZE ? "one of its messages is too long"
                             : error == -ENOMEM ? "there is no memory left"
                                                : "its chunk stream is malformed");
}

static int
read_messages (WeirRtmpSession *self, WeirBytes *b, WeirRtmpEvent *event)
{
  WeirRtmpMessage message;
  int result = 0;

  while (result == 0 && self->n_output == 0) {
    bool inside = weir_bytes_left (&self->aggregate) > 0;

    result =
        inside ? take_apart (self, &message) : weir_rtmp_chunks_read (self->chunks, b, &message);
    if (result < 0)
      return inside ? result : name_problem (self, result);
    if (result == 0)
      return 0;
    result = handle (self, &message, event);
  }
  return result;
}

// Tells the client how much has come; clients send no more than a window without that.
static bool
acknowledge (WeirRtmpSession *self, size_t used)
{
  self->received += used;
  if (self->received - self->acknowledged < self->window || self->state < STATE_CONNECTED)
    return true;
  self->acknowledged = self->received;
  return send_control (self, ACKNOWLEDGEMENT, (uint32_t) self->received, -1);
}

int
weir_rtmp_session_read (
    WeirRtmpSession *self, const uint8_t *data, size_t len, size_t *used, WeirRtmpEvent *event)
{
  WeirBytes b = weir_bytes (data, len);
  int result = 0;

  *used = 0;
  if (self->state == STATE_OVER)
    return -1;
  while (self->state < STATE_OPEN && read_handshake (self, &b))
    ;
  if (self->state >= STATE_OPEN && self->state != STATE_OVER)
    result = read_messages (self, &b, event);
  *used = len - weir_bytes_left (&b);
  if (self->state == STATE_OVER && result != 1)
    return -1;
  return acknowledge (self, *used) ? result : -1;
}

// ---- the answer ----

bool
weir_rtmp_session_accept (WeirRtmpSession *self)
{
  self->state = STATE_PUBLISHING;
  weir_rtmp_chunks_set_limit (self->chunks, WEIR_RTMP_MESSAGE_MAX);
  return send_user_control (self, STREAM_BEGIN, STREAM)
         && send_status (self, "status", "NetStream.Publish.Start", "publishing");
}

bool
weir_rtmp_session_refuse (WeirRtmpSession *self, const char *code, const char *text)
{
  self->state = STATE_OVER;
  self->problem = "it was refused";
  return send_status (self, "error", code, text);
}

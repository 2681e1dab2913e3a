// SPDX-License-Identifier: LGPL-2.1-or-later
#include "outlets/srt/srt_guard.h"

#include <linux/filter.h>
#include <sys/socket.h>

#define MAX_CODE 1024 // instructions; it has about 600
#define HEADER 16
#define HANDSHAKE (HEADER + 48) // without extensions
#define EXTENSIONS_MAX 8
#define MSS_MIN 76 // as SRTO_MSS
#define MSS_MAX 65535
#define NUMBER_MAX 0x7fffffff
#define SIGN 0x80000000

// Keys: a head of 4 words, a salt of 4, then one or two wrapped keys of 4, 6 or 8 words, with 2
// words of their signature.
#define KEYS_MIN 14
#define KEYS_MAX 26
#define KEYS_FLAGS 3 // bytes into the message
#define KEYS_SALT 14 // the length of the salt in words; the next byte is that of a key

// Words of memory of the program.
enum { KIND, WORDS, NEXT, HERE };

typedef struct {
  struct sock_filter *code;
  guint n;
  guint32 offset; // of the datagram
  guint done[8];  // jumps to the end of a switch
  guint n_done;
} Program;

static void
emit (Program *self, guint code, guint32 k, guint8 yes, guint8 no)
{
  g_assert (self->n < MAX_CODE);
  self->code[self->n++] = (struct sock_filter) { (guint16) code, yes, no, k };
}

static void
op (Program *self, guint code, guint32 k)
{
  emit (self, code, k, 0, 0);
}

static void
take (Program *self)
{
  op (self, BPF_RET | BPF_K, G_MAXUINT32);
}

static void
refuse (Program *self)
{
  op (self, BPF_RET | BPF_K, 0);
}

// Refuses the datagram unless `test` (BPF_JEQ, BPF_JGT, BPF_JGE or BPF_JSET) holds for A.
static void
require (Program *self, guint test, guint32 k)
{
  emit (self, BPF_JMP | test | BPF_K, k, 1, 0);
  refuse (self);
}

static void
forbid (Program *self, guint test, guint32 k)
{
  emit (self, BPF_JMP | test | BPF_K, k, 0, 1);
  refuse (self);
}

// Requires A from `min` to `max`.
static void
require_range (Program *self, guint32 min, guint32 max)
{
  require (self, BPF_JGE, min);
  forbid (self, BPF_JGT, max);
}

// A load beyond the end of the datagram refuses it.
static void
load (Program *self, guint size, guint32 at)
{
  op (self, BPF_LD | size | BPF_ABS, self->offset + at);
}

static void
load_len (Program *self)
{
  op (self, BPF_LD | BPF_W | BPF_LEN, 0);
}

static void
load_memory (Program *self, guint32 word)
{
  op (self, BPF_LD | BPF_W | BPF_MEM, word);
}

// ---- a switch over A ----

// Begins what is done if A is `value`; A is the same in the next case.
static guint
begin_case (Program *self, guint32 value)
{
  emit (self, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0);
  return self->n - 1;
}

static void
end_case (Program *self, guint at)
{
  self->code[at].jf = (guint8) (self->n - 1 - at);
}

// Ends a case with a jump to the end of the switch.
static void
end_case_done (Program *self, guint at)
{
  self->done[self->n_done++] = self->n;
  op (self, BPF_JMP | BPF_JA, 0);
  end_case (self, at);
}

static void
end_switch (Program *self)
{
  refuse (self);
  for (guint i = 0; i < self->n_done; i++)
    self->code[self->done[i]].k = self->n - 1 - self->done[i];
  self->n_done = 0;
}

// ---- extensions of a handshake; X is where one begins ----

static void
take_if_at_end (Program *self)
{
  load_len (self);
  emit (self, BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1);
  take (self);
}

static void
read_head (Program *self)
{
  op (self, BPF_LD | BPF_H | BPF_IND, 0);
  op (self, BPF_ST, KIND);
  op (self, BPF_LD | BPF_H | BPF_IND, 2);
  op (self, BPF_ST, WORDS);
  op (self, BPF_ALU | BPF_LSH | BPF_K, 2);
  op (self, BPF_ALU | BPF_ADD | BPF_K, 4);
  op (self, BPF_ALU | BPF_ADD | BPF_X, 0);
  op (self, BPF_ST, NEXT);
  op (self, BPF_STX, HERE);
  op (self, BPF_LDX | BPF_W | BPF_LEN, 0);
  emit (self, BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1);
  refuse (self);
  op (self, BPF_LDX | BPF_W | BPF_MEM, HERE);
}

// An extension of a kind of which only the size matters.
static void
check_size (Program *self, guint32 kind, guint32 min, guint32 max)
{
  guint at = begin_case (self, kind);

  load_memory (self, WORDS);
  require_range (self, min, max);
  end_case_done (self, at);
}

// SRT sends texts as words of four bytes, the last one first.
static void
check_filter (Program *self)
{
  guint at = begin_case (self, 7);

  load_memory (self, WORDS);
  require_range (self, 1, 16);
  op (self, BPF_LD | BPF_B | BPF_IND, 4 + 3);
  forbid (self, BPF_JEQ, 0);
  end_case_done (self, at);
}

static void
check_keys (Program *self)
{
  guint at = begin_case (self, 3);

  load_memory (self, WORDS);
  require_range (self, KEYS_MIN, KEYS_MAX);
  op (self, BPF_LD | BPF_B | BPF_IND, 4 + KEYS_SALT);
  require (self, BPF_JEQ, 4);
  op (self, BPF_LD | BPF_B | BPF_IND, 4 + KEYS_SALT + 1);
  require_range (self, 4, 8);
  forbid (self, BPF_JSET, 1);
  op (self, BPF_ST, KIND);
  op (self, BPF_LD | BPF_B | BPF_IND, 4 + KEYS_FLAGS);
  require (self, BPF_JSET, 3);
  op (self, BPF_ALU | BPF_AND | BPF_K, 3);
  // Two keys take the room of one more.
  op (self, BPF_LDX | BPF_W | BPF_IMM, 0);
  emit (self, BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 1);
  op (self, BPF_LDX | BPF_W | BPF_MEM, KIND);
  load_memory (self, KIND);
  op (self, BPF_ALU | BPF_ADD | BPF_X, 0);
  op (self, BPF_ALU | BPF_ADD | BPF_K, 4 + 4 + 2);
  op (self, BPF_MISC | BPF_TAX, 0);
  load_memory (self, WORDS);
  emit (self, BPF_JMP | BPF_JGE | BPF_X, 0, 1, 0);
  refuse (self);
  end_case_done (self, at);
}

static void
check_extension (Program *self)
{
  read_head (self);
  load_memory (self, KIND);
  check_size (self, 1, 3, G_MAXUINT16); // the request itself
  check_keys (self);
  check_size (self, 5, 1, 128); // the stream id
  check_size (self, 6, 1, 4);   // the congestion control
  check_filter (self);
  check_size (self, 8, 2, G_MAXUINT16); // a group
  end_switch (self);
  op (self, BPF_LDX | BPF_W | BPF_MEM, NEXT);
}

static void
check_handshake (Program *self)
{
  load_len (self);
  require (self, BPF_JGE, self->offset + HANDSHAKE);
  load (self, BPF_W, HEADER); // the version
  require_range (self, 4, 5);
  load (self, BPF_W, HEADER + 8); // the first sequence number
  forbid (self, BPF_JGE, NUMBER_MAX);
  load (self, BPF_W, HEADER + 12);
  require_range (self, MSS_MIN, MSS_MAX);
  load (self, BPF_W, HEADER + 16); // the flow window
  require_range (self, 2, NUMBER_MAX);
  op (self, BPF_LDX | BPF_W | BPF_IMM, self->offset + HANDSHAKE);
  for (guint i = 0; i < EXTENSIONS_MAX; i++) {
    take_if_at_end (self);
    check_extension (self);
  }
  take_if_at_end (self);
  refuse (self);
}

// ---- other control packets ----

static void
check_acknowledgement (Program *self)
{
  load_len (self);
  emit (self, BPF_JMP | BPF_JEQ | BPF_K, self->offset + HEADER + 4, 0, 1);
  take (self);
  require (self, BPF_JGE, self->offset + HEADER + 16);
  take (self);
}

static void
check_loss_report (Program *self)
{
  load_len (self);
  op (self, BPF_ALU | BPF_SUB | BPF_K, self->offset);
  require (self, BPF_JGE, HEADER + 4);
  forbid (self, BPF_JSET, 3);
  op (self, BPF_ALU | BPF_SUB | BPF_K, 4);
  op (self, BPF_MISC | BPF_TAX, 0);
  op (self, BPF_LD | BPF_W | BPF_IND, self->offset);
  forbid (self, BPF_JSET, SIGN); // the first number of a range
  take (self);
}

static void
check_extended (Program *self)
{
  load (self, BPF_H, 2);
  require_range (self, 3, 4); // keys, and the answer to them
  load_len (self);
  require_range (self, self->offset + HEADER + 4, self->offset + HEADER + KEYS_MAX * 4);
  take (self);
}

static void
check_control (Program *self)
{
  static const guint8 plain[] = { 1, 4, 5, 6, 8 }; // whose content libsrt does not read
  guint at;

  load (self, BPF_W, HEADER - 4); // the header is whole
  load (self, BPF_H, 0);
  op (self, BPF_ALU | BPF_AND | BPF_K, 0x7fff);
  for (guint i = 0; i < G_N_ELEMENTS (plain); i++) {
    at = begin_case (self, plain[i]);
    take (self);
    end_case (self, at);
  }
  at = begin_case (self, 2);
  check_acknowledgement (self);
  end_case (self, at);
  at = begin_case (self, 3);
  check_loss_report (self);
  end_case (self, at);
  at = begin_case (self, 7); // a request to drop two numbers and what is between them
  load_len (self);
  require (self, BPF_JGE, self->offset + HEADER + 8);
  take (self);
  end_case (self, at);
  at = begin_case (self, 0x7fff);
  check_extended (self);
  end_case (self, at);
  require (self, BPF_JEQ, 0);
  check_handshake (self);
}

gboolean
srt_guard_attach (gint socket, guint32 offset)
{
  struct sock_filter code[MAX_CODE];
  Program self = { .code = code, .offset = offset };
  struct sock_fprog program = { .filter = code };

  load (&self, BPF_W, 0);
  emit (&self, BPF_JMP | BPF_JSET | BPF_K, SIGN, 1, 0);
  take (&self); // data
  check_control (&self);
  program.len = (guint16) self.n;
  return setsockopt (socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

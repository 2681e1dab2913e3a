// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The ciphers of SRTP by OpenSSL's libcrypto, which uses the instructions that the processor has
// for them. Each object is set up once: a packet sets only the counter block or the nonce.

#include "core/webrtc/srtp.h"

extern const WeirSrtpCiphers weir_srtp_ciphers;

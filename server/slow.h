/* SPDX-License-Identifier: MIT */
/*
 * Ends slow connections: those that have not sent their headers within ten seconds, or that move a body or an answer at less than
 * 16 KiB a second after an initial allowance. libmicrohttpd itself waits as long as a byte arrives now and then.
 */
#pragma once

#include <microhttpd.h>
#include <stdint.h>

struct sl_slow;

struct sl_slow *sl_slow_new(void);
void sl_slow_free(struct sl_slow *slow);
/* For MHD_OPTION_NOTIFY_CONNECTION. */
void sl_slow_notify(void *slow, struct MHD_Connection *connection, void **own, enum MHD_ConnectionNotificationCode code);

void sl_slow_began(struct MHD_Connection *connection); /* its headers have arrived */
void sl_slow_took(struct MHD_Connection *connection, uint64_t bytes);
void sl_slow_answers(struct MHD_Connection *connection, uint64_t bytes);
void sl_slow_ended(struct MHD_Connection *connection); /* the next request may begin */

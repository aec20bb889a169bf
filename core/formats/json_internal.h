/*
 * json_internal.h: what json.c asks of json_members.c. Private to both.
 */
#ifndef SN_FORMATS_JSON_INTERNAL_H
#define SN_FORMATS_JSON_INTERNAL_H

#include "json.h"

#define SN_JSON_LINEAR 8 /* members of an object that are looked through one by one */

/* Prepares the search in a complete object. `table` has room for all members, and stays; NULL if
 * they are few. *twice is a member whose key another has too, NULL if there is none. */
sn_status sn_json_order_members(sn_json *object, const sn_json **table, const sn_json **twice);

#endif

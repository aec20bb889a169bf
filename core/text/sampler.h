/*
 * sampler.h: what state files need of a sampler: its history and random numbers as bytes.
 */
#ifndef SN_TEXT_SAMPLER_H
#define SN_TEXT_SAMPLER_H

#include "../memory.h"

/* Portable little-endian bytes; layout in docs/state-format.md. */
size_t sn_sampler_saved_size(const sn_sampler *sampler);
void sn_sampler_write(const sn_sampler *sampler, uint8_t *bytes);

/* Replaces history and random numbers; SN_E_FORMAT leaves the sampler unchanged. Options (and
 * the seed the sampler was made with) stay the sampler's own. */
sn_status sn_sampler_read(sn_sampler *sampler, const uint8_t *bytes, size_t size);

/* Empties the history; the random numbers go on. */
void sn_sampler_forget(sn_sampler *sampler);

#endif

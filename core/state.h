/*
 * state.h: a state is one allocation: this struct, the recurrent data, and scratch for a chunk.
 */
#ifndef SN_CORE_STATE_H
#define SN_CORE_STATE_H

#include "model.h"

struct sn_state {
    const sn_model *model;
    float *data; /* model->state_floats, the layout of the architecture */
    uint64_t position;
    bool spoiled; /* saw a NaN or infinity: unusable until reset or restored */
    sn_progress_fn abort;
    void *abort_user;
    sn_exec exec;
};

struct sn_batch {
    const sn_model *model;
    size_t capacity;
    sn_segment *segments;
    sn_exec exec;
};

#endif

/* mamba2.c: the seed's sunnynet_mamba2. */
#include "handle.h"

SN_HANDLE(sn_m2, "mamba2")
SN_HANDLE_THREADS(sn_m2)
SN_HANDLE_DBG(sn_m2)

/* deltanet.c: the seed's sunnynet_deltanet. */
#include "handle.h"

SN_HANDLE(sn_dn, "deltanet")
SN_HANDLE_THREADS(sn_dn)
SN_HANDLE_DBG(sn_dn)

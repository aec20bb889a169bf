/*
 * tokenizer_load.c: a tokenizer without its model, from whatever holds one.
 */
#include "import/open.h"
#include "text/tokenizer.h"

sn_status sn_tokenizer_load(const char *path, sn_tokenizer **tokenizer) {
    sn_gguf gguf = { 0 };
    sn_tokenizer *made = NULL;
    if (!path || !tokenizer)
        return sn_fail(SN_E_INVAL, "tokenizer: path or tokenizer is NULL");
    SN_TRY(sn_open_tokenizer(path, &gguf));
    sn_status status = sn_tokenizer_from_gguf(&gguf, &made);
    sn_gguf_close(&gguf);
    SN_TRY(status);
    if (!made) return sn_fail(SN_E_FORMAT, "%.300s: holds no tokenizer", path);
    *tokenizer = made;
    return SN_OK;
}

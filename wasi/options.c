/* options.c: every option and command of `sunnynet`, once. See args.h. */
#include "args.h"

#define RUN (1u << COMMAND_RUN)
#define CHAT (1u << COMMAND_CHAT)
#define LOGITS (1u << COMMAND_LOGITS)
#define TOKENIZE (1u << COMMAND_TOKENIZE)
#define DETOKENIZE (1u << COMMAND_DETOKENIZE)
#define INFO (1u << COMMAND_INFO)
#define CONVERT (1u << COMMAND_CONVERT)
#define RELEASE (1u << COMMAND_RELEASE)
#define PERPLEXITY (1u << COMMAND_PERPLEXITY)
#define BENCH (1u << COMMAND_BENCH)
#define SELFTEST (1u << COMMAND_SELFTEST)

#define SAMPLES (RUN | CHAT)
#define COMPUTES (RUN | CHAT | LOGITS | PERPLEXITY | BENCH)
#define LOADS (COMPUTES | TOKENIZE | DETOKENIZE | INFO)
#define EVERY (LOADS | CONVERT | RELEASE | SELFTEST)

#define AT(field) offsetof(arguments, field)
#define MANY 2147483647.0
#define EXACT 9007199254740991.0 /* the largest integer that JSON and JavaScript keep */

const option option_table[] = {
    {{"-m", "--model", "--gguf", "--ckpt", "--hf-dir"}, OPTION_TEXT, LOADS, AT(model), 0, 0, 0,
     "PATH", NULL, "model file or folder; without it SN_MODEL or the bundled model"},
    {{"--tokenizer"}, OPTION_TEXT, LOADS & ~BENCH, AT(tokenizer), 0, 0, 0,
     "PATH", NULL, "take the tokenizer from this file or folder, not from the model's"},
    {{"--hf-arch"}, OPTION_TEXT, LOADS, AT(hf_arch), 0, 0, 0,
     "NAME", NULL, "fail unless the model is of this architecture, in any spelling"},

    {{"-p", "--prompt"}, OPTION_TEXT, RUN | LOGITS | TOKENIZE, AT(prompt), 0, 0, 0,
     "TEXT", NULL, "text to read; - reads stdin"},
    {{"-f", "--file"}, OPTION_TEXT, RUN | LOGITS | TOKENIZE | PERPLEXITY, AT(file), 0, 0, 0,
     "FILE", NULL, "file with the text to read; - is stdin"},
    {{"--tokens"}, OPTION_TEXT, RUN | LOGITS | DETOKENIZE, AT(tokens), 0, 0, 0,
     "IDS", NULL, "token ids with commas or spaces between; - reads stdin"},
    {{"-e", "--escape"}, OPTION_FLAG, RUN, AT(escape), 0, 0, 0,
     NULL, NULL, "\\n \\r \\t \\\\ \\\" \\' \\xHH in --prompt and --stop mean one byte"},
    {{"--no-escape"}, OPTION_OFF, RUN, AT(escape), 0, 0, 0,
     NULL, NULL, "they mean themselves (default)"},
    {{"--special"}, OPTION_FLAG, RUN | LOGITS | TOKENIZE | PERPLEXITY, AT(special), 0, 0, 0,
     NULL, NULL, "control tokens written out in the text become their ids"},
    {{"--bos"}, OPTION_FLAG, RUN | LOGITS, AT(bos), 0, 0, 0,
     NULL, NULL, "feed the begin-of-text token first, whatever the file says"},
    {{"--no-bos"}, OPTION_FLAG, RUN | LOGITS, AT(no_bos), 0, 0, 0,
     NULL, NULL, "do not feed it, whatever the file says"},
    {{"--ends"}, OPTION_FLAG, TOKENIZE, AT(ends), 0, 0, 0,
     NULL, NULL, "add what the file says belongs at both ends of a text"},
    {{"-sys", "--system"}, OPTION_TEXT, CHAT, AT(system), 0, 0, 0,
     "TEXT", NULL, "system message before the first turn"},
    {{"--chat-format"}, OPTION_TEXT, CHAT, AT(chat_format), 0, 0, 0,
     "NAME", NULL, "how turns are written, whatever the file says; see below"},

    {{"-n", "--predict", "--n-predict", "--max-new"}, OPTION_INT, RUN, AT(predict), 0, -1, MANY,
     "N", "128", "tokens to generate; -1: to the end of the text"},
    {{"-n", "--predict", "--n-predict", "--max-new"}, OPTION_INT, CHAT, AT(predict), 0, -1, MANY,
     "N", "512", "tokens of one answer at most; -1: no limit"},
    {{"--temp", "--temperature"}, OPTION_REAL, SAMPLES, AT(temperature), 0, 0, 1000,
     "T", "0.8", "temperature; 0 always takes the best token"},
    {{"--top-k"}, OPTION_INT, SAMPLES, AT(top_k), 0, 0, MANY,
     "K", "40", "keep the K best tokens; 0: all"},
    {{"--top-p"}, OPTION_REAL, SAMPLES, AT(top_p), 0, 1e-6, 1,
     "P", "0.95", "keep the best tokens that hold P of the probability; 1: all"},
    {{"--min-p"}, OPTION_REAL, SAMPLES, AT(min_p), 0, 0, 0.999999,
     "P", "0", "keep tokens with P times the best one's probability; 0: all"},
    {{"--repeat-penalty"}, OPTION_REAL, SAMPLES, AT(repeat_penalty), 0, 0.001, 1000,
     "X", "1", "divide the scores of tokens seen before; 1: off"},
    {{"--repeat-last-n"}, OPTION_INT, SAMPLES, AT(repeat_last_n), 0, -1, MANY,
     "N", "64", "tokens that the penalties look back at; -1: all"},
    {{"--presence-penalty"}, OPTION_REAL, SAMPLES, AT(presence_penalty), 0, -1000, 1000,
     "X", "0", "subtract from the scores of tokens seen before"},
    {{"--frequency-penalty"}, OPTION_REAL, SAMPLES, AT(frequency_penalty), 0, -1000, 1000,
     "X", "0", "subtract once for each time a token was seen"},
    {{"-l", "--logit-bias"}, OPTION_BIAS, SAMPLES, AT(bias), 0, 0, 0,
     "ID+X", NULL, "add X to a token's score, or ID-X; ID-inf forbids it; repeatable"},
    {{"-s", "--seed"}, OPTION_INT, SAMPLES, AT(seed), AT(seed_given), -1, EXACT,
     "N", "-1", "seed of the random numbers; -1: a random one"},
    {{"--stop", "-r", "--reverse-prompt"}, OPTION_TEXTS, RUN, AT(stops), 0, 0, 0,
     "TEXT", NULL, "end before this text; up to 16 times"},
    {{"--ignore-eos"}, OPTION_FLAG, SAMPLES, AT(ignore_eos), 0, 0, 0,
     NULL, NULL, "never choose the end-of-text token"},
    {{"--state-load"}, OPTION_TEXT, SAMPLES, AT(state_load), 0, 0, 0,
     "FILE", NULL, "go on from a saved state"},
    {{"--state-save"}, OPTION_TEXT, SAMPLES, AT(state_save), 0, 0, 0,
     "FILE", NULL, "save the state at the end"},

    {{"--mode"}, OPTION_CHOICE, LOGITS, AT(mode), 0, 0, 0,
     "step|prefill|batch", "prefill", "how the tokens are computed; the scores are the same"},
    {{"--batch"}, OPTION_INT, LOGITS, AT(batch), 0, 1, 256,
     "N", "4", "states of --mode batch, each one token behind the one before"},
    {{"--all"}, OPTION_FLAG, LOGITS, AT(all), 0, 0, 0,
     NULL, NULL, "scores after every token, not only after the last"},
    {{"-o", "--output"}, OPTION_TEXT, LOGITS, AT(output), 0, 0, 0,
     "FILE", NULL, "write there instead of stdout"},

    {{"--prompt-tokens"}, OPTION_INTS, BENCH, AT(prompt_sizes), 0, 0, 1 << 20,
     "N,N", "512", "tokens of a prompt, one prefill test each; 0: none"},
    {{"--gen-tokens"}, OPTION_INT, BENCH, AT(gen_tokens), 0, 1, 1 << 20,
     "N", "128", "steps of the decode and batch tests"},
    {{"--batch"}, OPTION_INTS, BENCH, AT(batches), 0, 1, 4096,
     "N,N", "1,4,16", "states advanced together, one batch test each"},
    {{"-r", "--repeat"}, OPTION_INT, BENCH, AT(repeat), 0, 1, 1000,
     "N", "5", "repetitions; the median is shown"},
    {{"-t", "--threads"}, OPTION_INTS, BENCH, AT(thread_counts), 0, -1, 1024,
     "N,N", "0", "threads, one table each; 0 or -1: automatic"},

    {{"-t", "--threads"}, OPTION_INT, COMPUTES & ~BENCH, AT(threads), 0, -1, 1024,
     "N", "0", "threads; 0 or -1: automatic"},
    {{"--isa"}, OPTION_TEXT, COMPUTES | INFO, AT(isa), 0, 0, 0,
     "NAME", NULL, "back end, e.g. scalar; without it SN_ISA or the fastest"},
    {{"--activations"}, OPTION_CHOICE, COMPUTES, AT(activations), 0, 0, 0,
     "int8|f32", "int8", "what quantised matrices are multiplied with"},
    {{"--chunk"}, OPTION_INT, COMPUTES, AT(chunk), 0, 1, 4096,
     "N", "48", "tokens of a prompt computed together"},
    {{"--mmap"}, OPTION_FLAG, COMPUTES, AT(map), 0, 0, 0,
     NULL, NULL, "use the weights of a packed file where it lies, shared by processes"},
    {{"-c", "--ctx-size"}, OPTION_INT, SAMPLES, AT(context), AT(context_given), 0, EXACT,
     "N", NULL, "accepted, but has no meaning: the state does not grow"},

    {{"--type"}, OPTION_TEXT, CONVERT, AT(type), 0, 0, 0,
     "TYPE", NULL, "f16, q8_0, q5_k_m, q4_k_m, q2_k, ...; without it types stay"},
    {{"--packed"}, OPTION_FLAG, CONVERT, AT(packed), 0, 0, 0,
     NULL, NULL, "write weights as they lie in memory: later starts are faster"},
    {{"--format"}, OPTION_CHOICE, CONVERT, AT(format), AT(format_given), 0, 0,
     "gguf|blob", NULL, "what OUT becomes; without it blob if OUT ends in .bin, else gguf"},
    {{"--out-dir"}, OPTION_TEXT, RELEASE, AT(out_dir), 0, 0, 0,
     "DIR", NULL, "folder for the files; made if need be"},
    {{"--name"}, OPTION_TEXT, RELEASE, AT(name), 0, 0, 0,
     "NAME", NULL, "of the model and its files; without it the checkpoint's"},
    {{"--publisher"}, OPTION_TEXT, RELEASE, AT(publisher), 0, 0, 0,
     "TEXT", NULL, "on the card; without it sunny-cx"},
    {{"--license"}, OPTION_TEXT, RELEASE, AT(license), 0, 0, 0,
     "TEXT", NULL, "on the card; without it apache-2.0"},
    {{"--tensors"}, OPTION_FLAG, INFO, AT(tensors), 0, 0, 0,
     NULL, NULL, "list the tensors too"},

    {{"--stats"}, OPTION_FLAG, RUN | CHAT | LOGITS, AT(stats), 0, 0, 0,
     NULL, NULL, "numbers of the run on stderr"},
    {{"--json"}, OPTION_FLAG, RUN | TOKENIZE | INFO | PERPLEXITY | BENCH, AT(json), 0, 0, 0,
     NULL, NULL, "JSON on stdout, one object a line"},
    {{"-h", "--help"}, OPTION_FLAG, EVERY, AT(help), 0, 0, 0, NULL, NULL, "this text"},
    {{"--version"}, OPTION_FLAG, EVERY, AT(version), 0, 0, 0, NULL, NULL, "the version"},
};

const size_t option_count = sizeof option_table / sizeof option_table[0];

const command_text command_table[COMMAND_COUNT] = {
    [COMMAND_RUN] =
        {"run", "[-m PATH] (-p TEXT | -f FILE | --tokens IDS) [options]", "go on with a text",
         "stdout gets the text that follows the prompt, nothing else. One newline at the end of\n"
         "a prompt from a file or stdin is dropped. Without -m and prompt, a story is told.\n"
         "\n"
         "A text is read as the file says: behind the begin-of-text token where it wants one, but\n"
         "not twice, and not with --state-load. Ids (--tokens) are taken as they are.\n"
         "A model without a tokenizer runs on ids, and writes ids with spaces between.\n"
         "\n"
         "--json prints {\"id\":..,\"text\":..} for each token (id null: text that was held\n"
         "back; text null: there is no tokenizer), then\n"
         "{\"done\":true,\"reason\":\"stop|length|eos|interrupted\",..}.\n"
         "\n"
         "--state-save keeps what the state has seen: the prompt and every generated token, a\n"
         "stop text included, the end-of-text token not; and what the sampler needs to go on.\n"
         "--state-load goes on behind that. It needs a prompt of at least one token, because the\n"
         "scores of the next token are not saved. With --seed the sampler starts afresh.\n",
         0},
    [COMMAND_CHAT] =
        {"chat", "[-m PATH] [options]", "talk, one line a turn",
         "Lines: /undo takes the last turn back, /regen answers it anew, /reset begins afresh,\n"
         "/help, /exit. Ctrl-C ends an answer; at the prompt, or without a terminal, the chat.\n"
         "--state-load goes on with a chat that --state-save kept.\n"
         "\n"
         "Turns are written as the file's chat template has them, without one as its architecture\n"
         "is known for. Templates are told by their marks; what they add besides is left out.\n"
         "--chat-format is one of rwkv-world, chatml, llama2, llama3, mistral-v1, mistral-v3,\n"
         "mistral-tekken, zephyr, gemma, vicuna, alpaca.\n",
         0},
    [COMMAND_LOGITS] =
        {"logits", "[-m PATH] (-p TEXT | -f FILE | --tokens IDS) [-o FILE] [options]",
         "scores of the next token as raw little-endian float32",
         "--mode step feeds one token a call, prefill --chunk tokens a call; batch advances\n"
         "--batch states, checks that they all end with the same bits and writes the first one's\n"
         "scores. Texts and ids are taken as by run.\n",
         0},
    [COMMAND_TOKENIZE] =
        {"tokenize", "[-m PATH] (-p TEXT | -f FILE) [--json]", "text to token ids",
         "PATH may be a model of any architecture, or a tokenizer alone: a GGUF file, a folder,\n"
         "tokenizer.json, tokenizer.model, an RWKV vocabulary.\n",
         0},
    [COMMAND_DETOKENIZE] =
        {"detokenize", "[-m PATH] --tokens IDS", "token ids to the bytes they stand for",
         "PATH as with tokenize. Control tokens stand for no bytes.\n", 0},
    [COMMAND_INFO] =
        {"info", "[-m PATH] [--tensors] [--json]", "what a model file holds",
         "Also of models that cannot be run, and of tokenizers alone.\n", 0},
    [COMMAND_CONVERT] =
        {"convert", "IN OUT [--type TYPE] [--packed] [--format gguf|blob]",
         "write a model in another type or format",
         "IN is a file or folder like any -m. A blob is the packed file of SunnyNet and RWKV-7:\n"
         "fp32, or with --type i4 (RWKV-7 only) INT4. It takes no other type and no --packed.\n",
         2},
    [COMMAND_RELEASE] =
        {"release", "CHECKPOINT.pt --out-dir DIR [options]",
         "the files of a release from a SunnyNet checkpoint",
         "Writes NAME.pt, NAME.safetensors, NAME.runtime.bin, the tokenizer.json that lies beside\n"
         "the checkpoint, and NAME.card.json with sizes and SHA-256.\n",
         1},
    [COMMAND_PERPLEXITY] =
        {"perplexity", "[-m PATH] -f FILE [options]", "how well a model predicts a text",
         "The whole file is one sequence that starts from the begin-of-text token (token 0 where\n"
         "the model names none), which is not scored; every token after it is.\n",
         0},
    [COMMAND_BENCH] =
        {"bench", "[-m PATH] [options]", "measure the speed",
         "Random tokens, the tests taken in turn. The share is that of the speed at which as many\n"
         "threads read the model's weights and do nothing else with them, in the same rounds.\n",
         0},
    [COMMAND_SELFTEST] =
        {"selftest", "", "compare all back ends this machine can run, bit for bit", "", 0},
};

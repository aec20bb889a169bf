// sessions.cpp: reads a prompt once, forks the state, and tells several stories on as many threads.
// build: c++ -std=c++17 sessions.cpp $(pkg-config --cflags --libs sunnynet) -pthread -o sessions
// run:   ./sessions MODEL "Once upon a time" 3

#include <sunnynet.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(sn_status status) {
    if (status != SN_OK) throw std::runtime_error(sn_last_error());
}

struct Free {
    void operator()(sn_model *model) const { sn_model_free(model); }
    void operator()(sn_state *state) const { sn_state_free(state); }
    void operator()(sn_sampler *sampler) const { sn_sampler_free(sampler); }
    void operator()(sn_text *text) const { sn_text_free(text); }
};
template <class T> using Handle = std::unique_ptr<T, Free>;

// Calls make(&pointer, ...) as the *_new functions are made and owns what comes out.
template <class T, class Make> Handle<T> own(Make make) {
    T *made = nullptr;
    check(make(&made));
    return Handle<T>(made);
}

Handle<sn_model> load(const char *path) {
    return own<sn_model>([&](sn_model **out) { return sn_model_load(path, nullptr, out); });
}

std::vector<int32_t> encode(const sn_tokenizer *tokenizer, const std::string &text) {
    std::vector<int32_t> ids(text.size() + 2); // no token is shorter than a byte; two ends
    int32_t n = 0;
    check(sn_tokenizer_encode_with(tokenizer, text.data(), text.size(), SN_ENCODE_BEGIN,
                                   ids.data(), static_cast<int32_t>(ids.size()), &n));
    ids.resize(static_cast<size_t>(n));
    return ids;
}

// Goes on from a state and the scores of its next token, for at most `most` tokens.
std::string tell(const sn_model *model, sn_state *state, std::vector<float> logits,
                 uint64_t seed, int most) {
    const sn_tokenizer *tokenizer = sn_model_tokenizer(model);
    sn_sampler_options options;
    sn_sampler_options_init(&options);
    options.seed = seed;
    const auto sampler = own<sn_sampler>([&](sn_sampler **out) {
        return sn_sampler_new(sn_model_vocab(model), tokenizer, &options, out);
    });
    const auto stream = own<sn_text>(
        [&](sn_text **out) { return sn_text_new(tokenizer, nullptr, 0, out); });
    std::string story;
    const char *text = nullptr;
    size_t length = 0;
    for (int i = 0; i < most; i++) {
        int32_t id = 0, stopped = 0;
        check(sn_sampler_sample(sampler.get(), logits.data(), &id));
        if (id == sn_tokenizer_eos(tokenizer)) break;
        check(sn_sampler_accept(sampler.get(), id));
        check(sn_text_push(stream.get(), id, &text, &length, &stopped));
        story.append(text, length);
        check(sn_state_step(state, id, logits.data()));
    }
    check(sn_text_finish(stream.get(), &text, &length));
    return story.append(text, length);
}

void run(const char *path, const std::string &prompt, int sessions) {
    const auto model = load(path);
    if (!sn_model_tokenizer(model.get())) throw std::runtime_error("the model has no tokenizer");
    const auto start = own<sn_state>(
        [&](sn_state **out) { return sn_state_new(model.get(), out); });
    const auto ids = encode(sn_model_tokenizer(model.get()), prompt);
    std::vector<float> logits(static_cast<size_t>(sn_model_vocab(model.get())));
    check(sn_state_prefill(start.get(), ids.data(), static_cast<int32_t>(ids.size()),
                           logits.data()));
    std::vector<std::string> stories(static_cast<size_t>(sessions));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < stories.size(); i++)
        threads.emplace_back([&, i] {
            try { // the state of a session is a copy: the prompt is not read again
                const auto state = own<sn_state>(
                    [&](sn_state **out) { return sn_state_clone(start.get(), out); });
                stories[i] = tell(model.get(), state.get(), logits, i, 40);
            } catch (const std::exception &error) {
                stories[i] = std::string("failed: ") + error.what();
            }
        });
    for (auto &thread : threads) thread.join();
    for (const auto &story : stories) std::cout << prompt << story << "\n----\n";
}

} // namespace

int main(int argc, char **argv) {
    try {
        run(argc > 1 ? argv[1] : "models/rwkv7-fairy.gguf",
            argc > 2 ? argv[2] : "Once upon a time", argc > 3 ? std::atoi(argv[3]) : 2);
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}

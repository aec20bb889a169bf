#!/bin/sh
# What drives a browser starts it in a session of its own, which has to be given its priority.
browser=${BENCH_CHROMIUM:-$(command -v chromium || command -v chromium-browser ||
    command -v google-chrome)}
exec "${0%/*}/../lib/first.sh" "$browser" "$@"

#!/bin/sh
# man.sh COMMAND VERSION: the manual page sunnynet(1) on stdout, made from what the command says
# about itself with --help, so that it cannot go stale.
set -eu

command=$1
version=$2

# Text to roff: \ - and a first . or ' would be taken as requests or typography.
escape='s/\\/\\e/g; s/-/\\-/g; s/^\([.'"'"']\)/\\\&\1/'

# The help of one command behind its usage and summary: options, an empty line, paragraphs.
body() {
    sed -e "$escape" | awk '
        NR <= 3 { next }
        # An option; its text stands behind its names or on the next line.
        /^  \\-/ {
            names = text = substr($0, 3)
            gap = match(names, /   *[^ ]/)
            if (gap) names = substr(names, 1, gap - 1)
            print ".TP\n.B " names
            if (gap) { text = substr(text, gap); sub(/^ */, "", text); print text }
            next
        }
        /^      / && !behind { sub(/^ */, ""); print; next }
        /^$/ { behind = 1; print ".PP"; next }
        { print }'
}

cat <<END
.TH SUNNYNET 1 "" "sunnynet $version" "User Commands"
.SH NAME
sunnynet \\- run recurrent language models
.SH SYNOPSIS
.B sunnynet
[\\fICOMMAND\\fR] [\\fIoptions\\fR]
.SH DESCRIPTION
Runs, converts and measures language models whose state does not grow with context. Standard
output carries the answer and nothing else; errors are one line on standard error.
Without a command it is
.BR run .
What an option is without being given stands in brackets.
.SH COMMANDS
END
names=$("$command" --help | awk '/^  [a-z]/ { print $1 }')
for name in $names; do
    help=$("$command" "$name" --help)
    printf '.SS "%s"\n' "$(printf '%s\n' "$help" | sed -n -e '1s/^usage: //' -e "1{$escape;p;}" |
        sed 's/"/\\(dq/g')"
    printf '%s\n' "$help" | awk 'NR == 2 { print toupper(substr($0, 1, 1)) substr($0, 2) "." }' |
        sed -e "$escape"
    printf '%s\n' "$help" | body
done
cat <<END
.SH EXIT STATUS
.TP
.B 0
done
.TP
.B 1
failed
.TP
.B 2
wrong usage
.TP
.B 130
stopped by Ctrl\\-C
.SH ENVIRONMENT
.TP
.B SN_MODEL
the model that is taken without \\-m, in place of the bundled one
.TP
.B SN_ISA
the back end that is taken without \\-\\-isa, in place of the fastest
END

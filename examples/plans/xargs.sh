#!/bin/sh
# Runs the parts of a plan on this machine, each in a process of its own, and N of them at a time.
#
#   xargs.sh DIR [N [OPTION...]]
#
# The options are those of `laneway plan run`.
set -eu
dir=$1
runners=${2:-4}
shift "$(($# < 2 ? $# : 2))"

parts=$(laneway plan status --json "$dir" | sed -n 's/.*"parts":\([0-9]*\).*/\1/p')
# xargs ends early if a signal kills one of its commands. Therefore a shell reports that as status 1.
# shellcheck disable=SC2016
seq 0 $((parts - 1)) |
    xargs -P "$runners" -I '{}' sh -c 'laneway plan run --part "$@" || exit 1' sh '{}' "$@" "$dir" || true
# This runs the parts whose processes have died, and waits for those that other machines hold. Usually no part is left.
ended=0
laneway plan run "$@" "$dir" || ended=$?
# Exits with 1 if objects have failed.
laneway plan status "$dir"
exit "$ended"

# What tasks of the crash test run: `program.sh WORK MANNER SECONDS [COMMAND...]`.
# It writes what it does to a ledger, so that what the daemon says can be compared with what happened:
#   S it started   T it was told to go   L it left because of that   E it ended by itself   O its last attempt is still there
# Each line: what, task, attempt, PID, seconds since boot, and the control group (S), the code (E) or the other's PID (O).
work=$1 manner=$2 seconds=$3
shift 3
attempt=$((COLOC_RESTART_COUNT + 1))

say() {
    read -r now _ < /proc/uptime
    echo "$1 $COLOC_TASK_ID $attempt $$ $now $2" >> "$CRASH_HOME/ledger"
}

group=-
while IFS= read -r line; do
    case $line in 0::*) group=${line#0::} ;; esac
done < /proc/$$/cgroup
say S "$group"

# When a process began, or nothing if it has ended.
began() {
    { read -r stat < "/proc/$1/stat"; } 2> /dev/null || return 0
    set -- ${stat##*) }
    case $1 in [ZX]) ;; *) echo "${20}" ;; esac
}

# No two attempts of a task at once. One that was killed may need a moment to be gone.
last=$CRASH_HOME/last/$COLOC_TASK_ID
if [ -e "$last" ]; then
    read -r other when < "$last"
    tries=0
    # One that was killed early may have left half a line.
    while [ -n "$when" ] && [ "$(began "$other")" = "$when" ]; do
        tries=$((tries + 1))
        if [ $tries -gt 10 ]; then
            say O "$other"
            break
        fi
        sleep 0.1
    done
fi
echo "$$ $(began $$)" > "$last"

case $manner in
    saves) trap 'say T; say L; exit 0' TERM ;;
    deaf) trap 'say T' TERM ;;
    dies) ;;
esac

# Runs a command; the shell hears signals meanwhile, and `code` is how the command ended.
rest() {
    "$@" &
    while :; do
        wait $!
        code=$?
        # A trap ends a wait, and not the command.
        kill -0 $! 2> /dev/null || return 0
    done
}

leave() {
    say E "$1"
    exit "$1"
}

case $work in
    succeed) rest sleep "$seconds"; leave 0 ;;
    fail) rest sleep "$seconds"; leave 3 ;;
    flaky) rest sleep "$seconds"; [ "$attempt" -gt 1 ] && leave 0; leave 3 ;;
    never) rest sleep 600; leave 0 ;;
    wait)
        while [ "$attempt" -eq 1 ] && ! [ -e "$CRASH_HOME/go" ]; do rest sleep 0.1; done
        leave 0
        ;;
    run) rest "$@"; leave "$code" ;;
esac

# Carries out file operations beneath one directory of a container, as requested by the host.
#
# A request is a line of fields; content follows it as counted bytes. A reply is any bytes and then a line
# `MARK:CODE:AT`, where MARK is new with every request and AT counts the names that were resolved.
# Needs a POSIX sh, and stat, find, mv, ln, rm, mkdir, rmdir, readlink, touch, chmod, truncate and dd of
# busybox or coreutils.
#
# A name is never part of a command's text. It is a field: `=name` as it is, `%escapes` for printf, `..`.
# No link is followed: a directory is entered by its plain name, and then the physical path of where that led
# must be the one that the names say. From then on it is the working directory, whatever others rename.
# An opened file is compared with the entry at its name before it is used, and changed through its descriptor.
# Only the host reads links and decides where they lead.

set -fu
umask 022
LC_ALL=C TZ=UTC0
export LC_ALL TZ
IFS=' '
exec 9<&0 </dev/null 2>/dev/null # programs started here must not read requests

format='%d:%i:%f %s %h %b %X %Y %x %y'
token=start code=ok at=0

answer() { printf '%s:%s:%s\n' "$token" "$1" "$at"; }

# Resolving names

decode() {
    case $1 in
    =*) decoded=${1#=} ;;
    *)
        decoded=$(printf '%b.' "${1#%}")
        decoded=${decoded%.}
        ;;
    esac
}

met() { # print the target of the link $1, which is on the way
    if readlink "./$1"; then code=link; else code=again; fi
    return 1
}

absent() { # set the code for the missing entry $1
    code=missing
    [ -x . ] || code=denied
    [ ! -e "./$1" ] && [ ! -L "./$1" ] || code=again
    return 1
}

enter() {
    if [ -L "./$1" ]; then
        met "$1"
        return 1
    elif [ ! -d "./$1" ]; then
        code=plain
        [ -e "./$1" ] || absent "$1"
        return 1
    fi
    want=$want/$1
    if ! cd -P "./$1" 2>/dev/null; then
        code=denied
        [ -d "./$1" ] && [ ! -x "./$1" ] || code=again
        return 1
    fi
    code=again
    [ "$PWD" = "$want" ]
}

climb() {
    code=out
    [ "$want" != "$base" ] || return 1
    want=${want%/*} code=again
    cd -P .. && [ "$PWD" = "${want:-/}" ]
}

leap() { # resolve all names with one cd, if the result shows that there was no link
    [ "$last" -gt 2 ] || return 1
    path=.
    for part; do
        at=$((at + 1))
        [ "$part" != .. ] || break
        decode "$part"
        [ "$at" = "$last" ] || path=$path/$decoded
    done
    if [ "$part" != .. ] && cd -P "$path" 2>/dev/null && [ "$PWD" = "$base${path#.}" ]; then
        want=$PWD n=$decoded
    else
        at=0
        return 1
    fi
}

walk() { # enter the directory of the last name, which is left in $n
    at=0 want=$base n=. code=again
    cd -P /proc/self/fd/8 && [ "$PWD" = "${base:-/}" ] || return 1
    last=$#
    if leap "$@"; then
        code=ok
        return
    fi
    cd -P /proc/self/fd/8 || return 1
    for part; do
        at=$((at + 1))
        n=.
        if [ "$part" = .. ]; then
            climb || return 1
            continue
        fi
        decode "$part"
        if [ "$at" -lt "$last" ]; then
            enter "$decoded" || return 1
        else
            n=$decoded
        fi
    done
    code=ok
}

walk_in() { # enter the directory at the last name
    walk "$@" || return 1
    [ "$n" = . ] || enter "$n" || return 1
    code=ok
}

# Looking up

record() {
    stat -c "$format" "./$n" || absent "$n"
}

lstat() {
    walk "$@" && record || return 1
    if [ -L "./$n" ]; then
        readlink "./$n" || code=again
    else
        writable
    fi
}

writable() { # set the code for whether the entry can be written
    if [ -w "./$n" ]; then
        code=writable
    elif [ ! -e "./$n" ]; then
        code=again
    fi
}

follow() {
    walk "$@" || return 1
    [ ! -L "./$n" ] || met "$n" || return 1
    record || return 1
    writable
}

list() {
    walk_in "$@" || return 1
    code=denied
    [ -r . ] || return 1
    code=ok
    find . -maxdepth 1 -mindepth 1 -exec stat -c "$format %n//" {} + 2>/dev/null
    return 0 # an entry removed in the meantime is not listed
}

# Reading

is_held() { # whether descriptor 3 has the identity $1
    is=$(stat -L -c "$format" /proc/self/fd/3) && [ "${is%% *}" = "$1" ]
}

verified() { # whether descriptor 3 is the regular file at the last name
    opened=1 code=again
    was=$(stat -c "$format" "./$n") || return 1
    is_held "${was%% *}" || return 1
    case $is in
    *:8???\ *) code=ok ;;
    *) return 1 ;;
    esac
}

window() { dd bs=65536 iflag=skip_bytes,count_bytes "skip=$1" "count=$2" status=none <&3; }

opening() { # run "$@" with the last name open as 3, if that is a regular file
    [ ! -L "./$n" ] || met "$n" || return 1
    if [ ! -f "./$n" ]; then
        record || return 1
        code=other
        return 1
    fi
    opened=
    "$@" 3<"./$n" && return
    [ -z "$opened" ] || return 1
    code=again
    [ ! -f "./$n" ] || [ -r "./$n" ] || code=denied
    return 1
}

read_() {
    offset=$1 count=$2
    shift 2
    walk "$@" && opening read_open
}

read_open() {
    verified || return 1
    printf '%s\n' "$is"
    [ "$count" = 0 ] || window "$offset" "$count" || code=fail
}

hold() { walk "$@" && opening hold_open; }

hold_open() { # a sleeping process keeps the file open after its name is removed
    verified || return 1
    # It has the file as 3 from the fork on, before its own redirections.
    sleep 21600 8<&- 9<&- >/dev/null &
    holders="$holders $!"
    printf '%s\n%s\n' "$is" $!
}

held() {
    identity=$2 offset=$3 count=$4 code=gone
    held_open 3<"/proc/$1/fd/3"
}

held_open() {
    is_held "$identity" || return 1
    code=ok
    printf '%s\n' "$is"
    [ "$count" = 0 ] || window "$offset" "$count" || code=fail
}

drop() {
    left=
    for holder in $holders; do
        if [ "$holder" = "$1" ]; then
            kill "$1"
            wait "$1"
        else
            left="$left $holder"
        fi
    done
    holders=$left
}

# Drafts: content under a temporary name in the top directory until it is published

receive() { # read exactly the $1 bytes that follow the request
    [ "$1" = 0 ] || dd bs="$1" count=1 iflag=fullblock status=none <&9
}

spill() { # discard the $1 bytes that follow a failed request
    [ -n "$received" ] || receive "$1" >/dev/null
    return 1
}

finish() { # publish the draft $1, open as descriptor 4, with the mode $2; $3 is refuse or replace
    code=fail
    [ "$2" = - ] || chmod "$2" /proc/self/fd/4 || return 1
    put "$1" "$3" || return 1
    stat -L -c "$format" /proc/self/fd/4 && code=ok
}

put() { # move $1 to the last name
    case $2 in
    refuse) ln -T "$1" "./$n" && rm -f "$1" ;;
    *) replace "$1" ;;
    esac
}

replace() {
    mv -fT "$1" "./$n" && return
    # busybox follows a link that is to be replaced
    [ -L "./$n" ] && [ ! -f "./$n" ] && rm -f "./$n" && mv -fT "$1" "./$n"
}

store() { # create or replace a small file in one step
    mode=$1 existing=$2 draft=./$3 count=$4 received=
    shift 4
    walk "$@" || spill "$count" || return 1
    code=fail
    set -C
    store_open 4>"$draft" 2>&1
    stored=$?
    set +C
    [ $stored = 0 ] || spill "$count"
}

store_open() {
    set +C
    received=1
    if ! receive "$count" >&4; then
        rm -f "$draft"
        answer lost
        exit # the rest of the content would be read as requests
    fi
    finish "$draft" "$mode" "$existing" && return
    rm -f "$draft"
    return 1
}

begin() {
    walk
    code=fail
    set -C
    begin_open 4>"./$1"
    begun=$?
    set +C
    return $begun
}

begin_open() { stat -L -c "$format" /proc/self/fd/4 && code=ok; }

more() { # append to the draft $1
    identity=$2 count=$3 received=
    walk
    code=again
    append_open "" 3<"./$1" || spill "$count"
}

append() {
    identity=$1 size=$2 count=$3 received=
    shift 3
    walk "$@" || spill "$count" || return 1
    code=again
    append_open "$size" 3<"./$n" || spill "$count"
}

append_open() { # through the descriptor, so that no other file is created or changed
    is_held "$identity" || return 1
    received=1
    if ! receive "$count" >>/proc/self/fd/3; then
        [ -z "$1" ] || truncate -c -s "$1" /proc/self/fd/3
        answer lost
        exit
    fi
    stat -L -c "$format" /proc/self/fd/3 && code=ok
}

publish() {
    draft=/proc/self/fd/8/$1 identity=$2 mode=$3 existing=$4
    shift 4
    walk "$@" || return 1
    code=again
    publish_open 3<"$draft"
}

publish_open() {
    is_held "$identity" && finish "$draft" "$mode" "$existing" 4<&3
}

discard() {
    walk
    rm -f "./$1"
}

copy() {
    draft=$1 count=$2
    shift 2
    walk "$@" && opening copy_open
}

copy_open() {
    verified || return 1
    printf '%s\n' "$is"
    code=fail
    set -C
    copy_into 4>"/proc/self/fd/8/$draft"
    copied=$?
    set +C
    return $copied
}

copy_into() {
    dd bs=1048576 iflag=count_bytes "count=$count" status=none <&3 >&4 &&
        stat -L -c "$format" /proc/self/fd/4 && code=ok
}

# Other changes

act() { # run "$@" and set the code
    code=fail
    "$@" || return 1
    code=ok
}

divide() { # the first $1 names into $head, the others into $tail; no field contains a space
    first=$1 head= tail=
    shift
    for part; do
        if [ "$first" -gt 0 ]; then head="$head $part"; else tail="$tail $part"; fi
        first=$((first - 1))
    done
}

mkdirs() { # create the directories after the first $1 names, each in the one before
    divide "$@"
    walk_in $head || return 1
    made=0
    for part in $tail; do
        decode "$part"
        at=$made
        act mkdir "./$decoded" && enter "$decoded" || return 1
        made=$((made + 1))
    done
    code=ok
}

rmdir_() { walk "$@" && act rmdir "./$n"; }
unlink_() { walk "$@" && act rm "./$n"; }

purge() { # remove a directory and everything in it but other directories
    walk_in "$@" && act find . -maxdepth 1 -mindepth 1 ! -type d -exec rm -f {} + || return 1
    gone=${want##*/}
    climb && act rmdir "./$gone"
}

link_() {
    draft=./$1 existing=$2
    decode "$3"
    text=$decoded
    shift 3
    walk "$@" && act ln -sT -- "$text" "$draft" || return 1
    act put "$draft" "$existing" && return
    rm -f "$draft"
    return 1
}

touch_() {
    identity=$1 when=$2 fine=$3
    shift 3
    walk "$@" || return 1
    code=again
    touch_open 3<"./$n"
}

touch_open() {
    is_held "$identity" || return 1
    act touch -c -d "@$when.$fine" /proc/self/fd/3 || act touch -c -d "@$when" /proc/self/fd/3 || return 1
    stat -L -c "$format" /proc/self/fd/3
}

move() { # the entry at the first $2 names to the other names
    existing=$1
    shift
    divide "$@"
    walk $head || return 1
    from=$n code=denied
    move_from 5<.
}

move_from() {
    walk $tail || return 1
    moved=/proc/self/fd/5/$from
    if [ "$existing" = refuse ] && [ -d "$moved" ] && [ ! -L "$moved" ]; then
        # A directory cannot have a second name; it never replaces what is not one.
        code=exists
        [ ! -e "./$n" ] && [ ! -L "./$n" ] || return 1
        existing=replace
    fi
    act put "$moved" "$existing"
}

end() { # kill the previous agent, if it is still running
    case $(tr '\000' ' ' <"/proc/$1/cmdline") in
    *"$2"*) kill -9 "$1" ;;
    esac
}

sweep() { # remove the drafts of dead processes
    walk
    find . -maxdepth 1 -mindepth 1 -name '.carrel-draft-*' ! -type d -mmin +60 -exec rm -f {} +
}

# Start

holders=
trap 'kill $holders' EXIT
missing=
for tool in stat find mv ln rm mkdir rmdir readlink touch chmod truncate dd sleep tr; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
if [ -n "$missing" ]; then
    printf '%s' "$missing"
    answer tools
    exit
fi
if ! cd -P "$1" || ! [ -r . ]; then
    answer root
    exit
fi
exec 8<.
base=${PWD%/}
if ! stat -c "$format" /proc/self/fd/8 >/dev/null || ! dd bs=1 count=1 iflag=fullblock,count_bytes status=none; then
    answer features
    exit
fi
printf '%s' $$
answer ok

while read -r line <&9; do
    set -- $line
    token=$1 operation=$2 code=ok at=0
    shift 2
    case $operation in
    lstat | follow | list | hold | held | drop | store | begin | more | append | publish | discard | copy) ;;
    mkdirs | purge | move | end | sweep) ;;
    read | rmdir | unlink | link | touch) operation=${operation}_ ;;
    *) exit ;;
    esac
    "$operation" "$@" 2>&1
    answer "$code"
done

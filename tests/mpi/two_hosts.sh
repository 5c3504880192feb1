#!/bin/sh
# Runs a command on the first of two hosts, which it makes on this machine of Linux namespaces.
#
#     two_hosts.sh FOLDER COMMAND [ARGUMENT...]
#
# The hosts, h1 and h2, share all files, as on a cluster. Each has a name, a network, System V IPC and a /dev/shm of its
# own. A pair of virtual Ethernet devices joins them, eth0 on either; nothing else does. FOLDER is for the files that
# this needs, and gets `bytes`: how many bytes have gone through the network, both ways together. host_launcher.sh runs
# a command on one of them as ssh would, so that this is an MPICH job on both:
#
#     two_hosts.sh FOLDER mpirun -launcher ssh -launcher-exec host_launcher.sh -hosts h1,h2 -ppn 2 -np 4 PROGRAM
#
# Exits with what the command exits with; with 77, after saying why, if no such hosts can be made here.
#
# All of it is in a process ID namespace whose first process is this script. When that ends, in whatever way, the kernel
# kills the rest, and the namespaces go with their last process, and devices and mounts with them. So there is nothing
# to clean up, and nothing that a second run at the same time could meet.
set -u

cannot() {
    echo "no two hosts here: $*" >&2
    exit 77
}

# must COMMAND...: a step without which there are no hosts.
must() {
    "$@" || cannot "$* has failed"
}

# become NAME: makes a host of the namespaces that this process is in.
become() {
    must hostname "$1"
    must ip link set lo up
    # /sys shows the network of its mounting, and there UCX looks for devices.
    must mount -t sysfs sysfs /sys
    # Folders in the machine's /dev/shm are not shared memory but files, of tests that have it for TMPDIR.
    exec 3</dev/shm
    must mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    for kept in /proc/self/fd/3/*/; do
        kept=${kept%/}
        mkdir "/dev/shm/${kept##*/}" && mount --no-canonicalize --bind "$kept" "/dev/shm/${kept##*/}"
    done 2>/dev/null
    exec 3<&-
}

# on_second COMMAND...: in the network of the second host.
on_second() {
    nsenter --net="/proc/$HOSTS_SECOND/ns/net" "$@"
}

# is_up: waits for both devices. The kernel finds out by and by, and until it has UCX leaves a device out.
is_up() {
    tries=0
    while [ $tries -lt 50 ]; do
        case $(ip link show eth0; on_second ip link show eth0) in
        *"state UP"*"state UP"*) return 0 ;;
        esac
        sleep 0.1
        tries=$((tries + 1))
    done
    return 1
}

first() {
    folder=$1
    shift
    # Processes have other numbers in this namespace, and nsenter and UCX look them up.
    must mount -t proc proc /proc
    printf '%s\n' "127.0.0.1 localhost" "192.0.2.1 h1" "192.0.2.2 h2" >"$folder/hosts" || exit 99
    must mount --bind "$folder/hosts" /etc/hosts
    rm -f "$folder/pid" "$folder/bytes"
    mkfifo "$folder/pid" || exit 99
    # If the second host fails, its end of the pipe is closed, and there is nothing to read.
    unshare --mount --net --uts --ipc sh "$0" --second >"$folder/pid" &
    read -r HOSTS_SECOND <"$folder/pid" || cannot "the second cannot be made"
    export HOSTS_SECOND
    become h1
    must ip link add eth0 type veth peer name eth0 netns "/proc/$HOSTS_SECOND/ns/net"
    must ip address add 192.0.2.1/24 dev eth0
    must on_second ip address add 192.0.2.2/24 dev eth0
    must ip link set eth0 up
    must on_second ip link set eth0 up
    is_up || cannot "the network does not come up"

    "$@"
    code=$?
    cat /sys/class/net/eth0/statistics/[rt]x_bytes | awk '{ n += $1 } END { print n }' >"$folder/bytes"
    exit $code
}

second() {
    become h2
    echo $$
    exec sleep 1000000 >/dev/null
}

case $1 in
--first)
    shift
    first "$@"
    ;;
--second) second ;;
esac

for tool in unshare nsenter mount hostname ip; do
    command -v $tool >/dev/null || cannot "$tool is missing"
done
# Root may do without a user namespace, and then keeps all its rights to files; others need one.
for user in "" --map-root-user; do
    namespaces="$user --mount --net --uts --ipc --pid --fork"
    # shellcheck disable=SC2086 # a list of words
    if unshare $namespaces true 2>/dev/null; then
        exec unshare $namespaces --kill-child sh "$0" --first "$@"
    fi
done
cannot "this user may not make namespaces"

#!/bin/sh
# What mpirun runs in the place of ssh on the hosts that two_hosts.sh makes: host_launcher.sh [-x] HOST COMMAND...
[ "$1" != -x ] || shift
host=$1
shift
case $host in
h1) exec sh -c "$*" ;;
h2) exec nsenter --target "$HOSTS_SECOND" --mount --net --uts --ipc sh -c "$*" ;;
esac
echo "host_launcher.sh: no host $host" >&2
exit 255

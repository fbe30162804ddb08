#!/bin/bash
# This is the second program of the guest. It makes the wire and the RDMA devices, runs the command, and
# returns the command's exit status.
# shellcheck disable=SC1091,SC2154 # conf and env are written by boot.sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; cd /run/rdma-vm || exit; . ./conf; : >started
clocks() { : >now; local host; host=$(stat -c %.6Y now); echo "${EPOCHREALTIME/./} ${host/./}"; } # the guest's and its host's, which dates files; us
mkdir -p "/lib/modules/${lib##*/}"; mount --bind "$lib" "/lib/modules/${lib##*/}"
opt=trans=virtio,version=9p2000.L,msize=512000,cache=mmap
read -r began_here began_there < <(clocks)
for n in "${!shares[@]}"; do mount -t 9p -o "$opt" "share$n" "${shares[n]}"; done
# Addresses are valid at once, because duplicate detection is off. Therefore no GID appears later, while a
# command is running.
echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad; modprobe veth; ip -batch wire; ip -6 -batch wire6
# A veth pair has a queue of received packets on each CPU, so a packet could overtake others of its connection
# that another CPU has sent. Then soft-RoCE sends READs again, too late. With RPS, one CPU receives a connection.
for v in v0 v1; do printf '%x' "$(((1 << $(nproc)) - 1))" >"/sys/class/net/$v/queues/rx-0/rps_cpus"; done
for c in all v0 v1; do echo 1 >/proc/sys/net/ipv4/conf/$c/accept_local; echo 0 >/proc/sys/net/ipv4/conf/$c/rp_filter; done
[ "$link" = none ] || modprobe -a ib_uverbs rdma_ucm
[ "$link" = none ] || for n in 0 1; do rdma link add "$link$n" type "$link" netdev "v$n"; done
# The kernel calibrates its processor's clock with a timer that a busy host emulates late, so the result may
# be wrong by any factor. ACPI's timer needs no calibration.
skew() { # SINCE_HERE SINCE_THERE: how fast the guest's clock has run since then, in thousandths of its host's
  read -r here there < <(clocks); echo "$(((here - $1) * 1000 / (there - $2 + 1)))"
}
at_boot=$(skew "$began_here" "$began_there"); echo "$at_boot" >clock
if [ "$at_boot" -lt 900 ] || [ "$at_boot" -gt 1100 ]; then echo acpi_pm >/sys/devices/system/clocksource/clocksource0/current_clocksource; fi
read -r began_here began_there < <(clocks)
ulimit -l unlimited; ulimit -n 65536; mkfifo /run/out /run/err
cat </run/out >/dev/vport0p1 & cat </run/err >/dev/vport0p2 &
dmesg -n 8 # to the console, which the host keeps: all that the kernel says from now on
# A thread that has hung in the kernel for two minutes ends the guest, and the log shows where it waits.
# Otherwise such a thread would take the whole time limit.
for k in timeout_secs=120 check_interval_secs=10 panic=1; do echo "${k#*=}" >"/proc/sys/kernel/hung_task_${k%=*}"; done
if [ "$limit" -gt 30 ]; then { sleep "$((limit - 20))"; echo w >/proc/sysrq-trigger; } & disown; fi # who hangs, and where
( . ./env; export RDMA_VM=$link; . ./cmd ) </dev/null >/run/out 2>/run/err; echo $? >rc
skew "$began_here" "$began_there" >>clock
for n in {1..50}; do [ -n "$(jobs -r)" ] || break; sleep 0.1; done # the last output, unless a stray process holds it open
sync; echo b >/proc/sysrq-trigger; sleep 60

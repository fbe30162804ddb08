#!/bin/bash
# Second program of the guest: makes the wire and the RDMA devices, runs the command, hands back its exit status.
# shellcheck disable=SC1091,SC2154 # conf and env are written by boot.sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; cd /run/rdma-vm || exit; . ./conf
mkdir -p "/lib/modules/${lib##*/}"; mount --bind "$lib" "/lib/modules/${lib##*/}"
opt=trans=virtio,version=9p2000.L,msize=512000,cache=mmap
for n in "${!shares[@]}"; do mount -t 9p -o "$opt" "share$n" "${shares[n]}"; done
modprobe veth; ip -batch wire
for c in all v0 v1; do echo 1 >/proc/sys/net/ipv4/conf/$c/accept_local; echo 0 >/proc/sys/net/ipv4/conf/$c/rp_filter; done
[ "$link" = none ] || modprobe -a ib_uverbs rdma_ucm
[ "$link" = none ] || for n in 0 1; do rdma link add "$link$n" type "$link" netdev "v$n"; done
ulimit -l unlimited; ulimit -n 65536; mkfifo /run/out /run/err
cat </run/out >/dev/vport0p1 & cat </run/err >/dev/vport0p2 &
( . ./env; export RDMA_VM=$link; . ./cmd ) </dev/null >/run/out 2>/run/err; echo $? >rc
for n in {1..50}; do [ -n "$(jobs -r)" ] || break; sleep 0.1; done # the last output, unless a stray process holds it open
sync; echo b >/proc/sysrq-trigger; sleep 60

#!/bin/busybox sh
# shellcheck shell=dash
# This is the first program of the guest. This program mounts the host's files over 9p under a throw-away
# overlay, then starts guest.sh in them.
/bin/busybox --install -s /bin; PATH=/bin
mount -t devtmpfs dev /dev; mount -t proc proc /proc; mount -t sysfs sys /sys
for m in /mod/*; do insmod "$m"; done
opt=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o "$opt,ro,cache=loose" root /ro
mount -t tmpfs -o size=75% rw /rw; mkdir /rw/u /rw/w
mount -t overlay -o lowerdir=/ro,upperdir=/rw/u,workdir=/rw/w overlay /new
mkdir /dev/shm /dev/pts; mount -t tmpfs shm /dev/shm; mount -t devpts pts /dev/pts
ln -s /proc/self/fd /dev/fd; for n in 0:in 1:out 2:err; do ln -s "fd/${n%:*}" "/dev/std${n#*:}"; done
for d in proc sys dev; do mkdir -p /new/$d; mount --move /$d /new/$d; done
mkdir -p /new/run; mount -t tmpfs run /new/run; mkdir /new/run/rdma-vm
mount -t 9p -o "$opt,cache=none" ctl /new/run/rdma-vm
exec switch_root /new /bin/bash /run/rdma-vm/init

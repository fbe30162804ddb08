#!/bin/bash
# Runs a command in a throw-away QEMU guest whose Debian kernel has real RDMA (soft-RoCE or soft-iWARP).
# scripts/rdma-vm.mjs starts this script, and installs the packages that the script needs. README.md in this
# folder has the picture.
#
#   test/rdma-vm/boot.sh [options] COMMAND [ARG...]
#     --link rxe|siw|none  the RDMA driver to put on both ends of a virtual wire (default rxe)
#     --share DIR          what the guest writes in DIR is on the host too (repeatable); everywhere else the guest
#                          sees the host's files, and its writes go to a tmpfs that is thrown away
#     --mem MIB (2048)   --smp CPUS (2)   --timeout SECONDS (600)   --kernel PACKAGE[/SUITE] (linux-image-amd64)   --verbose
# The command runs as root, in the same directory, with the same environment plus RDMA_VM=<link>, without
# stdin and with unlimited locked memory. The command's stdout and stderr stay separate. Exit status: that of
# the command; 77 when a part of the guest is not available here; 124 when the command ran out of time; 125
# when the guest could not run it. When the command fails, the end of the guest's kernel log follows on
# stderr. RDMA_RPC_VM_CACHE names the cache. RDMA_RPC_VM_QEMU has more arguments for QEMU, and
# RDMA_RPC_VM_APPEND for the kernel. RDMA_RPC_VM_ACCEL=tcg turns KVM off. Without that setting, a /dev/kvm is
# used only where the processor supports it. A virtual host without such support emulates KVM in software that
# knows few instructions.
set -euo pipefail
usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 125; }
die() { echo "rdma-vm: $*" >&2; exit 125; }
lacking() { echo "rdma-vm: not run: $*" >&2; exit 77; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
link=rxe mem=2048 smp=2 limit=600 package=linux-image-amd64 verbose='' shares=()
while [ $# -gt 0 ]; do
  case $1 in
    --link) link=$2 ;;
    --share) shares+=("$(realpath -e "$2")") ;;
    --mem) mem=$2 ;; --smp) smp=$2 ;; --timeout) limit=$2 ;; --kernel) package=$2 ;;
    --verbose) verbose=1; shift; continue ;;
    --) shift; break ;;
    -*) usage ;;
    *) break ;;
  esac
  shift 2
done
[ $# -gt 0 ] || usage
PATH=$PATH:/usr/sbin:/sbin
for program in qemu-system-x86_64 busybox depmod modprobe ip xz flock apt-get dpkg-deb; do
  command -v "$program" >/dev/null || lacking "there is no $program"
done
case $PWD/ in /dev/* | /proc/* | /run/* | /sys/*) die "the guest has a $(cut -d/ -f1,2 <<<"$PWD") of its own: start from another folder" ;; esac
cache=${RDMA_RPC_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdma-rpc/vm}
top=$("$here/kernel.sh" "$cache" "$package" "$link") || { [ $? != 77 ] || exit 77; die "cannot make a kernel in $cache"; }
lib=$(echo "$top"/lib/modules/*)
# --- what this guest is to do, passed to it in a small writable share ----------------------------------------------
ctl=$(mktemp -d); trap 'rm -rf "$ctl"' EXIT; export -p >"$ctl/env"
{ printf 'cd %q && ' "$PWD"; printf '%q ' "$@"; } >"$ctl/cmd"
declare -p link lib shares limit >"$ctl/conf"
cp "$here/wire.ip" "$ctl/wire"
cp "$here/wire6.ip" "$ctl/wire6"
cp "$here/guest.sh" "$ctl/init"
install -D -m 755 "$here/initramfs.sh" "$ctl/ir/init"
{ cat "$top/initramfs"; (cd "$ctl/ir" && echo init | busybox cpio -o -H newc 2>"$ctl/qemu"); } >"$ctl/initramfs"
# --- run it --------------------------------------------------------------------------------------------------------
# An oops ends the guest at once, so that a broken kernel shows as a failure with its log instead of a command
# that hangs. no_timer_check is needed, because an emulated timer is late on a busy host, and the kernel would
# consider it broken.
qemu=(qemu-system-x86_64 -M pc -smp "$smp" -m "$mem" -nodefaults -display none -no-reboot
  -kernel "$top/vmlinux" -initrd "$ctl/initramfs" -serial "file:$ctl/console" -device virtio-serial-pci)
kernel="console=ttyS0 quiet panic=-1 oops=panic mitigations=off tsc=reliable no_timer_check"
# An emulated processor reports the same speed as the host's processor. The host's /proc shows that speed
# unless frequency scaling changes it, as in a virtual machine.
khz=''
[ -e /sys/devices/system/cpu/cpu0/cpufreq ] || khz=$(sed -n '/^cpu MHz/{s/.*: *//;s/[.]\([0-9]\{3\}\).*/\1/p;q}' /proc/cpuinfo)
port() { qemu+=(-chardev "file,id=$1,path=/dev/fd/$2,append=on" -device "virtserialport,chardev=$1,nr=$3"); }
disk() { qemu+=(-fsdev "local,id=$1,path=${2//,/,,},security_model=none,multidevs=remap$3"
  -device "virtio-9p-pci,fsdev=$1,mount_tag=$1"); }
port out 3 1; port err 4 2; disk root / ,readonly=on; disk ctl "$ctl" ''
for n in "${!shares[@]}"; do disk "share$n" "${shares[n]}" ''; done
exec 3> >(exec cat); out=$! # QEMU opens these by name, which it can a pipe but not every kind of stdout
exec 4> >(exec cat >&2 3>&-); err=$!
read -ra more <<<"${RDMA_RPC_VM_QEMU:-}"
ulimit -c 0; vm='' watcher='' status=0
trap 'kill $vm $watcher || true; wait $vm; exit 143' TERM INT HUP
accels=${RDMA_RPC_VM_ACCEL:-tcg}
[ -n "${RDMA_RPC_VM_ACCEL:-}" ] || [ ! -w /dev/kvm ] || ! grep -qwE 'vmx|svm' /proc/cpuinfo || accels='kvm tcg'
# QEMU keeps a guest that KVM could not continue, so that a person can examine it.
watch() { while sleep 1; do ! grep -q '^KVM internal error' "$ctl/qemu" || kill "$1" || true; done; }
# Many virtual hosts have a /dev/kvm that opens and then fails, so the guest itself tests it. Emulated
# processors sometimes execute code that another processor has half changed, while Linux 6.12 boots ("Oops:
# int3"). Nothing has run by then, so the next guest is started.
case $accels in *tcg) accels+=' tcg' ;; esac
before=''
for accel in $accels; do
  [ "$before" != tcg ] || echo "rdma-vm: the guest was started again: $(grep -m 1 -oE '(Oops|BUG|Kernel panic).*' "$ctl/console" || echo 'it stopped without a word')" >&2
  before=$accel status=0; : >"$ctl/console"
  # The kernel computes soft-RoCE's checksum of 79 bytes and more with PCLMULQDQ if the processor has it. QEMU
  # emulates this instruction so slowly that a packet of 80 bytes takes 2 us more than a packet of 78. Without
  # the instruction, the kernel uses tables for all sizes.
  cpu=max count=''
  [ "$accel" != tcg ] || { cpu=max,-pclmulqdq; count=${khz:+tsc_early_khz=$khz}; }
  timeout -k 5 "$limit" "${qemu[@]}" -append "$kernel $count ${RDMA_RPC_VM_APPEND:-}" -cpu "$cpu" -accel "${accel/tcg/tcg,thread=multi}" "${more[@]}" </dev/null >"$ctl/qemu" 2>&1 & vm=$!
  watch "$vm" >/dev/null 2>&1 3>&- 4>&- & watcher=$!
  wait "$vm" 2>/dev/null || status=$?
  kill "$watcher" || true
  if [ -e "$ctl/started" ] || [ "$status" = 124 ]; then break; fi
done
exec 3>&- 4>&-; wait "$out" "$err" || true
rc=$(cat "$ctl/rc" 2>/dev/null || true)
case $verbose$rc in
  0 | 77) ;;
  *) { cat "$ctl/qemu"; sed -i '/sysrq: Resetting/d' "$ctl/console"
    [ ! -s "$ctl/console" ] || { echo "rdma-vm: the end of the guest's kernel log:"; tail -n 60 "$ctl/console"; }; } >&2 ;;
esac
# The first measurement covers the boot, and the second covers the time from then on.
boot='' run=''
[ ! -s "$ctl/clock" ] || { read -r boot; read -r run || true; } <"$ctl/clock"
off() { [ -n "$1" ] && { [ "$1" -lt "$2" ] || [ "$1" -gt "$3" ]; }; }
times() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }
if off "$boot" 900 1100; then echo "rdma-vm: the guest's clock ran $(times "$boot") times as fast as its host's while it booted, and then by another timer"; fi >&2
if off "$run" 970 1030; then echo "rdma-vm: the guest's clock ran $(times "$run") times as fast as its host's"; fi >&2
[ -z "$rc" ] || exit "$rc"
[ "$status" -ne 124 ] || { echo "rdma-vm: not finished after $limit s" >&2; exit 124; }
die "the guest (${accel:-}) stopped without a result$([ -e "$ctl/started" ] || echo " before it had started: is the cache $cache broken?")"

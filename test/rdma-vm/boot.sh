#!/bin/bash
# Runs a command in a throw-away QEMU guest whose Debian kernel has real RDMA (soft-RoCE or soft-iWARP). Started by
# scripts/rdma-vm.mjs, which installs what it needs; README.md in this folder has the picture.
#
#   test/rdma-vm/boot.sh [options] COMMAND [ARG...]
#     --link rxe|siw|none  the RDMA driver to put on both ends of a virtual wire (default rxe)
#     --share DIR          what the guest writes in DIR is on the host too (repeatable); everywhere else the guest
#                          sees the host's files, and its writes go to a tmpfs that is thrown away
#     --mem MIB (2048)   --smp CPUS (2)   --timeout SECONDS (600)   --kernel PACKAGE (linux-image-amd64)   --verbose
# The command runs as root, in the same directory, with the same environment plus RDMA_VM=<link>, without stdin and
# with unlimited locked memory; its stdout and stderr come back apart. Exit status: the command's; 77 what the guest is made of
# cannot be had here; 124 the command ran out of time; 125 the guest could not run it.
# More arguments: RDMA_RPC_VM_QEMU for QEMU, RDMA_RPC_VM_APPEND for the kernel. Cache: RDMA_RPC_VM_CACHE.
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
for program in qemu-system-x86_64 busybox depmod modprobe ip xz flock apt-get dpkg-deb; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || lacking "there is no $program"
done
PATH=$PATH:/usr/sbin:/sbin
# --- the kernel, its modules and an initramfs: made once per kernel version ----------------------------------------
cache=${RDMA_RPC_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdma-rpc/vm}
mkdir -p "$cache"; exec 9>"$cache/lock"; flock 9
if [ ! -s "$cache/$package" ]; then # the version that a meta package stands for, kept as long as the cache is
  real=$(apt-cache depends "$package" | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | tail -n 1 || true)
  echo "${real:-$package}" >"$cache/$package"
fi
real=$(<"$cache/$package") version=${real#linux-image-} top=$cache/${real#linux-image-}
vmlinuz=$cache/$version/boot/vmlinuz-$version lib=$cache/$version/lib/modules/$version
field() { od -An -v -t "u$2" -j "$1" -N "$2" "$vmlinuz" | tr -d ' '; } # a number in the kernel's boot header

prepare() (
  tmp=$(mktemp -d "$cache/tmp.XXXXXX"); trap 'rm -rf "$tmp"' EXIT; cd "$tmp"
  apt-get -qq download "$real" 2>apt.log || { cat apt.log >&2; lacking "cannot download the Debian package $real (apt-get update may help)"; }
  mkdir -p "$top" ir/{bin,mod,dev,proc,sys,ro,rw,new}
  dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x -C "$top" --wildcards --no-wildcards-match-slash \
    './boot/vmlinuz*' './lib/modules/*/modules*' './lib/modules/*/kernel/'{arch,crypto,fs,lib,net} \
    './lib/modules/*/kernel/drivers/'{virtio,'char/*.ko*','net/*.ko*',infiniband/{core,sw}}
  depmod -b "$top" "$version"
  # Decompressing itself takes an emulated kernel 3 s: take the payload out of the bzImage (boot protocol 2.08) now.
  dd if="$vmlinuz" of=payload bs=1M status=none iflag=skip_bytes,count_bytes \
    skip=$(((1 + $(field 497 1)) * 512 + $(field 584 4))) count=$(($(field 588 4) - 4))
  { xz -dcq payload || zstd -dcq payload || cat "$vmlinuz"; } >"$top/vmlinux" 2>/dev/null
  # The initramfs holds no more than it takes to reach the host's files: busybox, 9p over virtio, overlay.
  cp "$(command -v busybox)" ir/bin
  for m in virtio_pci virtio_console 9pnet_virtio 9p overlay; do
    modprobe -d "$top" -S "$version" --show-depends "$m" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
  done | awk '!seen[$0]++' | while read -r f; do
    n=$((${n:-100} + 1)); case $f in *.xz) xz -dc "$f" ;; *) cat "$f" ;; esac >"ir/mod/$n"
  done
  cp "$here/initramfs.sh" ir/init
  chmod +x ir/init; (cd ir && find . | busybox cpio -o -H newc 2>/dev/null) >initrd
  mv initrd "$top" # last: its presence says that all of it is there
)
build_siw() ( # Debian's kernel leaves siw out (# CONFIG_RDMA_SIW is not set): build the module from Debian's source
  tmp=$(mktemp -d "$cache/tmp.XXXXXX"); trap 'rm -rf "$tmp"' EXIT
  src=linux-source-$(cut -d. -f1,2 <<<"$version") dir=drivers/infiniband/sw/siw
  { tar -C "$tmp" -xf "/usr/src/$src.tar.xz" "$src/$dir" &&
    make -C "/usr/src/linux-headers-$version" M="$tmp/$src/$dir" CONFIG_RDMA_SIW=m modules; } >"$tmp/log" 2>&1 ||
    { cat "$tmp/log" >&2; die "cannot build siw: are $src, linux-headers-$version, gcc-12 and make installed?"; }
  mkdir -p "$lib/updates"; strip -g -o "$lib/updates/siw.ko" "$tmp/$src/$dir/siw.ko"; depmod -b "$top" "$version"
)
[ "$top/initrd" -nt "$here/initramfs.sh" ] || prepare
[ "$link" != siw ] || grep -qs updates/siw.ko "$lib/modules.dep" || build_siw
exec 9>&-
# --- what this guest is to do, passed to it in a small writable share ----------------------------------------------
ctl=$(mktemp -d); trap 'rm -rf "$ctl"' EXIT; export -p >"$ctl/env"
{ printf 'cd %q && ' "$PWD"; printf '%q ' "$@"; } >"$ctl/cmd"
declare -p link lib shares >"$ctl/conf"
cp "$here/wire.ip" "$ctl/wire"
cp "$here/guest.sh" "$ctl/init"
# --- run it --------------------------------------------------------------------------------------------------------
accel=tcg,thread=multi cpu=max
! { [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; } || accel=kvm cpu=host
qemu=(qemu-system-x86_64 -M pc -accel "$accel" -cpu "$cpu" -smp "$smp" -m "$mem" -nodefaults -display none -no-reboot
  -kernel "$top/vmlinux" -initrd "$top/initrd" -serial "file:$ctl/console" -device virtio-serial-pci
  -append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable ${RDMA_RPC_VM_APPEND:-}")
port() { qemu+=(-chardev "file,id=$1,path=/dev/fd/$2,append=on" -device "virtserialport,chardev=$1,nr=$3"); }
disk() { qemu+=(-fsdev "local,id=$1,path=${2//,/,,},security_model=none,multidevs=remap$3"
  -device "virtio-9p-pci,fsdev=$1,mount_tag=$1"); }
port out 3 1; port err 4 2; disk root / ,readonly=on; disk ctl "$ctl" ''
for n in "${!shares[@]}"; do disk "share$n" "${shares[n]}" ''; done
exec 3> >(exec cat); out=$! # QEMU opens these by name, which it can a pipe but not every kind of stdout
exec 4> >(exec cat >&2 3>&-); err=$! status=0
read -ra more <<<"${RDMA_RPC_VM_QEMU:-}"
timeout --foreground -k 5 "$limit" "${qemu[@]}" "${more[@]}" </dev/null >"$ctl/qemu" 2>&1 || status=$?
exec 3>&- 4>&-; wait "$out" "$err" || true
if [ -n "$verbose" ] || [ ! -s "$ctl/rc" ]; then cat "$ctl/qemu" "$ctl/console" >&2; fi
[ ! -s "$ctl/rc" ] || exit "$(<"$ctl/rc")"
[ "$status" -lt 124 ] || { echo "rdma-vm: not finished after $limit s" >&2; exit 124; }
die 'the guest stopped without a result'

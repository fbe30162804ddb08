#!/bin/bash
# Prepares the kernel of the guest, its modules and the first part of its initramfs. They come from Debian
# packages that are unpacked into a cache and never installed. boot.sh starts this script, which prints the
# folder with the results: vmlinux, initramfs, lib/modules/VERSION, version.
#
#   test/rdma-vm/kernel.sh CACHE PACKAGE LINK     PACKAGE: such as linux-image-amd64; LINK: siw needs a module more
#
# PACKAGE/SUITE is a package of another suite of the same archive, such as
# linux-image-amd64/bookworm-backports. The lists of that suite are kept in the cache, and apt's own lists are
# not changed. CACHE/PACKAGE contains the name of the real package to which a meta package referred when it
# was first requested, so that the kernel stays the same until the cache is removed. A folder is moved into
# its place when it is complete, and `contents` lists its files with their sizes. A folder in which a file is
# missing is made again. Exit status: 77 when a package is not available, 125 for any other error.
set -euo pipefail
cache=$1 package=${2/\//-from-} name=${2%/*} link=$3 suite='' apt=()
[ "$name" = "$2" ] || suite=${2#*/}
say() { echo "rdma-vm: $*" >&2; }
lacking() { say "not run: $*"; exit 77; }
die() { say "$*"; exit 125; }
mkdir -p "$cache"
exec 9>"$cache/lock" # two commands at once: the second one finds what the first has made
flock 9
rm -rf "$cache"/tmp.* # of one that was killed: nobody else is here
tmp=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

# Prints apt's options for another suite. The archive is the one from which the lists of this machine come.
other_suite() {
  local lists=$cache/apt-$suite key=/usr/share/keyrings/debian-archive-keyring.gpg archive
  mkdir -p "$lists"/{lists,archives}/partial
  # shellcheck disable=SC2016 # apt fills in the names
  archive=$(command apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Label: Debian' | sed -n 1p)
  [ -n "$archive" ] || lacking "apt has no list of Debian's archive to take $suite from (apt-get update may help)"
  [ -s "$key" ] || lacking "there is no $key (package debian-archive-keyring)"
  echo "deb [signed-by=$key] $archive $suite main" >"$lists/sources.list"
  apt=(-o "Dir::Etc::SourceList=$lists/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$lists/lists" -o "Dir::Cache=$lists")
}
apt-get() { command apt-get "${apt[@]}" "$@"; }
apt-cache() { command apt-cache "${apt[@]}" "$@"; }
update() { # the lists of packages: only root can renew those of the machine
  say 'apt-get update'
  if [ -n "$suite" ]; then apt-get -qq update >&2; return; fi
  if [ "$(id -u)" = 0 ]; then command apt-get -qq update >&2; else sudo -n env apt-get -qq update >&2; fi
}
download() { # PACKAGE[=VERSION]... into the current folder
  say "fetching $*"
  apt-get -qq download "$@" 2>"$tmp/apt.log" && return
  # Old lists name packages that the archive no longer has.
  update && apt-get -qq download "$@" 2>"$tmp/apt.log"
}
named() { # the kernel package that PACKAGE is or depends on: its name has the version
  { apt-cache depends "$1" | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | tail -n 1
    apt-cache show "$1" | sed -n 's/^Package: \(linux-image-[0-9].*\)/\1/p'; } 2>"$tmp/apt.log" | head -n 1 || true
}
choose() { # sets real (the package), version (the kernel's own name for its version) and top (the unpacked package)
  for attempt in lists update; do
    [ ! -s "$cache/$package" ] || break
    [ "$attempt" = lists ] || update || break
    named "$name" >"$cache/$package"
  done
  [ -s "$cache/$package" ] || lacking "apt knows no package $package (Debian packages are needed; apt-get update may help)"
  real=$(<"$cache/$package") version=${real#linux-image-} top=$cache/${real#linux-image-}
  siw=lib/modules/$version/updates/siw.ko headers=linux-headers-$version source=linux-source-$(cut -d. -f1,2 <<<"$version")
}
contents() { (cd "$1" && find . -type f ! -name contents -printf '%s %P\n' | LC_ALL=C sort); }
complete() { [ -s "$top/contents" ] && [ "$(contents "$top")" = "$(<"$top/contents")" ]; }

unpack_kernel() (
  mkdir -p "$tmp/deb" "$tmp/new" "$tmp/ir"/{bin,mod,dev,proc,sys,ro,rw,new}
  cd "$tmp/deb"
  download "$real" || { cat "$tmp/apt.log" >&2; lacking "cannot download the Debian package $real"; }
  new=$tmp/new vmlinuz=$tmp/new/boot/vmlinuz-$version
  dpkg-deb -f linux-image-*.deb Version >"$new/version"
  dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x -C "$new" --wildcards --no-wildcards-match-slash \
    './boot/vmlinuz*' './lib/modules/*/modules*' './lib/modules/*/kernel/'{arch,crypto,fs,lib,net} \
    './lib/modules/*/kernel/drivers/'{virtio,'char/*.ko*','net/*.ko*',infiniband/{core,sw}}
  depmod -b "$new" "$version"
  # An emulated kernel takes 3 s to decompress itself, so the payload is taken out of the bzImage (boot
  # protocol 2.08) now.
  field() { od -An -v -t "u$2" -j "$1" -N "$2" "$vmlinuz" | tr -d ' '; } # a number in its header
  dd if="$vmlinuz" of="$tmp/payload" bs=1M status=none iflag=skip_bytes,count_bytes \
    skip=$(((1 + $(field 497 1)) * 512 + $(field 584 4))) count=$(($(field 588 4) - 4))
  { xz -dcq "$tmp/payload" || zstd -dcq "$tmp/payload" || cat "$vmlinuz"; } >"$new/vmlinux" 2>"$tmp/log"
  rm -r "$tmp/new/boot"
  # The initramfs contains only the parts that are needed to reach the host's files: busybox, 9p over virtio,
  # and overlay. boot.sh adds /init.
  cp "$(command -v busybox)" "$tmp/ir/bin"
  number=100
  for module in virtio_pci virtio_console 9pnet_virtio 9p overlay; do
    modprobe -d "$new" -S "$version" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
  done | awk '!seen[$0]++' | while read -r file; do
    number=$((number + 1))
    case $file in *.xz) xz -dc "$file" ;; *.zst) zstd -dcq "$file" ;; *) cat "$file" ;; esac >"$tmp/ir/mod/$number"
  done
  (cd "$tmp/ir" && find . | busybox cpio -o -H newc) >"$new/initramfs" 2>"$tmp/log"
  contents "$new" >"$new/contents"
  rm -rf "$top"
  mv "$new" "$top"
)
build_siw() ( # Debian's kernel leaves siw out (# CONFIG_RDMA_SIW is not set): the module is built from Debian's source, same version
  # The build omits BTF, which would need pahole and is not used here.
  mkdir "$tmp/siw"
  cd "$tmp/siw"
  at="=$(<"$top/version")" dir=$source/drivers/infiniband/sw/siw
  download "$headers$at" "$source$at" || lacking "cannot download the Debian packages $headers and $source"
  more=$(dpkg-deb -f "$headers"_*.deb Depends | grep -oE 'linux-(headers-[^ ,]+-common|kbuild-[^ ,]+)')
  mapfile -t more <<<"$more"
  # A rebuild of the kernel may have replaced one of these packages but not yet the others. The newest
  # revisions of these packages can also build the module.
  for deb in "${more[@]}"; do
    download "$deb$at" || download "$deb" || lacking "cannot download the Debian package $deb"
  done
  for deb in linux-headers-*.deb linux-kbuild-*.deb; do dpkg-deb -x "$deb" .; done
  sed -i "s,/usr/src/,$PWD/usr/src/," "usr/src/$headers/Makefile"
  compiler=$(grep -oE 'gcc-[0-9]+' "usr/src/$headers/.kernelvariables" | head -n 1)
  command -v "$compiler" >/dev/null || compiler=gcc
  say "building siw with $compiler"
  { dpkg-deb --fsys-tarfile "$source"_*.deb | tar -xO "./usr/src/$source.tar.xz" | xz -dc -T2 | tar -x "$dir" &&
    make -C "usr/src/$headers" M="$PWD/$dir" CC="$compiler" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= modules; } >"$tmp/log" 2>&1 ||
    { tail -n 40 "$tmp/log" >&2; die "siw $version does not build with $compiler (needed: make and that compiler)"; }
  mkdir -p "$top/${siw%/*}"
  strip -g -o "$top/$siw" "$dir/siw.ko"
  depmod -b "$top" "$version"
  contents "$top" >"$tmp/contents"
  mv "$tmp/contents" "$top/contents"
)

[ -z "$suite" ] || other_suite
choose
complete || unpack_kernel
if [ "$link" = siw ] && [ ! -s "$top/$siw" ]; then
  # The archive keeps the source only of its newest kernels, so an older cache starts again with one of
  # today's kernels.
  at="=$(<"$top/version")"
  apt-get -qq --print-uris download "$headers$at" "$source$at" >"$tmp/apt.log" 2>&1 || {
    rm "$cache/$package"
    choose
    complete || unpack_kernel
  }
  build_siw
fi
echo "$top"

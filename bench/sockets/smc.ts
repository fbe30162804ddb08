/**
 * Sets up SMC (`AF_SMC`, RDMA below unchanged socket programs) on the two RDMA devices of this machine, for
 * rstream.ts. It needs root, Linux 6.12 or later, python3 and gcc, and changes the settings of the kernel, so
 * it is for a guest.
 *
 * SMC finds a device by a PNET ID that it shares with the network interface. Each device has an ID of its
 * own here, because with the same ID both ends take the first device. Soft-RoCE has only GIDs of RoCE v2, so
 * SMC needs its second version, and this needs an EID that both ends know.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Sends the settings over netlink (include/uapi/linux/smc.h), because Debian has no smc-tools. */
const settings = `
import socket, struct, sys
link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
link.bind((0, 0))
def attribute(number, value):
    return struct.pack('=HH', 4 + len(value), number) + value + bytes(-len(value) % 4)
def ask(family, command, version, flags, attributes):
    body = struct.pack('=BBH', command, version, 0) + attributes
    link.send(struct.pack('=IHHII', 16 + len(body), family, flags, 1, 0) + body)
    return link.recv(65536)
def family(name):
    answer, at = ask(16, 3, 1, 1, attribute(2, name + b'\\0')), 20
    while at < len(answer):
        length, number = struct.unpack_from('=HH', answer, at)
        if number == 1:
            return struct.unpack_from('=H', answer, at + 4)[0]
        at += (length + 3) & ~3
    raise SystemExit('this kernel has no ' + name.decode())
def change(family, command, attributes):
    error = struct.unpack_from('=i', ask(family, command, 1, 5, attributes), 16)[0]
    if error != 0:
        raise SystemExit('SMC refuses a setting: error %d' % error)
text = lambda word: word.encode() + b'\\0'
pnet = family(b'SMC_PNETID')
for number, pair in enumerate(sys.argv[1:]):
    device, interface = pair.split('/')
    change(pnet, 2, attribute(1, text('NET%d' % number)) + attribute(2, text(interface)) +
        attribute(3, text(device)) + attribute(4, b'\\1'))
change(family(b'SMC_GEN_NETLINK'), 10, attribute(1, b'RDMARPC'.ljust(32) + b'\\0'))
`;

/** As smc_run of smc-tools does, it makes each TCP socket of IPv4 a socket of SMC. */
const preload = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
int socket(int domain, int type, int protocol) {
  int (*next)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
  return domain == AF_INET && (type & 15) == SOCK_STREAM ? next(AF_SMC, type, 0) : next(domain, type, protocol);
}
`;

/** Returns the beginning of a command whose program uses SMC instead of TCP. Throws what the system lacks. */
export function setUpSmc(devices: readonly string[]): readonly string[] {
  execFileSync('modprobe', ['-a', 'smc', 'smc_diag'], { stdio: 'inherit' });
  const pairs = devices.map(
    (device) =>
      `${device}/${readFileSync(`/sys/class/infiniband/${device}/ports/1/gid_attrs/ndevs/0`, 'utf8').trim()}`,
  );
  execFileSync('python3', ['-c', settings, ...pairs], { stdio: 'inherit' });
  const source = join(tmpdir(), 'smc-preload.c');
  const library = join(tmpdir(), 'smc-preload.so');
  writeFileSync(source, preload);
  execFileSync('gcc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'], { stdio: 'inherit' });
  return ['env', `LD_PRELOAD=${library}`];
}

/** Returns how many queue pairs of the kernel's SMC there are. TCP is used when there is none. */
export function smcQueuePairs(): number {
  const text = execFileSync('rdma', ['resource', 'show', 'qp'], { encoding: 'utf8' });
  return text.split('\n').filter((line) => line.includes('[smc]')).length;
}

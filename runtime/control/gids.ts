/**
 * Addresses of RDMA ports (GIDs). A GID has 16 bytes, like an IPv6 address. The GID of an IPv4 address has
 * the form ::ffff:a.b.c.d. These functions are pure, so any thread may call them. The handshakes of client
 * and server use them through rails.ts.
 */
import { isIPv4 } from 'node:net';

const mapped = Buffer.from('00000000000000000000ffff', 'hex');
const mappedBits = 96;

/** Returns the 16 bytes of a valid IP address. */
export function bytesOf(address: string): Uint8Array {
  if (isIPv4(address)) return Buffer.concat([mapped, Buffer.from(address.split('.').map(Number))]);
  // The URL parser writes every IPv6 address in the same form, with at most one '::'.
  const [head = '', tail = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string): number[] =>
    text.split(':').flatMap((group) => (group === '' ? [] : [Number.parseInt(group, 16)]));
  const bytes = Buffer.alloc(16);
  groups(head).forEach((group, i) => {
    bytes.writeUInt16BE(group, 2 * i);
  });
  groups(tail)
    .reverse()
    .forEach((group, i) => {
      bytes.writeUInt16BE(group, 14 - 2 * i);
    });
  return bytes;
}

/** Returns whether the first bits of the two GIDs, which name the network, are the same. */
export function inNetwork(
  { gid, prefix }: { readonly gid: Uint8Array; readonly prefix: number | undefined },
  peer: Uint8Array,
): boolean {
  if (prefix === undefined) return false;
  const isMapped = mapped.every((byte, i) => gid[i] === byte);
  const bits = isMapped ? mappedBits + prefix : prefix;
  for (let bit = 0; bit < bits; ++bit) {
    const mask = 0x80 >> (bit % 8);
    if ((((gid[bit >> 3] ?? 0) ^ (peer[bit >> 3] ?? 0)) & mask) !== 0) return false;
  }
  return true;
}

/** Layout of a queue pair's address: docs/wire/fabrics.md. */
const magic = Buffer.from('RRVB');
const blobBytes = 72;
const gidAt = 56;

/** Returns the GID in the address of a queue pair of verbs, or undefined for other bytes. */
export function gidOf(blob: Uint8Array): Uint8Array | undefined {
  if (blob.byteLength !== blobBytes || magic.some((byte, i) => blob[i] !== byte)) return undefined;
  return blob.subarray(gidAt, blobBytes);
}

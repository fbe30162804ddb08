/**
 * The address of a program that listens for connections by rdma_cm and does not use this package.
 */
import { isIPv4, isIPv6, SocketAddress } from 'node:net';

const magic = Buffer.from('RRVL');
const portMax = 65_535;

function bytesOf(host: string): Uint8Array {
  if (isIPv4(host)) return Uint8Array.of(...Array(10).fill(0), 0xff, 0xff, ...host.split('.').map(Number));
  if (!isIPv6(host)) throw new TypeError(`listenerAddress(host, port): '${host}' is no IP address`);
  // The form that the system returns has at most one `::`, and writes IPv4 in its own notation.
  const { address } = new SocketAddress({ family: 'ipv6', address: host });
  const dotted = /(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const text = dotted === null ? address : address.replace(dotted[0], groupsOf(dotted.slice(1).map(Number)));
  const [front = '', back] = text.split('::');
  const words = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((word) => parseInt(word, 16));
  const [first, last] = [words(front), words(back ?? '')];
  const all = [...first, ...Array(8 - first.length - last.length).fill(0), ...last];
  return Uint8Array.from(all.flatMap((word: number) => [word >> 8, word & 0xff]));
}

function groupsOf([a = 0, b = 0, c = 0, d = 0]: number[]): string {
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

/**
 * Returns an address for `QueuePair.connect` that names a listener by its IP address and port. The listener
 * is a program that accepts connections by rdma_cm, such as a program written in C. It is for RDMA devices
 * that use rdma_cm (option `connect` of `openDevice`), and for queue pairs with `role: 'connect'`. The two
 * sides must exchange memory addresses and keys by messages of their own.
 */
export function listenerAddress(host: string, port: number): Uint8Array {
  if (typeof host !== 'string') throw new TypeError('listenerAddress(host, port): takes an IP address');
  if (!(Number.isInteger(port) && port >= 1 && port <= portMax))
    throw new RangeError(`listenerAddress(host, port): ${port} is not an integer from 1 to ${portMax}`);
  return Uint8Array.from([...magic, ...bytesOf(host), port & 0xff, port >> 8]);
}

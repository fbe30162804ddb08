/**
 * Hands over connections of the tcp fabric and of shared memory by descriptors. They arrive at the same
 * address as sideband connections, since proxies, tunnels and Kubernetes services pass on only that address,
 * and other containers can reach only that one. Their first bytes tell them from sideband connections
 * (docs/wire/fabrics.md §9). Used by a server's links.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FabricRow } from '../../fabrics.ts';
import { loadNative } from '../../native/native.ts';

export const connectMessageBytes = 40;
/** Read as the length of a control frame, this magic exceeds the limit. */
export const connectMessageMagic = 0x706d6452;

/** The remedy when two containers of one host connect over host:port. */
export const onlyUnix =
  'memory is shared with other users and containers of one host by a unix socket only: listen on unix:/path, in a directory or volume that both have';

/** Returns the descriptor from the libuv handle; undefined in other JS runtimes, and for closed sockets. */
export function descriptorOf(duplex: Duplex): number | undefined {
  const fd = (duplex as { _handle?: { fd?: unknown } })._handle?.fd;
  return typeof fd === 'number' && fd >= 0 ? fd : undefined;
}

/**
 * For each kind of dialling (fabrics.ts): why a client of one connection cannot use such fabrics; '' when it
 * can.
 */
export type HandoffRefusals = Readonly<Record<FabricRow['dials'], string>>;

/** Returns the refusals of a connection. A stream from another thread carries its own. */
export function handoffRefusals(duplex: Duplex): HandoffRefusals {
  const { handoffRefusals: known } = duplex as { handoffRefusals?: HandoffRefusals };
  if (known !== undefined) return known;
  const elsewhere = 'connections reach this server by way of another thread or process';
  if (!(duplex instanceof Socket)) return { nothing: '', hostPort: elsewhere, path: elsewhere };
  const noDescriptor =
    descriptorOf(duplex) === undefined ? 'this JS runtime does not provide the descriptors of sockets' : '';
  return duplex.remoteAddress === undefined
    ? {
        nothing: '',
        hostPort: 'the client is connected by a unix socket, not by TCP',
        path: noDescriptor,
      }
    : { nothing: '', hostPort: noDescriptor, path: onlyUnix };
}

/** The handlers of connections that a link does not read itself, chosen by their first bytes. */
export interface Handoff {
  /** See `handOff`. */
  handOff(duplex: Duplex, connectMessage: Uint8Array): string;
  /**
   * If present, every connection must use TLS or belong to a session. Performs the TLS handshake; rejects
   * with the reason when that fails.
   */
  secure?(duplex: Duplex): Promise<Duplex>;
  /**
   * Takes a connection that begins with a frame (within TLS, if there is TLS), with nothing read from it.
   * Without it the link reads the frames itself.
   */
  passOn?(duplex: Duplex): void;
}

/**
 * Hands the connection that began with `connectMessage` to its session. Returns '' on success, or why it was
 * refused. The caller destroys `duplex` without sending anything.
 */
export function handOff(duplex: Duplex, connectMessage: Uint8Array): string {
  const fd = descriptorOf(duplex);
  return fd === undefined
    ? 'a connection of a session: there is no descriptor of it'
    : loadNative().handOff(fd, connectMessage);
}

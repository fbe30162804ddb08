/**
 * Hands over the data connections of the fabrics tcp and shm-fd to native code. They arrive at the same
 * address as sideband connections. Proxies, tunnels and Kubernetes services pass on only that address, and
 * other containers can reach only that address. The first bytes of a connection show its kind
 * (docs/wire/fabrics.md §9). A server's links use this file.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FabricRow } from '../../fabrics.ts';
import { loadNative } from '../../native/native.ts';

export const connectMessageBytes = 40;
/**
 * The first four bytes of a connect message. A link cannot mistake them for the length of a frame, because
 * that length would exceed the limit.
 */
export const connectMessageMagic = 0x706d6452;

/** The error text for two containers of one host that connect over host:port. */
export const onlyUnix =
  'memory is shared with other users and containers of one host by a unix socket only: listen on unix:/path, in a directory or volume that both have';

/**
 * Returns the descriptor from the libuv handle. Returns undefined in other JS runtimes and for closed
 * sockets.
 */
export function descriptorOf(duplex: Duplex): number | undefined {
  const fd = (duplex as { _handle?: { fd?: unknown } })._handle?.fd;
  return typeof fd === 'number' && fd >= 0 ? fd : undefined;
}

/**
 * For each kind of dialling (fabrics.ts), the reason why the client of a connection cannot use fabrics that
 * dial in this way, or '' when it can use them.
 */
export type HandoffRefusals = Readonly<Record<FabricRow['dials'], string>>;

/** Returns the refusals of a connection. A stream from another thread has its refusals as a property. */
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

/**
 * The functions that take connections that a link does not read itself. The first bytes of the connection
 * decide which function is called.
 */
export interface Handoff {
  /** Takes the data connection of a session. The function `handOff` below implements it. */
  handOff(duplex: Duplex, connectMessage: Uint8Array): string;
  /**
   * Performs the TLS handshake. Rejects with the reason when the handshake fails. When this function is
   * present, every connection must use TLS or belong to a session.
   */
  secure?(duplex: Duplex): Promise<Duplex>;
  /** The error text for a client without TLS, if it is not the usual one. */
  readonly plainRefused?: string | undefined;
  /**
   * Takes a connection that begins with a frame (within TLS, if TLS is used), before anything was read from
   * it. When this function is absent, the link reads the frames itself.
   */
  passOn?(duplex: Duplex): void;
}

/**
 * Hands the connection that began with `connectMessage` to its session. Returns '' on success, or the reason
 * why it was refused. The caller destroys `duplex` without sending anything.
 */
export function handOff(duplex: Duplex, connectMessage: Uint8Array): string {
  const fd = descriptorOf(duplex);
  return fd === undefined
    ? 'a connection of a session: there is no descriptor of it'
    : loadNative().handOff(fd, connectMessage);
}

/**
 * The way in for connections of the tcp fabric, and of shared memory by descriptors. They come to the address
 * that the user has typed, as sideband connections do, since a proxy, a tunnel or a service passes nothing
 * else on, and another container has nothing else; they are told from those by their first bytes (WIRE, "The
 * tcp fabric"). Used by a server's links.
 */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { FabricRow } from '../../fabrics.ts';
import { loadNative } from '../../native/native.ts';

export const greetingBytes = 40;
/** As a length it would be that of a control frame far beyond all limits. */
export const greetingMagic = 0x706d6452;

/** What to do where two containers of one host meet at a host:port. */
export const onlyUnix =
  'memory is shared with other users and containers of one host by a unix socket only: listen on unix:/path, in a directory or volume that both have';

/** A handle of libuv has it; in other JS runtimes, and once it is closed, there is none. */
export function descriptorOf(duplex: Duplex): number | undefined {
  const fd = (duplex as { _handle?: { fd?: unknown } })._handle?.fd;
  return typeof fd === 'number' && fd >= 0 ? fd : undefined;
}

/**
 * By what a fabric dials (fabrics.ts): why clients that come by one connection cannot use it; '' when they
 * can.
 */
export type HandoffRefusals = Readonly<Record<FabricRow['dials'], string>>;

/** A stream from another thread says so itself. */
export function handoffRefusals(duplex: Duplex): HandoffRefusals {
  const { handoffRefusals: known } = duplex as { handoffRefusals?: HandoffRefusals };
  if (known !== undefined) return known;
  const elsewhere = 'connections reach this server by way of another thread or process';
  if (!(duplex instanceof Socket)) return { nothing: '', hostPort: elsewhere, path: elsewhere };
  const noDescriptor =
    descriptorOf(duplex) === undefined ? 'this JS runtime gives no descriptors of sockets' : '';
  return duplex.remoteAddress === undefined
    ? {
        nothing: '',
        hostPort: 'the client has come by a unix socket, and there is no tcp behind those',
        path: noDescriptor,
      }
    : { nothing: '', hostPort: noDescriptor, path: onlyUnix };
}

/** Where a link's connection goes by its first bytes, when the link does not read all of it. */
export interface Handoff {
  /** As `handOff`. */
  handOff(duplex: Duplex, greeting: Uint8Array): string;
  /** With it connections must come by TLS, or be for a session. Rejects with why there is none. */
  secure?(duplex: Duplex): Promise<Duplex>;
  /**
   * Takes a connection that begins with a frame, or that TLS has begun with, with nothing of it read. Without
   * it the link reads the frames itself.
   */
  passOn?(duplex: Duplex): void;
}

/**
 * Gives a connection that began with `greeting` to the session that it is for. Returns why not, or ''. The
 * caller destroys `duplex`, without a word.
 */
export function handOff(duplex: Duplex, greeting: Uint8Array): string {
  const fd = descriptorOf(duplex);
  return fd === undefined
    ? 'a connection of a session: there is no descriptor of it'
    : loadNative().handOff(fd, greeting);
}

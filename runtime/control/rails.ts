/**
 * Chooses between several RDMA devices of this machine for one peer. Two hosts are often joined by several
 * networks ("rails"), each with a device of its own, and a device reaches only the peers of its network. Both
 * handshakes use this file on their JS thread, when the GIDs of the peer are known.
 */
import { isIPv4 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { clockMs } from '../clock.ts';
import { type FabricName, fabricRow } from '../fabrics.ts';
import { loadNative, type VerbsOptions, type VerbsReport } from '../native/native.ts';
import { bytesOf, gidOf, inNetwork } from './gids.ts';
import type { LocalSide } from './handshake/session-setup.ts';
import { isNamed } from './verbs-devices.ts';
import { verbsConnectTimeoutMs } from './verbs-limits.ts';

/** Limit of the devices that a client tries with one server. */
const triesMax = 4;
/** Limit of the GIDs that a server names. */
const namedMax = 8;
/**
 * This is the time in ms for which the addresses of ports are cached. They seldom change, and an outdated
 * address costs at most an attempt that fails.
 */
const freshMs = 5_000;
/** Prefix length of the networks of InfiniBand and of IPv6 addresses without a known interface. */
const usualPrefix = 64;

/** One address of a device. */
export interface Rail {
  readonly device: string;
  /** The address as text, in the form of the option `address`. */
  readonly address: string;
  readonly gid: Uint8Array;
  /** Number of bits of the GID that name its network. It is undefined when the number is not known. */
  readonly prefix: number | undefined;
}

/** Returns the addresses of the ports that can be used, except for those of other network namespaces. */
export function railsOf(
  { devices }: Pick<VerbsReport, 'devices'>,
  { device = '', port, gidIndex }: VerbsOptions,
  prefixes: ReadonlyMap<string, number>,
): Rail[] {
  const named = devices.filter(({ name }) => device === '' || isNamed(device, name));
  return named.flatMap(({ name, whyNot, ports }) => {
    const gids = ports
      .filter(({ number, state }) => whyNot === '' && state === 'ACTIVE' && (port ?? number) === number)
      .flatMap((each) => each.gids)
      .filter(({ index }) => (gidIndex ?? index) === index);
    const own = gids.filter(({ gid }) => prefixes.has(gid));
    const addresses = new Set((own.length > 0 ? own : gids).map(({ gid }) => gid));
    return [...addresses].map((address) => ({
      device: name,
      address,
      gid: bytesOf(address),
      prefix: prefixes.get(address) ?? (isIPv4(address) ? undefined : usualPrefix),
    }));
  });
}

/**
 * Returns the rails, with the likely rails first: the rails whose network has one of these GIDs, then the
 * rail with the address of this end of the sideband connection, then the other rails in the order of the
 * devices.
 */
export function towards(
  rails: readonly Rail[],
  peers: readonly Uint8Array[],
  address: string | undefined,
): Rail[] {
  const rank = (rail: Rail): number =>
    (peers.some((peer) => inNetwork(rail, peer)) ? 2 : 0) + (rail.address === address ? 1 : 0);
  return [...rails].sort((a, b) => rank(b) - rank(a));
}

const known = new Map<string, { readonly rails: readonly Rail[]; readonly untilMs: number }>();

function ownRails(verbs: VerbsOptions): readonly Rail[] {
  const key = JSON.stringify([verbs.device, verbs.port, verbs.gidIndex]);
  const nowMs = clockMs();
  const fresh = known.get(key);
  if (fresh !== undefined && nowMs < fresh.untilMs) return fresh.rails;
  const prefixes = new Map(
    Object.values(networkInterfaces()).flatMap((entries = []) =>
      entries.flatMap(({ address, cidr }) =>
        cidr === null ? [] : [[address, Number(cidr.split('/')[1])] as const],
      ),
    ),
  );
  const rails = railsOf(loadNative().verbsDevices(0, verbs.device, 0), verbs, prefixes);
  known.set(key, { rails, untilMs: nowMs + freshMs });
  return rails;
}

/** Returns the GIDs that a welcome names, or undefined when the server offers no fabric with devices. */
export function namedGids(side: LocalSide, fabrics: readonly FabricName[]): Uint8Array[] | undefined {
  if (!fabrics.some((name) => fabricRow(name).hasDevice)) return undefined;
  return ownRails(side.verbs)
    .slice(0, namedMax)
    .map(({ gid }) => gid);
}

/**
 * Returns `side` once for each device that may reach a peer with these GIDs. Likely devices come first. The
 * first result is `side` itself where that device is the usual choice, so that sessions share its context.
 */
export function sidesTowards(
  side: LocalSide,
  fabric: FabricName,
  peers: readonly Uint8Array[] | undefined,
): readonly LocalSide[] {
  if (peers === undefined || !fabricRow(fabric).hasDevice) return [side];
  const rails = ownRails(side.verbs);
  if (rails.length < 2) return [side];
  const [usual] = towards(rails, [], side.address);
  return towards(rails, peers, side.address)
    .slice(0, triesMax)
    .map((rail) =>
      rail === usual
        ? side
        : { ...side, verbs: { ...side.verbs, device: rail.device }, address: rail.address },
    );
}

/**
 * The share of an attempt's time that RDMA devices may take. The rest of the time is for the other fabrics.
 */
const devicesPart = 0.8;

/**
 * Returns the time limit in ms for one of `devices` devices, or undefined when the device's own limit
 * suffices. All devices together may take as long as a single device, so that time of the attempt is left for
 * the next fabric. The fabric repeats its requests within this limit.
 */
export function shareMs(
  { verbs, attemptMs = Number.POSITIVE_INFINITY }: LocalSide,
  fabric: FabricName,
  devices: number,
): number | undefined {
  if (!fabricRow(fabric).hasDevice) return undefined;
  const ownMs = verbs.connectTimeoutMs ?? verbsConnectTimeoutMs.default;
  const limitMs = Math.min(ownMs, attemptMs * devicesPart) / devices;
  return limitMs < ownMs ? Math.ceil(limitMs) : undefined;
}

/** Returns the GID in the address of a queue pair, as a list for `sidesTowards`. */
export function gidsOfBlob(fabric: FabricName, blob: Uint8Array): Uint8Array[] | undefined {
  const gid = fabricRow(fabric).hasDevice ? gidOf(blob) : undefined;
  return gid === undefined ? undefined : [gid];
}

/**
 * Number of attaches that a server accepts in addition to one for each fabric, because a client may try
 * several devices.
 */
export const moreAttaches = triesMax - 1;

/**
 * The side of `rdma-rpc ping` in a handshake, which is the side of a channel with the same flags.
 */
import { clientChannel, createChannel } from '../../runtime/client/channel.ts';
import { type Address, formatAddress } from '../../runtime/control/socket/address.ts';
import { TlsDial } from '../../runtime/control/tls/tls-client.ts';
import type { Fabric } from '../../runtime/fabrics.ts';
import { securityOf } from '../server/tls-flags.ts';
import type { PingFlags } from './flags.ts';
import { lookupAll, type Target } from './reach.ts';

/** Throws for flags that contradict each other, and for files that cannot be used. */
export function targetFor(address: Address, flags: PingFlags): Target {
  const { timeout, fabric, device } = flags;
  const security = securityOf(flags);
  // A channel connects when a call needs it. This channel makes no call, and only checks the options.
  const channel = createChannel(formatAddress(address), {
    connectTimeoutMs: timeout,
    log: () => undefined,
    ...(fabric !== undefined && { fabric: fabric as Fabric }),
    ...(device !== undefined && { verbs: { device } }),
    ...security,
  });
  const isHost = address.kind === 'tcp';
  return {
    address,
    side: clientChannel('rdma-rpc ping', channel).side(),
    tls: isHost && security.tls !== undefined ? new TlsDial(security.tls, address.host) : undefined,
    timeoutMs: timeout,
    lookup: lookupAll,
  };
}

/**
 * Parses the address of a host whose port may be left out. `rdma-rpc ping` and `perf` use this file.
 */
import { isIP } from 'node:net';
import { parseAddress } from '../runtime/control/socket/address.ts';

/**
 * Parses `host`, `host:port`, `IPv6` or `[IPv6]:port`. Without a port in the text, the result has the
 * argument `port`. Returns undefined for any other text.
 */
export function hostPort(text: string, port: number): { host: string; port: number } | undefined {
  const bracketed = /^\[(.+)\]$/.exec(text)?.[1];
  const alone = bracketed ?? text;
  if (isIP(alone) === 6 || (bracketed === undefined && /^[^:]+$/.test(text))) return { host: alone, port };
  try {
    const found = parseAddress(text);
    return found.kind === 'tcp' && found.port > 0 ? { host: found.host, port: found.port } : undefined;
  } catch {
    return undefined;
  }
}

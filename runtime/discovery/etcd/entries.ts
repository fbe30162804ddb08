/**
 * The format of servers in etcd. A key begins with the service and a slash, and its JSON value has `Op`,
 * `Addr` and `Metadata`, as etcd's Go package naming/endpoints writes and reads them. This package writes the
 * key `service/address`, and as metadata an object with `weight`, `zone`, `doors` and the attributes.
 */
import type { Server, ServerAddress } from '../../client/connections/servers.ts';
import { usable } from '../watched.ts';

const bytes = new TextEncoder();
const text = new TextDecoder();

/**
 * Returns the range of keys that begin with `service/`. Because of the slash, `shop` does not include
 * `shopping`.
 */
export function rangeOf(service: string): { key: Uint8Array; rangeEnd: Uint8Array } {
  // '0' is the character that follows '/'.
  return { key: bytes.encode(`${service}/`), rangeEnd: bytes.encode(`${service}0`) };
}

export function entryOf(service: string, server: ServerAddress): { key: Uint8Array; value: Uint8Array } {
  const { address, weight, zone, doors, attributes } = server;
  const about = { ...attributes, weight, zone, doors };
  const given = Object.values(about).some((value) => value !== undefined);
  const value = JSON.stringify({ Op: 0, Addr: address, Metadata: given ? about : null });
  return { key: bytes.encode(`${service}/${address}`), value: bytes.encode(value) };
}

/**
 * Returns the server in a value, or undefined when the value has none. Go programs may write metadata of any
 * kind; only string values are used.
 */
export function serverOf(value: Uint8Array): Server | undefined {
  let parsed: { Addr?: unknown; Metadata?: unknown } | null;
  try {
    parsed = JSON.parse(text.decode(value)) as typeof parsed;
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null || typeof parsed.Addr !== 'string') return undefined;
  const address = parsed.Addr;
  const about = parsed.Metadata;
  if (typeof about === 'string') return usable({ address, attributes: { metadata: about } });
  if (typeof about !== 'object' || about === null || Array.isArray(about)) return usable({ address });
  const { weight, zone, doors, ...others } = about as Record<string, unknown>;
  const texts = Object.entries(others).filter(
    (each): each is [string, string] => typeof each[1] === 'string',
  );
  return usable({
    address,
    ...(typeof weight === 'number' && { weight }),
    ...(typeof zone === 'string' && { zone }),
    ...(Array.isArray(doors) && { doors }),
    ...(texts.length > 0 && { attributes: Object.fromEntries(texts) }),
  });
}

/** Method ids: the 32 bits that name a method on the wire. The generator and `defineService` make them; a server checks them for collisions when a service is added. */

/** Ids below are the protocol's own (docs/WIRE.md): 0 is no method, 2 the messages that a client sends on a stream. */
export const reservedMethodIds = 256;

/** 32-bit FNV-1a of the path's UTF-8 bytes, unsigned; what falls on a reserved id moves up by 256. */
export function methodId(path: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(path, 'utf8')) hash = Math.imul(hash ^ byte, 0x01000193);
  const id = hash >>> 0;
  return id < reservedMethodIds ? id + reservedMethodIds : id;
}

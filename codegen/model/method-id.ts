/** Method ids: the 32 bits that name a method on the wire. The generator makes them; a server checks them for collisions when a service is added. */

/** 32-bit FNV-1a of the path's UTF-8 bytes, unsigned. 0 is not a method, so it becomes 1. */
export function methodId(path: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(path, 'utf8')) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0 || 1;
}

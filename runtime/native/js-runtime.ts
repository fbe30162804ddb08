/**
 * Which JS runtime this is, as far as the addon must know. Asked once, when the addon is loaded (native.ts).
 */

/** What a context must know of the JS runtime. */
export interface RuntimeNeeds {
  /**
   * What wakes the JS thread: its own event loop, or a thread that waits, where there is no libuv. Default
   * `libuv`.
   */
  loop?: 'libuv' | 'thread';
  /** Who tells that a block's ArrayBuffer was collected: its memory, or the object. Default `memory`. */
  collected?: 'memory' | 'object';
}

/** The oldest versions that the tests have run on. Older ones may end the process instead of throwing. */
const oldest = { bun: [1, 4], deno: [2, 9] } as const;

/**
 * What a context needs to know. Node: nothing. Bun ends the process in `uv_poll_init`, and Deno calls back
 * from libuv without a handle scope, so there a thread waits; Deno tells an ArrayBuffer's end only to
 * finalizers of the object.
 *
 * Throws on a version that is too old, in one sentence.
 */
export function contextNeeds(versions: NodeJS.ProcessVersions = process.versions): RuntimeNeeds {
  for (const [name, [major, minor]] of Object.entries(oldest)) {
    const version = versions[name];
    if (version === undefined) continue;
    const [ourMajor = 0, ourMinor = 0] = version.split('.').map(Number);
    if (ourMajor < major || (ourMajor === major && ourMinor < minor)) {
      throw new Error(
        `rdma-rpc: ${name} ${version} is too old; use ${name} ${major}.${minor} or later, or Node 20.17 or later`,
      );
    }
    return name === 'deno' ? { loop: 'thread', collected: 'object' } : { loop: 'thread' };
  }
  return {};
}

/**
 * Tells the addon the facts that it must know about the JS runtime. native.ts uses it once, when it loads the
 * addon.
 */

/** The facts about the JS runtime that a context needs. */
export interface RuntimeNeeds {
  /**
   * The way in which native code wakes the JS thread: by the thread's own event loop, or by a separate
   * waiting thread where libuv cannot be used. Default `libuv`.
   */
  loop?: 'libuv' | 'thread';
  /**
   * The finalizer by which native code learns that a block's ArrayBuffer was collected: the finalizer of the
   * buffer's memory, or that of the ArrayBuffer object. Default `memory`.
   */
  collected?: 'memory' | 'object';
}

/** The oldest tested versions. Older versions may end the process instead of throwing. */
const oldest = { bun: [1, 4], deno: [2, 9] } as const;

/**
 * Returns the facts that a context must know about the JS runtime; for Node this is empty. Bun ends the
 * process in `uv_poll_init`, and Deno calls back from libuv without a handle scope. In these runtimes a
 * separate thread waits instead. Deno reports the end of an ArrayBuffer only to finalizers of the object.
 *
 * Throws a one-sentence error on a version that is too old.
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

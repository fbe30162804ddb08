/**
 * A process that may lock 64 KiB of memory and no more, as one of a user may on many machines. Used by tests
 * that start programs.
 */

/** What such a program's command begins with. Without the capability, the limit holds for root as well. */
export const littleLockedMemory: readonly string[] = [
  ...['prlimit', '--memlock=65536:65536'],
  ...['setpriv', '--bounding-set', '-ipc_lock', '--inh-caps', '-ipc_lock'],
];

/** Why there is none here; '' where there is. */
export const whyNotLittle: string =
  process.getuid?.() === 0 ? '' : 'not run: only root can drop a capability';

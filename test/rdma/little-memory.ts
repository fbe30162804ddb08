/**
 * Runs a program that may lock only 64 KiB of memory, which is the limit of ordinary users on many machines.
 * This file is for tests that start programs.
 */

/**
 * The prefix of the program's command. The prefix also drops a capability, because root could otherwise
 * exceed the limit.
 */
export const littleLockedMemory: readonly string[] = [
  ...['prlimit', '--memlock=65536:65536'],
  ...['setpriv', '--bounding-set', '-ipc_lock', '--inh-caps', '-ipc_lock'],
];

/** Returns why such a program cannot be started here, or "" when it can. */
export const whyNotLittle: string =
  process.getuid?.() === 0 ? '' : 'not run: only root can drop a capability';

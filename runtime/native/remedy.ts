/**
 * The error texts for an addon that does not load. native.ts and addon-path.ts call it once, after a failure.
 */

/** The part of the package that works without the addon (docs/guides/testing.md). */
export const worksWithoutAddon = 'messages, JSON, the generator and createInProcessChannel() work without it';

/** The place where the process runs. */
export interface Host {
  /** Version of glibc, or undefined where the C library is not glibc. */
  readonly glibc: string | undefined;
  readonly platform?: NodeJS.Platform;
  readonly arch?: NodeJS.Architecture;
}

/**
 * Returns the reason why no addon loads, the remedy, and the part of the package that works without the
 * addon.
 */
export function whyNoAddon(what: string, host: Host): string {
  return `rdma-rpc: ${what}; ${whoForbids() ?? remedyOn(host)}; ${worksWithoutAddon}`;
}

function remedyOn({ glibc, platform = process.platform, arch = process.arch }: Host): string {
  if (platform !== 'linux' || !['x64', 'arm64'].includes(arch))
    return 'connections between processes need it, and it is made for Linux with glibc on x64 and arm64';
  if (glibc === undefined)
    return 'this Node runs on musl (Alpine Linux), and connections between processes need glibc: use a system or an image with glibc, such as node:22-slim';
  return (
    `install @rdma-rpc/linux-${arch}, which package managers leave out with --omit=optional, ` +
    'or build it here with: npx rdma-rpc build-addon'
  );
}

/**
 * Returns which flag of Node forbids addons, and what to do about it. Returns undefined when there is no such
 * flag.
 */
function whoForbids(): string | undefined {
  const { permission } = process as { permission?: { has(scope: string): boolean } };
  const flags = [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(' ')];
  if (permission !== undefined)
    return (
      'Node runs with --permission, which allows no addons and hides files: start it with --allow-addons, and with ' +
      '--allow-fs-read for the folder of the package, too'
    );
  if (flags.includes('--no-addons'))
    return 'Node runs with --no-addons (on its command line or in NODE_OPTIONS), and rdma-rpc is an addon: start it without that flag';
  return undefined;
}

/** Returns the remedy for a file that RDMA_RPC_ADDON names. */
export function whyNotNamed(path: string, why: string): string {
  const forbidden = whoForbids();
  if (forbidden !== undefined) return `rdma-rpc: ${path} does not load (${why}). ${forbidden}`;
  return (
    `rdma-rpc: ${path}, which RDMA_RPC_ADDON names as the addon, does not load (${why}). Name the rdma_rpc.node of this package and system, ` +
    'or unset the variable: then the one in the package is taken'
  );
}

/**
 * Returns the glibc version of this process. This takes some milliseconds. Returns undefined in JS runtimes
 * that do not report it.
 */
export function glibcVersion(): string | undefined {
  if (typeof process.report?.getReport !== 'function') return 'unknown';
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime;
}

/**
 * The error texts for an addon that does not load. Called once, by native.ts and addon-path.ts, after a
 * failure.
 */

/**
 * Returns why no addon can be loaded, and what to do. `glibc` is the version of this process's C library,
 * undefined when that is not glibc.
 */
export function whyNoAddon(what: string, { glibc }: { readonly glibc: string | undefined }): string {
  const forbidden = whoForbids();
  const remedy =
    forbidden !== undefined
      ? forbidden
      : glibc === undefined && process.platform === 'linux'
        ? 'This Node runs on musl (Alpine Linux), and rdma-rpc needs glibc: use a system or an image with glibc, such as node:22-slim.'
        : 'Build it here with: npx rdma-rpc build-addon';
  return `rdma-rpc: ${what}. ${remedy}`;
}

/**
 * Returns which flag of Node forbids addons, and what to do about it; undefined when there is no such flag.
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

/** Returns the same for a file that RDMA_RPC_ADDON names. */
export function whyNotNamed(path: string, why: string): string {
  const forbidden = whoForbids();
  if (forbidden !== undefined) return `rdma-rpc: ${path} does not load (${why}). ${forbidden}`;
  return (
    `rdma-rpc: ${path}, which RDMA_RPC_ADDON names as the addon, does not load (${why}). Name the rdma_rpc.node of this package and system, ` +
    'or unset the variable: then the one in the package is taken'
  );
}

/**
 * Returns the glibc version of this process. Takes some milliseconds. Undefined in JS runtimes that do not
 * report it.
 */
export function glibcVersion(): string | undefined {
  if (typeof process.report?.getReport !== 'function') return 'unknown';
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime;
}

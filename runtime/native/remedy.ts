/**
 * What is said where the addon does not load. Called by native.ts and addon-path.ts, once, when things have
 * gone wrong.
 */

/**
 * Why there is no addon that loads, and what to do. `glibc` is the version that this process runs on,
 * undefined where its C library is another one.
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
 * The flag of Node under which no addon can be loaded, and what to do about it; undefined when there is none.
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

/** The same for a file that somebody has named as the addon. */
export function whyNotNamed(path: string, why: string): string {
  const forbidden = whoForbids();
  if (forbidden !== undefined) return `rdma-rpc: ${path} does not load (${why}). ${forbidden}`;
  return (
    `rdma-rpc: ${path}, which RDMA_RPC_ADDON names as the addon, does not load (${why}). Name the rdma_rpc.node of this package and system, ` +
    'or unset the variable: then the one in the package is taken'
  );
}

/** Of the running process; takes some ms. Runtimes that are not Node may not tell. */
export function glibcVersion(): string | undefined {
  if (typeof process.report?.getReport !== 'function') return 'unknown';
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime;
}

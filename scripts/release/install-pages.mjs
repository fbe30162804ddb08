/**
 * Finds pages that still tell readers to install a package file. checks.mjs calls this before a release.
 */

/** The pages that tell readers how to get the package, before and after the first release. */
export const INSTALL_PAGES = [
  'README.md',
  'docs/start/install.md',
  'docs/start/quick-start.md',
  'docs/deploy/docker.md',
];

/** Returns the pages, given as path → text, that tell readers to install a package file. */
export const unpublishedIn = (pages) =>
  Object.entries(pages)
    .filter(([, text]) => /not in the npm registry|rdma-rpc-\d+\.\d+\.\d+\.tgz/.test(text))
    .map(([page]) => `${page} says how to install a package file, not how to install from the registry`);

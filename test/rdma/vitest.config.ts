/**
 * The tests of this folder need two RDMA devices, named in RDMA_RPC_TEST_DEVICES; npm run test:rdma runs
 * them. Usually they run in an emulated guest, which is 10 to 30 times slower than its host. Therefore these
 * tests, unlike all others, run the compiled project (npm run build). In a guest, vitest would take a minute
 * to compile the sources.
 */
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { shared } from '../../vitest.config.ts';

const LIMIT_MS = 120_000;

const dist = process.env.RDMA_RPC_TEST_DIST ?? fileURLToPath(new URL('../../dist', import.meta.url));

export default defineConfig({
  ...shared,
  resolve: {
    alias: [
      { find: /^rdma-rpc$/, replacement: `${dist}/runtime/index.js` },
      ...['codec', 'verbs', 'memory'].map((part) => ({
        find: new RegExp(`^rdma-rpc/${part}$`),
        replacement: `${dist}/runtime/${part}/index.js`,
      })),
    ],
  },
  test: {
    ...shared.test,
    include: ['test/rdma/**/*.test.ts'],
    exclude: [],
    maxWorkers: 1,
    // All files run in one process, because it takes 20 s to start another process in a guest.
    isolate: false,
    server: { deps: { external: [`${dist}/`] } },
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
  },
});

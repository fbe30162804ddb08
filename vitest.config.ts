/** Tests run on the sources; only tests that start processes or pack the package use dist. */
import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  // The first leads from `rdma-rpc` and its entry points to their sources (`exports` of package.json; tsconfig.json has it, too), the others are Vitest's own.
  ssr: { resolve: { conditions: ['rdma-rpc-source', 'node', 'development|production'] } },
  test: {
    include: ['test/**/*.test.ts'],
    // They need devices, or minutes: npm run test:rdma, npm run test:quickstart.
    exclude: [...configDefaults.exclude, 'test/rdma/**', 'test/quickstart/**'],
    pool: 'forks',
    maxWorkers: 2,
    // For what hangs. Seeded properties take a second on an idle machine and thirty on one that has ten times the work it can do.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});

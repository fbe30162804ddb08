/**
 * Tests of this folder need two RDMA devices, whose names are in RDMA_RPC_TEST_DEVICES: npm run test:rdma, mostly in an
 * emulated guest, which is 10 to 30 times slower than its host.
 */
import { defineConfig } from 'vitest/config';
import project from '../../vitest.config.ts';

const LIMIT_MS = 120_000;

export default defineConfig({
  ...project,
  test: {
    ...project.test,
    include: ['test/rdma/**/*.test.ts'],
    exclude: [],
    passWithNoTests: true,
    maxWorkers: 1,
    // One process for all files: in a guest it takes 20 s to load another.
    isolate: false,
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
  },
});

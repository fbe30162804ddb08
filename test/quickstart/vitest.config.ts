/**
 * Tests of this folder take minutes and need the registry, so npm run test:quickstart runs them instead of
 * npm test. The tests run one at a time, because they share an application.
 */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/quickstart/**/*.test.ts'],
    maxWorkers: 1,
    sequence: { concurrent: false },
    testTimeout: 180_000,
    hookTimeout: 300_000,
  },
});

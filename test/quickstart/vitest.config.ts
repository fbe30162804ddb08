/**
 * Tests of this folder take minutes and the registry: npm run test:quickstart, not npm test. One at a time:
 * they share an application.
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

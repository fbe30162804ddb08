/** npm run test:slow runs this suite, which takes minutes because it stops processes for a long time. */
import { defineConfig } from 'vitest/config';
import { shared } from '../../vitest.config.ts';

export default defineConfig({
  ...shared,
  test: { ...shared.test, include: ['test/slow/*.slow.ts'], exclude: [], testTimeout: 300_000 },
});

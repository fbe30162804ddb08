/** Tests run on the sources; only tests that start processes or pack the package use dist. */
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    // Whole names only, so that `rdma-rpc/codec` is not taken for a path under `rdma-rpc`.
    alias: [
      { find: /^rdma-rpc$/, replacement: source('runtime/index.ts') },
      { find: /^rdma-rpc\/codec$/, replacement: source('runtime/codec/index.ts') },
      { find: /^rdma-rpc\/json$/, replacement: source('runtime/codec/json/index.ts') },
      { find: /^rdma-rpc\/text$/, replacement: source('runtime/codec/textformat/index.ts') },
      { find: /^rdma-rpc\/details$/, replacement: source('runtime/details/index.ts') },
      { find: /^rdma-rpc\/otel$/, replacement: source('runtime/telemetry/otel.ts') },
      { find: /^rdma-rpc\/prometheus$/, replacement: source('runtime/telemetry/prometheus.ts') },
      { find: /^rdma-rpc\/codegen$/, replacement: source('codegen/index.ts') },
      { find: /^rdma-rpc\/msgpack$/, replacement: source('runtime/msgpack/index.ts') },
      { find: /^rdma-rpc\/tensor$/, replacement: source('runtime/tensor/index.ts') },
      { find: /^rdma-rpc\/grpc$/, replacement: source('runtime/grpc/index.ts') },
      { find: /^rdma-rpc\/grpc-client$/, replacement: source('runtime/grpc/client.ts') },
      { find: /^rdma-rpc\/validate$/, replacement: source('runtime/validate/index.ts') },
      { find: /^rdma-rpc\/connect$/, replacement: source('runtime/connect/index.ts') },
      { find: /^rdma-rpc\/health$/, replacement: source('runtime/services/health.ts') },
      { find: /^rdma-rpc\/reverse$/, replacement: source('runtime/reverse/index.ts') },
      { find: /^rdma-rpc\/reflection$/, replacement: source('runtime/services/reflection.ts') },
    ],
  },
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

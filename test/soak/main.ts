/**
 * npm run test:soak runs this program, which takes ten minutes over shared memory. `--minutes 3` makes it
 * shorter. With RDMA_RPC_FABRIC=verbs, RDMA_RPC_DEVICE and `--address HOST:0` it uses an RDMA device.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

// The script is started from dist, where the compiled scripts that it starts lie beside it.
process.env.RDMA_RPC_TEST_DIST ??= fileURLToPath(new URL('../..', import.meta.url));
const { soak } = await import('./soak.ts');

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    address: { type: 'string', default: '127.0.0.1:0' },
    round: { type: 'string', default: '4' },
  },
});
const fabric = process.env.RDMA_RPC_FABRIC ?? 'shm';
const faults = await soak({
  ms: Number(values.minutes) * 60_000,
  roundMs: Number(values.round) * 1000,
  address: values.address,
  channel: fabric === 'shm' ? { fabric: ['shm'] } : {},
  log: console.log,
});
console.log(faults.length === 0 ? 'flat' : faults.join('\n'));
process.exit(faults.length === 0 ? 0 : 1);

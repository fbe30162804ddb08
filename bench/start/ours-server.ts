/** A server of rdma-rpc on the given address. It serves until its stdin ends. */
import { createServer } from 'rdma-rpc';
import { BenchDefinition } from '../gen/bench.rdma.ts';
import { cpuUs, tell } from './first.ts';

const imported = cpuUs();
await createServer()
  .add(BenchDefinition, { echo: async (request) => ({ payload: request.payload, id: request.id }) })
  .listen(process.argv[2]!);
tell(imported);
process.stdin.on('end', () => process.exit(0)).resume();

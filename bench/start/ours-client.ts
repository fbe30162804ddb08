/** A client of rdma-rpc that starts, makes one call to the given address and ends. */
import { createChannel, createClient } from 'rdma-rpc';
import { BenchDefinition } from '../gen/bench.rdma.ts';
import { cpuUs, tell } from './first.ts';

const imported = cpuUs();
const channel = createChannel(process.argv[2]!, { timeoutMs: 30_000 });
const { id } = await createClient(BenchDefinition, channel).echo({ payload: new Uint8Array(32), id: 1 });
if (id !== 1) throw new Error('not the answer');
tell(imported);
process.exit(0);

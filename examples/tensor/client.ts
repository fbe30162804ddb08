/**
 * The client: `node dist/examples/tensor/client.js [address]`. The server must be running.
 */
import { createChannel } from 'rdma-rpc';
import { callVision } from './calls.ts';

const channel = createChannel(process.argv[2] ?? '127.0.0.1:50052');
console.log(await callVision(channel));
await channel.close();

/**
 * A server that registers itself in etcd, in a process that the benchmark kills. main.ts starts this program.
 */
import { createServer } from 'rdma-rpc';
import { register } from 'rdma-rpc/etcd';
import { BenchDefinition } from '../gen/bench.rdma.ts';

const [endpoints = '', service = '', ttlMs = ''] = process.argv.slice(2);
let id = 0;
const server = createServer().add(BenchDefinition, { echo: () => ({ id }) });
const address = await server.listen('127.0.0.1:0');
// Answers contain the port, so that the caller knows which server has answered.
id = Number(address.split(':').at(-1));
await register(server, { endpoints, service, address, ttlMs: Number(ttlMs) }).ready();
console.log(address);

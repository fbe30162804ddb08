/**
 * The server: `node dist/examples/tensor/server.js [address]`.
 */
import { createServer } from 'rdma-rpc';
import { VisionDefinition } from './gen/tensor.rdma.ts';
import { visionHandlers } from './service.ts';

const server = createServer();
const watch = (inPlace: boolean) => console.log(`pixels in place: ${inPlace}`);
server.add(VisionDefinition, visionHandlers(watch));
console.log(`listening on ${await server.listen(process.argv[2] ?? '127.0.0.1:50052')}`);

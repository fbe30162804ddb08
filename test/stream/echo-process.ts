/**
 * A server of a process of its own for held.test.ts, with an arena of the size that its argument says; its
 * echo is the natural one. Says its address, then runs until it is killed.
 */
import { configure, createServer } from 'rdma-rpc';
import { StreamsDefinition } from './gen/stream.rdma.ts';
import { newLog, streamHandlers } from './streams-service.ts';

configure({ arenaBytes: Number(process.argv[2]) });
const server = createServer({ streamsMax: 64 }).add(StreamsDefinition, streamHandlers(newLog()));
process.send?.(await server.listen('127.0.0.1:0'));
// Its parent is gone.
process.on('disconnect', () => process.exit());

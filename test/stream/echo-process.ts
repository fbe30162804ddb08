/**
 * Runs a server in a separate process for held.test.ts, with an arena of the size in its argument. The
 * server's echo is written in the most natural way. The server prints its address, then runs until it is
 * killed.
 */
import { configure, createServer } from 'rdma-rpc';
import { StreamsDefinition } from './gen/stream.rdma.ts';
import { newLog, streamHandlers } from './streams-service.ts';

configure({ arenaBytes: Number(process.argv[2]) });
const server = createServer({ streamsMax: 64 }).add(StreamsDefinition, streamHandlers(newLog()));
process.send?.(await server.listen('127.0.0.1:0'));
// The parent process has ended.
process.on('disconnect', () => process.exit());

/**
 * Runs as a server process of the tests. The process listens at argv[2] with the runtime options in argv[3],
 * sends its address to the parent process, and obeys its messages.
 */
import { configure, createServer, type RuntimeOptions, stats } from 'rdma-rpc';
import { type Sample, sampled } from '../../soak/sample.ts';
import { StreamsDefinition } from '../../stream/gen/stream.rdma.ts';
import { newLog, streamHandlers } from '../../stream/streams-service.ts';
import { type EchoLog, echoHandlers } from '../echo-service.ts';
import { EchoDefinition } from '../gen/echo.rdma.ts';

export type Command = 'stats' | 'sample' | 'shutdown';
export interface Report {
  address?: string;
  stats?: Record<string, number>;
  sessions?: number;
  log?: EchoLog;
  sample?: Sample;
}

configure(JSON.parse(process.argv[3] ?? '{}') as RuntimeOptions);
const log: EchoLog = { started: 0, aborted: [] };
const server = createServer()
  .add(EchoDefinition, echoHandlers(log))
  .add(StreamsDefinition, streamHandlers(newLog()));

function report(what: Report): void {
  process.send?.(what);
}

process.on('message', (command: Command) => {
  if (command === 'stats') report({ stats: { ...stats() }, sessions: server.sessionCount, log });
  else if (command === 'sample') void sampled().then((sample) => report({ sample }));
  else {
    void server.shutdown({ graceMs: 100 }).then(() => {
      report({ stats: { ...stats() } });
      process.disconnect();
    });
  }
});
process.on('disconnect', () => void server.shutdown({ graceMs: 0 }));
report({ address: await server.listen(process.argv[2] ?? '127.0.0.1:0') });

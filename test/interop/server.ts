/**
 * A server process for the interoperability cases. The process listens at argv[2] with the options of
 * argv[3], sends its address, and follows instructions that arrive as messages.
 */
import { createServer, type ServerOptions, stats } from 'rdma-rpc';
import { InteropDefinition } from './gen/interop.rdma.ts';
import { emptyLog, type InteropLog, interopHandlers } from './service.ts';

export type Command = { readonly do: 'report' } | { readonly do: 'shutdown'; readonly graceMs: number };
export interface Report {
  readonly sessions: number;
  readonly log: InteropLog;
  readonly stats: Record<string, number>;
}

const log = emptyLog();
const options = JSON.parse(process.argv[3] ?? '{}') as ServerOptions;
const server = createServer(options).add(InteropDefinition, interopHandlers(log));

process.on('message', (command: Command) => {
  if (command.do === 'report') {
    process.send?.({ sessions: server.sessionCount, log, stats: { ...stats() } } satisfies Report);
  } else {
    void server.shutdown({ graceMs: command.graceMs }).then(() => process.disconnect());
  }
});
process.on('disconnect', () => void server.shutdown({ graceMs: 0 }));
process.send?.(await server.listen(process.argv[2] ?? '127.0.0.1:0'));

/**
 * Runs as a client process that stops in the middle of its calls, as if a debugger or a suspended machine
 * stopped it. argv has the address, the kind and number of calls, their bytes and their time limit in ms (0
 * for none). While it sends large requests, the process stops itself. While it receives large responses, its
 * parent stops it.
 */
import { createChannel, createClient } from 'rdma-rpc';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';

const [, , address = '', kind, count, bytes, timeoutMs] = process.argv;
const client = createClient(EchoDefinition, createChannel(address, { fabric: 'tcp' }));
await client.echo({});

const options = Number(timeoutMs) === 0 ? {} : { timeoutMs: Number(timeoutMs) };
const payload = new Uint8Array(Number(bytes));
for (let i = 0; i < Number(count); ++i) {
  const call =
    kind === 'request' ? client.echo({ payload }, options) : client.fetch({ number: Number(bytes) }, options);
  call.catch(() => undefined);
}
// The requests leave at the end of this event-loop iteration, and the server asks for their bytes later than
// the next iteration.
if (kind === 'request') setImmediate(() => process.kill(process.pid, 'SIGSTOP'));

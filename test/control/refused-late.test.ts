/**
 * A server refuses a connection while the client waits for something else, and then ends the connection. The
 * client learns why.
 */
import { duplexPair } from 'node:stream';
import { Status } from 'rdma-rpc';
import { expect, test } from 'vitest';
import { Link } from '../../runtime/control/link.ts';

const never = new Promise<never>(() => undefined);

test.each<[string, (link: Link) => Promise<unknown>]>([
  ['its queue pair', (link) => link.whileOpen(never)],
  ['an answer that comes later', (link) => link.receive().then(() => link.receive())],
])('a client that waits for %s', async (what, wait) => {
  const [near, far] = duplexPair();
  const link = new Link(near);
  const server = new Link(far);
  if (what !== 'its queue pair') server.send({ type: 'pong' });
  const waiting = wait(link);
  const message = 'no handshake within 5000 ms (option handshakeTimeoutMs of the server)';
  server.close(message, { type: 'refusal', code: Status.RESOURCE_EXHAUSTED, message, retryMs: 20 });
  const outcome = await waiting.catch((error: unknown) => error);
  if (what === 'its queue pair')
    expect(outcome).toMatchObject({
      code: Status.RESOURCE_EXHAUSTED,
      rawMessage: `the server refused the connection: ${message}`,
      processed: 'no',
    });
  else expect(outcome).toMatchObject({ type: 'refusal', message });
});

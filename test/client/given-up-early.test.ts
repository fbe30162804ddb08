/** Tests that calls which are cancelled before they begin leave no connection, listener or timer behind. */
import { getEventListeners, once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { CallGuard } from '../../runtime/client/call/call-guard.ts';
import { parseAddress } from '../../runtime/control/socket/address.ts';
import { socketDial } from '../../runtime/control/socket/dial.ts';

test('an attempt whose signal has fired already does not connect', async () => {
  let came = 0;
  const server = createServer(() => ++came).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const reason = new Error('the channel was closed');
  const dial = socketDial(parseAddress(`127.0.0.1:${port}`), undefined);
  await expect(dial(AbortSignal.abort(reason))).rejects.toBe(reason);
  expect(came).toBe(0);
  server.close();
});

test('a guard whose second signal throws listens to the first no longer, and has no timer', async () => {
  const first = new AbortController();
  const second = new AbortController();
  const fault = new Error('no listeners here');
  second.signal.addEventListener = () => {
    throw fault;
  };
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const context = { signal: second.signal } as never;
  const guard = new CallGuard('a.B/C', 60_000, { signal: first.signal, context });
  await expect(guard.wait(new Promise(() => undefined))).rejects.toBe(fault);
  expect(getEventListeners(first.signal, 'abort')).toEqual([]);
  expect(timers()).toBe(before);
});

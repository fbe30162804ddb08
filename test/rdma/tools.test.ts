/**
 * Tests commands over RDMA devices, as a user runs them. Some commands connect to a server or inspect one
 * (`call`, `bench`, `ping`, `top`, `trace`), and the others inspect devices (`devices -v`, `links`,
 * `events`).
 */
import { afterEach, expect, test } from 'vitest';
import type { Result } from '../../cli/bench/result.ts';
import type { Link } from '../../cli/machine/links.ts';
import type { PingResult } from '../../cli/ping/result.ts';
import type { View } from '../../cli/top/view.ts';
import type { TraceEvent } from '../../cli/trace/events.ts';
import type { VerbsDetails } from '../../runtime/native/native.ts';
import { run } from '../cli/command.ts';
import { start } from '../cli/ping/server-process.ts';
import { root } from '../house/tree.ts';
import { clientDevice, endAll, serverDevice, sharedServer } from './pair.ts';

afterEach(endAll);
const server = sharedServer();

// Commands have no flag for their device; an environment variable selects it.
process.env.RDMA_RPC_DEVICE = clientDevice;
const schema = ['--proto', `${root}/test/runtime/protos/echo.proto`, '--timeout', '45000'];
const method = 'test.echo.Echo/Echo';
const text = '{"text":"hi"}';
/** Each command takes seconds to start in a guest. */
const LIMIT_MS = 120_000;

async function json<T>(...args: string[]): Promise<T> {
  const { code, out, errors } = await run(...args, '--json');
  expect({ code, errors }).toEqual({ code: 0, errors: '' });
  return JSON.parse(out) as T;
}

test('bench and call connect over RDMA', { timeout: LIMIT_MS }, async () => {
  const bench = ['bench', server().address, method, ...schema, '-d', text, '--fabric', 'verbs'];
  const { target, calls } = await json<Result>(...bench, '-n', '200', '-c', '8');
  expect({ target, calls }).toMatchObject({
    target: { fabric: 'verbs', device: clientDevice },
    calls: { ok: 200, failed: 0 },
  });
  const called = await run('call', server().address, method, text, ...schema);
  expect(called).toMatchObject({ code: 0, out: expect.stringContaining('"hi"') });
});

test('top and trace show an RDMA session', { timeout: LIMIT_MS }, async () => {
  const pid = String(server().child.pid);
  expect((await run('call', server().address, method, text, ...schema)).code).toBe(0);
  const view = await json<View>('top', pid, '--once', '--interval', '0.2');
  expect(view.contexts).toMatchObject([{ fabric: 'verbs', device: serverDevice }]);
  expect(view.methods.find((each) => each.method === method)?.calls).toBeGreaterThan(0);
  const { events } = await json<{ events: readonly TraceEvent[] }>('trace', pid, '--kind', 'frame-in,settle');
  expect(new Set(events.map(({ kind }) => kind))).toEqual(new Set(['frame-in', 'settle']));
  expect(events.filter((event) => event.kind === 'settle' && event.method === method)).not.toEqual([]);
});

test('ping measures the fabric', { timeout: LIMIT_MS }, async () => {
  const args = [server().address, '-c', '2', '-i', '0', '--fabric', 'verbs', '--timeout', '45000'];
  const { session, rounds } = await json<PingResult>('ping', ...args);
  expect(session).toMatchObject({ fabric: 'verbs', device: clientDevice });
  expect(rounds).toHaveLength(2);
});

test('devices -v and links list the devices', { timeout: LIMIT_MS }, async () => {
  const { details } = await json<{ details: readonly VerbsDetails[] }>('devices', '-v');
  const { attributes, ports } = details.find(({ name }) => name === clientDevice)!;
  expect(Number(attributes.max_qp)).toBeGreaterThan(0);
  expect(ports[0]!.attributes).toMatchObject({ state: 'ACTIVE' });
  const { links } = await json<{ links: readonly Link[] }>('links');
  expect(links.find(({ device }) => device === clientDevice)).toMatchObject({ port: 1, state: 'ACTIVE' });
});

test('events waits until it is interrupted', { timeout: LIMIT_MS }, async () => {
  const watching = start('events', clientDevice);
  await watching.hasPrinted(`waiting for events of ${clientDevice}`);
  watching.signal('SIGINT');
  expect(await watching.ended).toMatchObject({ code: 0 });
});

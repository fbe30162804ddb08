/**
 * Tests channels and servers, as seen by tools that look for open handles (Jest's --detectOpenHandles). Such
 * tools ask each resource whether it keeps the process alive, and report those that do not answer.
 */
import { createHook } from 'node:async_hooks';
import { mock } from 'node:test';
import { createChannel, createServer } from 'rdma-rpc';
import { afterEach, expect, test } from 'vitest';
import { until } from '../outcomes.ts';
import { StreamsDefinition } from '../stream/gen/stream.rdma.ts';
import { clients, drain } from './context-sites.ts';
import { EchoDefinition } from './gen/echo.rdma.ts';
import { socketPath } from './world.ts';

test('every resource that calls, streams and handlers make says that it keeps nothing alive', async () => {
  const made: { hasRef?: () => boolean }[] = [];
  const hook = createHook({
    init: (_id, type, _trigger, resource) => {
      if (type === 'rdma-rpc') made.push(resource);
    },
  }).enable();
  const server = createServer()
    .use((next) => (request) => next(request))
    .add(EchoDefinition, { echo: (request) => request })
    .add(StreamsDefinition, { echo: (items) => items });
  const channel = createChannel(await server.listen(`unix:${socketPath()}`));
  try {
    const { echo, streams } = clients(channel);
    for (let i = 0; i < 2; ++i) {
      await echo.echo({}, { onTrailer: () => undefined });
      await drain(streams.echo([{ number: i }]));
    }
  } finally {
    await channel.close();
    await server.shutdown({ graceMs: 0 });
    hook.disable();
  }
  expect(made.length).toBeGreaterThan(3);
  expect(new Set(made.map((each) => each.hasRef?.()))).toEqual(new Set([false]));
});

afterEach(() => mock.timers.reset());

/**
 * Records the timers of Node that the runtime makes. The timers of the test runner, which come and go in the
 * same process, have no line of the runtime in their stacks.
 */
function timersOfTheRuntime(): { active: Set<number>; stop: () => void } {
  const active = new Set<number>();
  const hook = createHook({
    init: (id, type) => {
      if (type === 'Timeout' && /(?<!\/test)\/runtime\//.test(new Error().stack ?? '')) active.add(id);
    },
    destroy: (id) => active.delete(id),
  }).enable();
  return { active, stop: () => hook.disable() };
}

test('a channel that is closed under fake timers leaves no timer of Node behind', async () => {
  const server = createServer().add(EchoDefinition, { echo: (request) => request });
  const address = await server.listen(`unix:${socketPath()}`);
  const { active, stop } = timersOfTheRuntime();
  try {
    const channel = createChannel(address);
    const { echo } = clients(channel);
    await echo.echo({});
    expect(active.size).toBeGreaterThan(0);
    mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
    await channel.close();
    mock.timers.reset();
    await until(() => active.size === 0);
  } finally {
    stop();
    await server.shutdown({ graceMs: 0 });
  }
});

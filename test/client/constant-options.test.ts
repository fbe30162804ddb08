/**
 * Tests options that a client has for all of its calls. The options are fixed when the client is made: they
 * are computed once, and never change.
 */
import { createClient, type Interceptor, Metadata } from 'rdma-rpc';
import { afterEach, expect, test, vi } from 'vitest';
import * as wire from '../../runtime/core/metadata-wire.ts';
import { EchoDefinition } from '../runtime/gen/echo.rdma.ts';
import { openPair, type Pair } from '../runtime/pair.ts';

vi.mock(import('../../runtime/core/metadata-wire.ts'), async (original) => {
  const module = await original();
  return { ...module, encodeMetadata: vi.fn(module.encodeMetadata) };
});

let pair: Pair;
afterEach(() => pair.close());

/** Makes a client of a server that answers with the metadata of the call. */
async function open() {
  pair = await openPair('sim', (server) =>
    server.add(EchoDefinition, {
      echo: (_, { metadata }) => ({
        text: [...metadata].map(([key, value]) => `${key}=${String(value)}`).join(' '),
      }),
    }),
  );
  return pair.channel;
}

test('the given options are copied: later changes affect no call', async () => {
  const channel = await open();
  const metadata = new Metadata({ a: '1', 'b-bin': new Uint8Array([7]) });
  const plain: Record<string, string> = { c: '2' };
  const bytes = metadata.get('b-bin') as Uint8Array;
  const defaults = { '*': { metadata, timeoutMs: 5000 } };
  const one = createClient(EchoDefinition, channel, defaults);
  const two = createClient(EchoDefinition, channel, { echo: { metadata: plain } });
  metadata.set('a', 'changed');
  bytes[0] = 8;
  plain.c = 'changed';
  defaults['*'].metadata = new Metadata({ other: 'x' });
  for (let i = 0; i < 3; ++i) {
    expect((await one.echo({})).text).toBe('a=1 b-bin=7');
    expect((await two.echo({})).text).toBe('c=2');
    // The options of a call replace them for that call.
    expect((await one.echo({}, { metadata: { a: 'own' } })).text).toBe('b-bin=7 a=own');
    expect((await one.echo({}, {})).text).toBe('a=1 b-bin=7');
  }
});

test('a change that an interceptor makes to its request affects only that call', async () => {
  const channel = await open();
  const meddling: Interceptor = (next) => (request) => {
    request.metadata.append('more', 'x');
    Object.assign(request.options ?? {}, { timeoutMs: 0, metadata: { lost: 'y' } });
    return next(request);
  };
  const defaults = { '*': { metadata: { a: '1' }, interceptors: [meddling] } };
  const client = createClient(EchoDefinition, channel, defaults);
  const beside = createClient(EchoDefinition, channel, { '*': { metadata: defaults['*'].metadata } });
  for (let i = 0; i < 3; ++i) {
    expect((await client.echo({})).text).toBe('a=1 more=x');
    expect((await beside.echo({})).text).toBe('a=1');
  }
});

test('its metadata is encoded once; metadata that cannot be encoded is refused in each call', async () => {
  const channel = await open();
  const client = createClient(EchoDefinition, channel, { '*': { metadata: { a: '1' } } });
  await client.echo({});
  vi.mocked(wire.encodeMetadata).mockClear();
  for (let i = 0; i < 5; ++i) expect((await client.echo({})).text).toBe('a=1');
  expect(wire.encodeMetadata).not.toHaveBeenCalled();
  const large = createClient(EchoDefinition, channel, { '*': { metadata: { a: 'x'.repeat(9000) } } });
  for (let i = 0; i < 2; ++i) await expect(large.echo({})).rejects.toThrow(/metadata/);
});

/** Which context a choice of a verbs device comes to, when the address of the connection is part of it. */
import { beforeEach, expect, test, vi } from 'vitest';
import type { VerbsOptions } from '../../runtime/native.ts';
import { FakeNative } from './fake-native.ts';

/** The addresses of each device, the one that it takes by itself first. */
const devices: Record<string, string[]> = { rxe0: ['10.0.0.1', '10.0.1.1'] };
let opened: { path: string; closed: boolean }[] = [];

vi.mock('../../runtime/native.ts', async (original) => ({
  ...(await original<object>()),
  loadNative: () => ({
    createContext: ({ verbs }: { verbs: VerbsOptions }) => {
      const own = devices[verbs.device ?? 'rxe0']!;
      const path = own.find((address) => address === verbs.address) ?? own[0]!;
      const native = Object.assign(new FakeNative(), { path });
      opened.push(native);
      return native;
    },
  }),
}));

const { acquireContext, acquireOwnContext, releaseContext } = await import('../../runtime/lane/contexts.ts');
const device = 'rxe0';
const of = (address?: string) =>
  acquireContext({ fabric: 'verbs', verbs: address === undefined ? { device } : { device, address } });

beforeEach(() => {
  opened = [];
});

test('an address of the device has its own; one that it takes anyway, or has not, shares', async () => {
  const contexts = [
    of(),
    of('10.0.1.1'),
    of('10.0.0.1'),
    of('192.168.7.7'),
    of('192.168.7.7'),
    of('10.0.1.1'),
  ];
  const [any, second, first, foreign, again, secondAgain] = contexts;
  expect(second).not.toBe(any);
  expect(first).toBe(any);
  expect(foreign).toBe(any);
  expect(again).toBe(any);
  expect(secondAgain).toBe(second);
  expect(opened.filter(({ closed }) => !closed).map(({ path }) => path)).toEqual(['10.0.0.1', '10.0.1.1']);
  expect(opened).toHaveLength(4);
  for (const context of contexts) releaseContext(context);
  await new Promise((done) => setImmediate(done));
  expect(opened.every(({ closed }) => closed)).toBe(true);
  const anew = of('192.168.7.7');
  expect(opened.filter(({ closed }) => !closed)).toHaveLength(1);
  releaseContext(anew);
});

test('the context of one session is shared with nobody', () => {
  const own = acquireOwnContext({ fabric: 'verbs', verbs: { device } }, 64);
  const shared = of('192.168.7.7');
  expect(shared).not.toBe(own);
  releaseContext(own);
  releaseContext(shared);
});

/**
 * Tests calls that a server session rejects before it does any work for them: too many handlers, or a session
 * that is about to end.
 */
import { Status } from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { EvKind } from '../../runtime/native/native.ts';
import type { FakeNative } from '../runtime/fake-native.ts';
import { type BedOptions, type EchoHandlers, request, ServerBed } from './server-bed.ts';

let bed: ServerBed;
let native: FakeNative;
const answers = () => bed.answers();

function open(handlers: EchoHandlers, options?: BedOptions): void {
  bed = new ServerBed(handlers, options);
  ({ native } = bed);
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('load', () => {
  test('a request beyond handlersMax is refused unread; running handlers are not affected, and one that ends makes room', async () => {
    const finish: (() => void)[] = [];
    open({ echo: (r) => new Promise((resolve) => finish.push(() => resolve(r))) }, { handlersMax: 2 });
    // The error would be INTERNAL if the message were decoded.
    const unreadable = request({ call: 3, message: Uint8Array.of(0xff) });
    native.deliver(request({ call: 1 }), request({ call: 2 }), unreadable);
    expect(answers()).toMatchObject([
      {
        call: 3,
        status: Status.RESOURCE_EXHAUSTED,
        notRun: true,
        text: expect.stringMatching(/2 handlers are running.*handlersMax/),
      },
    ]);
    finish[0]!();
    await turn();
    native.deliver(request({ call: 4 }));
    expect(finish).toHaveLength(3);
    finish[1]!();
    finish[2]!();
    await turn();
    expect(answers().slice(1)).toMatchObject([1, 2, 4].map((call) => ({ call, status: Status.OK })));
  });

  test('handlers that answer at once do not count', () => {
    open({ echo: (r) => r }, { handlersMax: 1 });
    native.deliver(request({ call: 1 }), request({ call: 2 }), request({ call: 3 }));
    expect(answers().map(({ status }) => status)).toEqual([0, 0, 0]);
  });

  test('a handler that failed, and one whose client has disconnected, make room when they end', async () => {
    const fail: (() => void)[] = [];
    open(
      { echo: () => new Promise((_, reject) => fail.push(() => reject(new Error('as planned')))) },
      { handlersMax: 1 },
    );
    native.deliver(request({ call: 1 }));
    native.deliver({ kind: EvKind.cancelled, call: 1, status: Status.CANCELLED });
    native.deliver(request({ call: 2 }));
    expect(answers()).toMatchObject([{ call: 2, status: Status.RESOURCE_EXHAUSTED }]);
    fail[0]!();
    await turn();
    native.deliver(request({ call: 3 }));
    expect(fail).toHaveLength(2);
  });

  test('a session that is about to end refuses requests unread, and answers those that it has', async () => {
    let finish: (() => void) | undefined;
    open({ echo: (r) => new Promise((resolve) => (finish = () => resolve(r))) });
    native.deliver(request({ call: 1 }));
    bed.session.rejectAfter('the server is shutting down', bed.session.calls);
    const block = native.allocBlock(100);
    native.deliver(request({ call: 2, block }));
    native.releaseBlock(block);
    expect(native.blocks.size).toBe(0);
    finish?.();
    await turn();
    expect(answers()).toMatchObject([
      {
        call: 2,
        status: Status.UNAVAILABLE,
        notRun: true,
        text: 'test.echo.Echo/Echo: the server is shutting down',
      },
      { call: 1, status: Status.OK },
    ]);
  });
});

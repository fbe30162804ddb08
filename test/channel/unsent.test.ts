/**
 * A session returns calls that no handler can have seen. Some answers count as failures of an address.
 */
import { Status } from 'rdma-rpc';
import { describe, expect, test } from 'vitest';
import { EvKind, Reason } from '../../runtime/native/native.ts';
import { ClientBed, extras, text } from '../client/client-bed.ts';

const processed = { no: 0, maybe: 1, yes: 2 } as const;
const failed = { kind: EvKind.failed, call: 0 };
const settled = { kind: EvKind.settled, call: 0 };

describe('a call', () => {
  test.each<[string, object, boolean]>([
    [
      'that was not sent when the connection was lost',
      { ...failed, reason: Reason.sessionLost, processed: processed.no },
      true,
    ],
    ['that may have been sent', { ...failed, reason: Reason.sessionLost, processed: processed.maybe }, false],
    [
      'whose deadline passed before it was sent',
      { ...failed, reason: Reason.deadline, processed: processed.no },
      false,
    ],
    ['that found no memory', { ...failed, reason: Reason.noMemory, processed: processed.no }, false],
    ['that the server rejected', { ...settled, status: Status.UNAVAILABLE, processed: processed.no }, true],
    [
      'whose handler answered UNAVAILABLE',
      { ...settled, status: Status.UNAVAILABLE, processed: processed.yes },
      false,
    ],
    [
      'that met a limit of the server',
      { ...settled, status: Status.RESOURCE_EXHAUSTED, processed: processed.no },
      false,
    ],
  ])('%s', async (_, event, back) => {
    const bed = new ClientBed();
    bed.requeues = true;
    const request = { number: 7 };
    const promise = bed.call(request, { timeoutMs: 60_000 })!;
    bed.native.deliver(event as never);
    expect(bed.requeued).toHaveLength(back ? 1 : 0);
    expect(bed.session.inFlight).toBe(0);
    if (!back) return expect(promise).rejects.toMatchObject({ name: 'RpcError' });
    const [call] = bed.requeued;
    expect(call?.request).toBe(request);
    expect(call?.deadlineMs).toBeGreaterThan(0);
    // The session that took over the call owns its promise.
    call?.resolve({ text: 'elsewhere' });
    expect((await promise).text).toBe('elsewhere');
    expect(bed.allSettledOnce).toBe(true);
  });

  test('that no other session takes over fails as usual', async () => {
    const bed = new ClientBed();
    const promise = bed.call({})!;
    bed.native.deliver({ ...failed, reason: Reason.sessionLost, processed: processed.no });
    await expect(promise).rejects.toMatchObject({ code: Status.UNAVAILABLE, processed: 'no' });
  });

  test('that its caller has cancelled is not taken over', async () => {
    const bed = new ClientBed();
    bed.requeues = true;
    const controller = new AbortController();
    const promise = bed.call({}, { extras: extras({ signal: controller.signal }) })!;
    controller.abort();
    bed.native.deliver({ ...failed, reason: Reason.sessionLost, processed: processed.no });
    await expect(promise).rejects.toMatchObject({ processed: 'no' });
    expect(bed.requeued).toEqual([]);
  });
});

test("consecutive error responses are reported once; a success, and an error that is not the server's fault, resets the count", () => {
  const bed = new ClientBed();
  bed.session.tally.consecutiveErrorsMax = 2;
  const answer = (status: number): void => {
    void bed.call({});
    bed.native.deliver({
      ...settled,
      status,
      ...(status === Status.OK ? { message: text('') } : { processed: processed.yes }),
    });
  };
  const codes = [
    Status.INTERNAL,
    Status.OK,
    Status.UNKNOWN,
    Status.NOT_FOUND,
    Status.UNAVAILABLE,
    Status.INTERNAL,
  ];
  const reports = codes.map((code) => {
    answer(code);
    return bed.reports;
  });
  expect(reports).toEqual([0, 0, 0, 0, 1, 1]);
});
